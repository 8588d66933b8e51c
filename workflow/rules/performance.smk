BENCHMARK = STUDY["benchmark"]
PERFORMANCE = [
    f"{R}/tables/performance.csv",
    *(f"{R}/figures/performance.{extension}" for extension in ("pdf", "svg", "png")),
]


rule draw_benchmark_matrix:
    output:
        temp(f"{R}/benchmark/N~{{N}}.npz"),
    log:
        f"{R}/logs/benchmark_matrix/N~{{N}}.log",
    benchmark:
        f"{R}/benchmarks/benchmark_matrix/N~{{N}}.tsv"
    conda:
        "../../envs/exact.yaml"
    resources:
        mem_mb=lambda w: 500 + int(w.N) * 64 * 8 * 10 // 2**20,
    params:
        code=digest("benchmark_matrix.py", "exact"),
    shell:
        "python $SCRIPTS/benchmark_matrix.py --N {wildcards.N} --output {output} 2> {log}"


# All cores and all memory: nothing else runs beside it.
rule measure_performance:
    input:
        expand(f"{R}/benchmark/N~{{N}}.npz", N=sorted(BENCHMARK["sizes"])),
    output:
        f"{R}/tables/performance.csv",
    log:
        f"{R}/logs/measure_performance.log",
    benchmark:
        f"{R}/benchmarks/measure_performance.tsv"
    conda:
        "../../envs/benchmark.yaml"
    threads: os.cpu_count()
    resources:
        mem_mb=STUDY["limits"].get("memory_mb", resources.machine_memory_mb()),
    params:
        code=digest("benchmark.py", "benchmark"),
        options=options(seconds=BENCHMARK["seconds"], repeats=BENCHMARK["repeats"]),
    shell:
        "python $SCRIPTS/benchmark.py --matrices {input} {params.options} --threads {threads}"
        " --memory-mb {resources.mem_mb} --output {output} 2> {log}"


rule plot_performance:
    input:
        f"{R}/tables/performance.csv",
    output:
        pdf=f"{R}/figures/performance.pdf",
        svg=report(
            f"{R}/figures/performance.svg",
            caption="../report/performance.rst",
            category="7. Performance",
            labels={"result": "time and memory against N"},
        ),
        png=f"{R}/figures/performance.png",
    log:
        f"{R}/logs/plot_performance.log",
    benchmark:
        f"{R}/benchmarks/plot_performance.tsv"
    conda:
        "../../envs/figures.yaml"
    resources:
        mem_mb=500,
    params:
        code=digest("plot_performance.py", "figures"),
        options=FIGURE_OPTIONS,
    shell:
        "python $SCRIPTS/plot_performance.py --performance {input} {params.options}"
        " --output {output} 2> {log}"
