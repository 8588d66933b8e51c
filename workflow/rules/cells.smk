SPECTRUM_LIMITS = options(
    max_N_dense=STUDY["limits"]["singular_values_N"], max_N_sums=STUDY["limits"]["counts_N"]
)


# A step that makes many matrices of one size keeps their memory: glibc would return each to the
# system, and half of the time would go to having it back.
REUSE_MEMORY = "MALLOC_MMAP_THRESHOLD_=33554432 MALLOC_TRIM_THRESHOLD_=268435456"


rule build_cell:
    input:
        source_file,
    output:
        f"{CELL}/factors.npz",
    log:
        f"{CELL}/logs/build_cell.log",
    benchmark:
        f"{CELL}/benchmarks/build_cell.tsv"
    priority: longest_first
    conda:
        "../../envs/linalg.yaml"
    resources:
        mem_mb=memory_of("build_cell"),
        runtime=minutes,
    params:
        code=digest("build_cell.py", "linalg"),
    shell:
        "python scripts/build_cell.py --source {wildcards.source} --N {wildcards.N}"
        " --d {wildcards.d} --feature-map {wildcards.feature_map}"
        " --input {input} --output {output} 2> {log}"


rule compute_singular_values:
    input:
        f"{CELL}/factors.npz",
    output:
        f"{CELL}/singular_values.npz",
    log:
        f"{CELL}/logs/compute_singular_values.log",
    benchmark:
        f"{CELL}/benchmarks/compute_singular_values.tsv"
    priority: longest_first
    conda:
        "../../envs/linalg.yaml"
    resources:
        mem_mb=memory_of("compute_singular_values"),
        runtime=minutes,
    params:
        code=digest("compute_singular_values.py", "linalg"),
        options=options(
            max_N=STUDY["limits"]["singular_values_N"],
            max_N_rounded=STUDY["limits"]["rounded_N"],
            rounded_members=STUDY["limits"]["rounded_members"],
        ),
    shell:
        "python scripts/compute_singular_values.py {params.options}"
        " --input {input} --output {output} 2> {log}"


rule compute_extremes:
    input:
        f"{CELL}/factors.npz",
    output:
        f"{CELL}/extremes.npz",
    log:
        f"{CELL}/logs/compute_extremes.log",
    benchmark:
        f"{CELL}/benchmarks/compute_extremes.tsv"
    priority: longest_first
    conda:
        "../../envs/linalg.yaml"
    resources:
        mem_mb=memory_of("compute_extremes"),
        runtime=minutes,
    params:
        code=digest("compute_extremes.py", "linalg"),
        options=SPECTRUM_LIMITS,
    shell:
        "python scripts/compute_extremes.py {params.options} --input {input} --output {output} 2> {log}"


rule measure_rank:
    input:
        factors=f"{CELL}/factors.npz",
        singular_values=f"{CELL}/singular_values.npz",
    output:
        rank=f"{CELL}/rank.csv",
        block_rank=f"{CELL}/block_rank.csv",
    log:
        f"{CELL}/logs/measure_rank.log",
    benchmark:
        f"{CELL}/benchmarks/measure_rank.tsv"
    priority: longest_first
    conda:
        "../../envs/exact.yaml"
    resources:
        mem_mb=memory_of("measure_rank"),
        runtime=minutes,
    params:
        code=digest("measure_rank.py", "exact"),
        options=options(max_N_dense=STUDY["limits"]["dense_rank_N"]),
    shell:
        "python scripts/measure_rank.py {params.options} --input {input.factors}"
        " --singular-values {input.singular_values} --output {output.rank}"
        " --block-rank {output.block_rank} 2> {log}"


rule measure_spectrum:
    input:
        factors=f"{CELL}/factors.npz",
        singular_values=f"{CELL}/singular_values.npz",
        extremes=f"{CELL}/extremes.npz",
    output:
        spectrum=f"{CELL}/spectrum.csv",
        numerical_rank=f"{CELL}/numerical_rank.csv",
        singular_values=f"{CELL}/singular_values.csv",
        density=f"{CELL}/spectral_density.csv",
        methods=f"{CELL}/methods.csv",
    log:
        f"{CELL}/logs/measure_spectrum.log",
    benchmark:
        f"{CELL}/benchmarks/measure_spectrum.tsv"
    priority: longest_first
    conda:
        "../../envs/linalg.yaml"
    resources:
        mem_mb=memory_of("measure_spectrum"),
        runtime=minutes,
    params:
        code=digest("measure_spectrum.py", "linalg"),
    shell:
        "python scripts/measure_spectrum.py --input {input.factors}"
        " --singular-values {input.singular_values} --extremes {input.extremes}"
        " --spectrum {output.spectrum} --numerical-rank {output.numerical_rank}"
        " --decay {output.singular_values} --density {output.density}"
        " --methods {output.methods} 2> {log}"


rule measure_baselines:
    input:
        factors=f"{CELL}/factors.npz",
        spectrum=f"{CELL}/spectrum.csv",
    output:
        f"{CELL}/baselines.csv",
    log:
        f"{CELL}/logs/measure_baselines.log",
    benchmark:
        f"{CELL}/benchmarks/measure_baselines.tsv"
    priority: longest_first
    conda:
        "../../envs/linalg.yaml"
    resources:
        mem_mb=memory_of("measure_baselines"),
        runtime=minutes,
    params:
        code=digest("measure_baselines.py", "linalg"),
        options=SPECTRUM_LIMITS,
    shell:
        "python scripts/measure_baselines.py {params.options} --input {input.factors}"
        " --spectrum {input.spectrum} --output {output} 2> {log}"


rule check_bound:
    input:
        f"{CELL}/factors.npz",
    output:
        f"{CELL}/bound.csv",
    log:
        f"{CELL}/logs/check_bound.log",
    benchmark:
        f"{CELL}/benchmarks/check_bound.tsv"
    priority: longest_first
    conda:
        "../../envs/linalg.yaml"
    resources:
        mem_mb=memory_of("check_bound"),
        runtime=minutes,
    params:
        code=digest("check_bound.py", "linalg"),
        limits=options(max_N=STUDY["limits"]["bound_N"], members=STUDY["limits"]["bound_members"]),
        ladders=ladder_options(),
        memory=REUSE_MEMORY,
    shell:
        "{params.memory} python scripts/check_bound.py {params.limits} {params.ladders}"
        " --input {input} --output {output} 2> {log}"
