LONGEST_APPROXIMATED = 16384
COST = [
    f"{R}/tables/approximation_cost.csv",
    *(f"{R}/figures/approximation_cost.{extension}" for extension in ("pdf", "svg", "png")),
]


# All memory: nothing else runs beside it. One thread, so that methods compare.
rule measure_approximation_cost:
    output:
        f"{R}/tables/approximation_cost.csv",
    log:
        f"{R}/logs/measure_approximation_cost.log",
    benchmark:
        f"{R}/benchmarks/measure_approximation_cost.tsv"
    conda:
        "../../envs/linalg.yaml"
    resources:
        mem_mb=STUDY["limits"].get("memory_mb", resources.machine_memory_mb()),
    params:
        code=digest("approximation_cost.py", "linalg"),
        run=digest("approximation_cost_run.py", "linalg"),
        options=options(
            sizes=sorted(N for N in BENCHMARK["sizes"] if N <= LONGEST_APPROXIMATED)
            or min(BENCHMARK["sizes"]),
            seconds=BENCHMARK["seconds"],
        ),
    shell:
        "python $SCRIPTS/approximation_cost.py {params.options} --memory-mb {resources.mem_mb}"
        " --output {output} 2> {log}"


rule plot_approximation_cost:
    input:
        f"{R}/tables/approximation_cost.csv",
    output:
        pdf=f"{R}/figures/approximation_cost.pdf",
        svg=report(
            f"{R}/figures/approximation_cost.svg",
            caption="../report/approximation_cost.rst",
            category="7. Performance",
            labels={"result": "time and memory of approximations against N"},
        ),
        png=f"{R}/figures/approximation_cost.png",
    log:
        f"{R}/logs/plot_approximation_cost.log",
    benchmark:
        f"{R}/benchmarks/plot_approximation_cost.tsv"
    conda:
        "../../envs/figures.yaml"
    resources:
        mem_mb=500,
    params:
        code=digest("plot_approximation_cost.py", "figures"),
        options=FIGURE_OPTIONS,
    shell:
        "python $SCRIPTS/plot_approximation_cost.py --cost {input} {params.options}"
        " --output {output} 2> {log}"
