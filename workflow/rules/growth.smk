COMBINATION = "source~{source}/d~{d}/feature_map~{feature_map}"
DECAYS = sorted(map(float, STUDY["growth"]["decays"]))


rule estimate_growth:
    input:
        growth_input,
    output:
        f"{R}/growth/{COMBINATION}.csv",
    log:
        f"{R}/logs/estimate_growth/{COMBINATION}.log",
    benchmark:
        f"{R}/benchmarks/estimate_growth/{COMBINATION}.tsv"
    conda:
        "../../envs/linalg.yaml"
    resources:
        mem_mb=allocated(growth_memory),
        runtime=allotted(120),
    params:
        code=digest("estimate_growth.py", "linalg"),
        rows=growth_rows,
        decays=options(decays=DECAYS),
    shell:
        "python scripts/estimate_growth.py --source {wildcards.source} --d {wildcards.d}"
        " --feature-map {wildcards.feature_map} {params.rows} {params.decays}"
        " --output {output} 2> {log}"


rule find_horizons:
    input:
        growth_input,
    output:
        f"{R}/horizon/{COMBINATION}.csv",
    log:
        f"{R}/logs/find_horizons/{COMBINATION}.log",
    benchmark:
        f"{R}/benchmarks/find_horizons/{COMBINATION}.tsv"
    conda:
        "../../envs/linalg.yaml"
    resources:
        mem_mb=allocated(horizon_memory),
        runtime=allotted(120),
    params:
        code=digest("find_horizons.py", "linalg"),
        rows=horizon_rows,
        longest=options(longest=STUDY["limits"]["horizon_N"]),
    shell:
        "python scripts/find_horizons.py --source {wildcards.source} --d {wildcards.d}"
        " --feature-map {wildcards.feature_map} {params.rows} {params.longest}"
        " --output {output} 2> {log}"


rule gather_combinations:
    input:
        [
            f"{R}/{{table}}/source~{source}/d~{d}/feature_map~{name}.csv"
            for source, d, name in COMBINATIONS
        ],
    output:
        f"{R}/tables/{{table}}.csv",
    log:
        f"{R}/logs/gather_combinations/{{table}}.log",
    benchmark:
        f"{R}/benchmarks/gather_combinations/{{table}}.tsv"
    wildcard_constraints:
        table="growth|horizon",
    conda:
        "../../envs/linalg.yaml"
    resources:
        mem_mb=500,
    params:
        code=digest("gather_combinations.py", "linalg"),
        rows=lambda w: options(rows_per_member=8 if w.table == "horizon" else 1 + len(DECAYS)),
    shell:
        "python scripts/gather_combinations.py --table {wildcards.table} {params.rows}"
        " --output {output} --input {input} 2> {log}"


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
