rule build_cell:
    input:
        source_file,
    output:
        f"{CELL}/factors.npz",
    log:
        f"{CELL}/logs/build_cell.log",
    benchmark:
        f"{CELL}/benchmarks/build_cell.tsv"
    conda:
        "../../envs/linalg.yaml"
    params:
        code=digest("build_cell.py", "linalg"),
    resources:
        mem_mb=memory_of("build_cell"),
    shell:
        "python scripts/build_cell.py --source {wildcards.source} --N {wildcards.N}"
        " --d {wildcards.d} --feature-map {wildcards.feature_map}"
        " --input {input} --output {output} 2> {log}"


# Large cells first: the longest job should not be the last to start.
rule compute_singular_values:
    input:
        f"{CELL}/factors.npz",
    output:
        f"{CELL}/singular_values.npz",
    log:
        f"{CELL}/logs/compute_singular_values.log",
    benchmark:
        f"{CELL}/benchmarks/compute_singular_values.tsv"
    conda:
        "../../envs/linalg.yaml"
    params:
        code=digest("compute_singular_values.py", "linalg"),
        options=options(
            max_N=STUDY["limits"]["singular_values_N"], max_N_rounded=STUDY["limits"]["rounded_N"]
        ),
    resources:
        mem_mb=memory_of("compute_singular_values"),
        runtime=minutes,
    shell:
        "python scripts/compute_singular_values.py {params.options}"
        " --input {input} --output {output} 2> {log}"


rule measure_rank:
    input:
        factors=f"{CELL}/factors.npz",
        singular_values=f"{CELL}/singular_values.npz",
    output:
        f"{CELL}/rank.csv",
    log:
        f"{CELL}/logs/measure_rank.log",
    benchmark:
        f"{CELL}/benchmarks/measure_rank.tsv"
    conda:
        "../../envs/exact.yaml"
    params:
        code=digest("measure_rank.py", "exact"),
        options=options(max_N_dense=STUDY["limits"]["dense_rank_N"]),
    resources:
        mem_mb=memory_of("measure_rank"),
        runtime=minutes,
    shell:
        "python scripts/measure_rank.py {params.options} --input {input.factors}"
        " --singular-values {input.singular_values} --output {output} 2> {log}"


rule measure_spectrum:
    input:
        factors=f"{CELL}/factors.npz",
        singular_values=f"{CELL}/singular_values.npz",
    output:
        spectrum=f"{CELL}/spectrum.csv",
        numerical_rank=f"{CELL}/numerical_rank.csv",
        singular_values=f"{CELL}/singular_values.csv",
    log:
        f"{CELL}/logs/measure_spectrum.log",
    benchmark:
        f"{CELL}/benchmarks/measure_spectrum.tsv"
    conda:
        "../../envs/linalg.yaml"
    params:
        code=digest("measure_spectrum.py", "linalg"),
    resources:
        mem_mb=memory_of("measure_spectrum"),
    shell:
        "python scripts/measure_spectrum.py --input {input.factors}"
        " --singular-values {input.singular_values} --spectrum {output.spectrum}"
        " --numerical-rank {output.numerical_rank} --decay {output.singular_values} 2> {log}"


rule check_bound:
    input:
        f"{CELL}/factors.npz",
    output:
        f"{CELL}/bound.csv",
    log:
        f"{CELL}/logs/check_bound.log",
    benchmark:
        f"{CELL}/benchmarks/check_bound.tsv"
    conda:
        "../../envs/linalg.yaml"
    params:
        code=digest("check_bound.py", "linalg"),
        max_N=options(max_N=STUDY["limits"]["bound_N"]),
        noise=options(noise=STUDY["perturbations"]["noise"]),
        ranks=options(ranks=STUDY["perturbations"]["rank"]),
    resources:
        mem_mb=memory_of("check_bound"),
        runtime=minutes,
    shell:
        "python scripts/check_bound.py {params.max_N} {params.noise} {params.ranks}"
        " --input {input} --output {output} 2> {log}"
