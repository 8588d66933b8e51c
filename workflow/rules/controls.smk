rule tabulate_control:
    output:
        f"{R}/tables/{{control}}.csv",
    log:
        f"{R}/logs/controls/{{control}}.log",
    benchmark:
        f"{R}/benchmarks/controls/{{control}}.tsv"
    wildcard_constraints:
        control="|".join(CONTROLS),
    conda:
        "../../envs/exact.yaml"
    resources:
        mem_mb=allocated(500),
        runtime=allotted(5),
    params:
        code=lambda w: digest(f"{w.control}.py", "exact"),
    shell:
        "python $SCRIPTS/{wildcards.control}.py --output {output} 2> {log}"
