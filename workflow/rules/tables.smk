rule gather_table:
    input:
        lambda w: manifests(GATHERED[w.table]),
    output:
        f"{R}/tables/{{table}}.csv",
    log:
        f"{R}/logs/gather_table/{{table}}.log",
    benchmark:
        f"{R}/benchmarks/gather_table/{{table}}.tsv"
    wildcard_constraints:
        table="|".join(GATHERED),
    conda:
        "../../envs/linalg.yaml"
    resources:
        mem_mb=2000,
    params:
        code=digest("gather_table.py", "linalg"),
        members=options(
            members=[
                f"{name}={members(STUDY['sources'][name])}"
                for name in sorted({cell.source for cell in GRID})
            ]
        ),
        cells=options(cells_digests=[batches.digest(folders(name)) for name in BATCHES]),
    shell:
        "python $SCRIPTS/gather_table.py --table {wildcards.table} --read {input}"
        " {params.cells} {params.members} --output {output} 2> {log}"


rule compare_verdicts:
    input:
        rank=f"{R}/tables/rank.csv",
        numerical_rank=f"{R}/tables/numerical_rank.csv",
        spectrum=f"{R}/tables/spectrum.csv",
    output:
        f"{R}/tables/verdicts.csv",
    log:
        f"{R}/logs/compare_verdicts.log",
    benchmark:
        f"{R}/benchmarks/compare_verdicts.tsv"
    conda:
        "../../envs/tables.yaml"
    resources:
        mem_mb=2000,
    params:
        code=digest("compare_verdicts.py", "tables"),
    shell:
        "python $SCRIPTS/compare_verdicts.py --rank {input.rank}"
        " --numerical-rank {input.numerical_rank} --spectrum {input.spectrum}"
        " --output {output} 2> {log}"


rule summarize_members:
    input:
        verdicts=f"{R}/tables/verdicts.csv",
        spectrum=f"{R}/tables/spectrum.csv",
    output:
        f"{R}/tables/summary.csv",
    log:
        f"{R}/logs/summarize_members.log",
    benchmark:
        f"{R}/benchmarks/summarize_members.tsv"
    conda:
        "../../envs/tables.yaml"
    resources:
        mem_mb=2000,
    params:
        code=digest("summarize_members.py", "tables"),
    shell:
        "python $SCRIPTS/summarize_members.py --verdicts {input.verdicts}"
        " --spectrum {input.spectrum} --output {output} 2> {log}"


rule average_heads:
    input:
        spectrum=f"{R}/tables/spectrum.csv",
        members=[f"{R}/sources/model/source~{name}.members.csv" for name in MODELS],
    output:
        f"{R}/tables/heads.csv",
    log:
        f"{R}/logs/average_heads.log",
    benchmark:
        f"{R}/benchmarks/average_heads.tsv"
    conda:
        "../../envs/tables.yaml"
    resources:
        mem_mb=2000,
    params:
        code=digest("average_heads.py", "tables"),
        sources=options(source=MODELS),
    shell:
        "python $SCRIPTS/average_heads.py --spectrum {input.spectrum} {params.sources}"
        " --members {input.members} --output {output} 2> {log}"


rule list_left_cells:
    output:
        f"{R}/tables/left_the_grid.csv",
    log:
        f"{R}/logs/list_left_cells.log",
    benchmark:
        f"{R}/benchmarks/list_left_cells.tsv"
    conda:
        "../../envs/linalg.yaml"
    resources:
        mem_mb=500,
    params:
        code=digest("list_left_cells.py", "linalg"),
        cells=options(cells=left_the_grid()),
    shell:
        "python $SCRIPTS/list_left_cells.py {params.cells} --output {output} 2> {log}"


rule typeset_by_N:
    input:
        f"{R}/tables/summary.csv",
    output:
        f"{R}/tables/by_N.tex",
    log:
        f"{R}/logs/typeset_by_N.log",
    benchmark:
        f"{R}/benchmarks/typeset_by_N.tsv"
    conda:
        "../../envs/tables.yaml"
    resources:
        mem_mb=1000,
    params:
        code=digest("typeset_table.py", "tables"),
    shell:
        "python $SCRIPTS/typeset_table.py --what by_N --input {input} --output {output} 2> {log}"
