# What is judged is what the run has read: its digest is a parameter, and its file no input, which
# may come from a clock that is ahead (sources.smk).
rule judge_claims:
    input:
        TABLES,
    output:
        table=f"{R}/claims.csv",
        page=f"{R}/claims.md",
    log:
        f"{R}/logs/judge_claims.log",
    benchmark:
        f"{R}/benchmarks/judge_claims.tsv"
    conda:
        "../../envs/tables.yaml"
    resources:
        mem_mb=2000,
    params:
        code=digest("judge_claims.py", "tables"),
        claims=CLAIMS_DIGEST,
        path=STUDY["claims"],
    shell:
        'python $SCRIPTS/judge_claims.py --claims="$CLAIMS" --stated-in={params.path:q}'
        " --tables {input} --output {output.table} --markdown {output.page} 2> {log}"


rule typeset_claims:
    input:
        f"{R}/claims.csv",
    output:
        f"{R}/tables/claims.tex",
    log:
        f"{R}/logs/typeset_claims.log",
    benchmark:
        f"{R}/benchmarks/typeset_claims.tsv"
    conda:
        "../../envs/tables.yaml"
    resources:
        mem_mb=1000,
    params:
        code=digest("typeset_table.py", "tables"),
    shell:
        "python $SCRIPTS/typeset_table.py --what claims --input {input} --output {output} 2> {log}"
