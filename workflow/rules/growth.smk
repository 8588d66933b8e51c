GROWTH = f"{R}/growth/source~{{source}}/d~{{d}}/feature_map~{{feature_map}}"
DECAYS = sorted(map(float, STUDY["growth"]["decays"]))


rule estimate_growth:
    input:
        growth_input,
    output:
        f"{GROWTH}.csv",
    log:
        f"{R}/logs/estimate_growth/{{source}}/d~{{d}}/feature_map~{{feature_map}}.log",
    benchmark:
        f"{R}/benchmarks/estimate_growth/{{source}}/d~{{d}}/feature_map~{{feature_map}}.tsv"
    conda:
        "../../envs/linalg.yaml"
    resources:
        mem_mb=growth_memory,
    params:
        code=digest("estimate_growth.py", "linalg"),
        rows=growth_rows,
        decays=options(decays=DECAYS),
    shell:
        "python scripts/estimate_growth.py --source {wildcards.source} --d {wildcards.d}"
        " --feature-map {wildcards.feature_map} {params.rows} {params.decays}"
        " --output {output} 2> {log}"


rule gather_growth:
    input:
        [
            f"{R}/growth/source~{source}/d~{d}/feature_map~{name}.csv"
            for source, d, name in COMBINATIONS
        ],
    output:
        f"{R}/tables/growth.csv",
    log:
        f"{R}/logs/gather_growth.log",
    benchmark:
        f"{R}/benchmarks/gather_growth.tsv"
    conda:
        "../../envs/linalg.yaml"
    resources:
        mem_mb=500,
    params:
        code=digest("gather_growth.py", "linalg"),
        decays=options(decays=1 + len(DECAYS)),
    shell:
        "python scripts/gather_growth.py {params.decays} --output {output} --input {input} 2> {log}"


rule compare_growth:
    input:
        growth=f"{R}/tables/growth.csv",
        spectrum=f"{R}/tables/spectrum.csv",
    output:
        sizes=f"{R}/tables/growth_sizes.csv",
        slopes=f"{R}/tables/growth_slopes.csv",
    log:
        f"{R}/logs/compare_growth.log",
    benchmark:
        f"{R}/benchmarks/compare_growth.tsv"
    conda:
        "../../envs/tables.yaml"
    resources:
        mem_mb=2000,
    params:
        code=digest("compare_growth.py", "tables"),
    shell:
        "python scripts/compare_growth.py --growth {input.growth} --spectrum {input.spectrum}"
        " --sizes {output.sizes} --slopes {output.slopes} 2> {log}"
