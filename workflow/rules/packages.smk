rule list_packages:
    output:
        f"{R}/packages/{{environment}}.csv",
    log:
        f"{R}/logs/list_packages/{{environment}}.log",
    benchmark:
        f"{R}/benchmarks/list_packages/{{environment}}.tsv"
    wildcard_constraints:
        environment="|".join(ENVIRONMENT_NAMES),
    conda:
        "../../envs/{environment}.yaml"
    resources:
        mem_mb=500,
    params:
        code=lambda w: digest("list_packages.py", w.environment),
        situation=PACKAGES_FROM,
        pins=lambda w: options(pins=exact_pins(w.environment)) if DEPLOYED else "",
    shell:
        "python $SCRIPTS/list_packages.py --environment {wildcards.environment}"
        " --packages-from {params.situation} {params.pins} --output {output} 2> {log}"


rule gather_packages:
    input:
        expand(f"{R}/packages/{{environment}}.csv", environment=ENVIRONMENT_NAMES),
    output:
        f"{R}/tables/packages.csv",
    log:
        f"{R}/logs/gather_packages.log",
    benchmark:
        f"{R}/benchmarks/gather_packages.tsv"
    conda:
        "../../envs/linalg.yaml"
    resources:
        mem_mb=500,
    params:
        code=digest("gather_packages.py", "linalg"),
    shell:
        "python $SCRIPTS/gather_packages.py --input {input} --output {output} 2> {log}"
