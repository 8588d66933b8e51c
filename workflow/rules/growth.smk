DECAYS = sorted(map(float, STUDY["growth"]["decays"]))
GROWTH_STEPS = {"growth": "estimate_growth", "horizon": "find_horizons"}


rule estimate_growth:
    input:
        lambda w: read_source(GROWTH_BATCHES[w.batch]),
    output:
        f"{GROWTH_BATCH}/estimate_growth.txt",
    log:
        f"{GROWTH_BATCH}/logs/estimate_growth.log",
    benchmark:
        f"{GROWTH_BATCH}/benchmarks/estimate_growth.tsv"
    priority: longest_growth_first
    conda:
        "../../envs/linalg.yaml"
    resources:
        mem_mb=allocated(growth_memory),
        runtime=growth_minutes,
    params:
        code=digest("estimate_growth.py", "linalg"),
        rows=lambda w: rows(GROWTH_BATCHES[w.batch]),
        decays=options(decays=DECAYS),
        cells=growth_cells_of,
    shell:
        "python $SCRIPTS/estimate_growth.py --code {params.code} {params.rows} {params.decays}"
        " {params.cells} --manifest {output} 2> {log}"


rule find_horizons:
    input:
        lambda w: read_source(GROWTH_BATCHES[w.batch]),
    output:
        f"{GROWTH_BATCH}/find_horizons.txt",
    log:
        f"{GROWTH_BATCH}/logs/find_horizons.log",
    benchmark:
        f"{GROWTH_BATCH}/benchmarks/find_horizons.tsv"
    priority: longest_growth_first
    conda:
        "../../envs/linalg.yaml"
    resources:
        mem_mb=allocated(horizon_memory),
        runtime=horizon_minutes,
    params:
        code=digest("find_horizons.py", "linalg"),
        rows=horizon_rows,
        longest=options(longest=STUDY["limits"]["horizon_N"]),
        cells=growth_cells_of,
    shell:
        "python $SCRIPTS/find_horizons.py --code {params.code} {params.rows} {params.longest}"
        " {params.cells} --manifest {output} 2> {log}"


rule gather_combinations:
    input:
        lambda w: growth_manifests(GROWTH_STEPS[w.table]),
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
        cells=options(cells_digests=[batches.digest(growth_folders(x)) for x in GROWTH_BATCHES]),
    shell:
        "python $SCRIPTS/gather_combinations.py --table {wildcards.table} {params.rows}"
        " {params.cells} --output {output} --read {input} 2> {log}"


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
        "python $SCRIPTS/compare_growth.py --growth {input.growth} --spectrum {input.spectrum}"
        " --sizes {output.sizes} --slopes {output.slopes} 2> {log}"
