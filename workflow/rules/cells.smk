SPECTRUM_LIMITS = options(
    max_N_dense=STUDY["limits"]["singular_values_N"], max_N_sums=STUDY["limits"]["counts_N"]
)


# A step that makes many matrices of one size keeps their memory: glibc would return each to the
# system, and half of the time would go to having it back.
REUSE_MEMORY = "MALLOC_MMAP_THRESHOLD_=33554432 MALLOC_TRIM_THRESHOLD_=268435456"


# Steps write the files of a batch's cells to the cells' own folders, beside receipts by which they
# are reused. The graph knows of a manifest alone, which is there when no cell of the batch failed.
# On a cluster, the steps of a batch are one submission: groups are what hangs together.
rule build_cell:
    input:
        lambda w: read_source(BATCHES[w.batch]),
    output:
        f"{BATCH}/build_cell.txt",
    log:
        f"{BATCH}/logs/build_cell.log",
    benchmark:
        f"{BATCH}/benchmarks/build_cell.tsv"
    priority: longest_first
    group:
        "batch"
    conda:
        "../../envs/linalg.yaml"
    resources:
        mem_mb=memory_of("build_cell"),
        runtime=minutes_of("build_cell"),
    params:
        code=digest("build_cell.py", "linalg"),
        rows=cell_rows,
        cells=cells_of,
    shell:
        "python $SCRIPTS/build_cell.py --code {params.code} {params.rows} {params.cells}"
        " --manifest {output} 2> {log}"


rule compute_singular_values:
    input:
        f"{BATCH}/build_cell.txt",
    output:
        f"{BATCH}/compute_singular_values.txt",
    log:
        f"{BATCH}/logs/compute_singular_values.log",
    benchmark:
        f"{BATCH}/benchmarks/compute_singular_values.tsv"
    priority: longest_first
    group:
        "batch"
    conda:
        "../../envs/linalg.yaml"
    resources:
        mem_mb=memory_of("compute_singular_values"),
        runtime=minutes_of("compute_singular_values"),
    params:
        code=digest("compute_singular_values.py", "linalg"),
        options=options(
            max_N=STUDY["limits"]["singular_values_N"],
            max_N_rounded=STUDY["limits"]["rounded_N"],
            rounded_members=STUDY["limits"]["rounded_members"],
        ),
        cells=cells_digest,
    shell:
        "python $SCRIPTS/compute_singular_values.py --code {params.code} {params.options}"
        " {params.cells} --read {input} --manifest {output} 2> {log}"


rule compute_extremes:
    input:
        f"{BATCH}/build_cell.txt",
    output:
        f"{BATCH}/compute_extremes.txt",
    log:
        f"{BATCH}/logs/compute_extremes.log",
    benchmark:
        f"{BATCH}/benchmarks/compute_extremes.tsv"
    priority: longest_first
    group:
        "batch"
    conda:
        "../../envs/linalg.yaml"
    resources:
        mem_mb=memory_of("compute_extremes"),
        runtime=minutes_of("compute_extremes"),
    params:
        code=digest("compute_extremes.py", "linalg"),
        options=SPECTRUM_LIMITS,
        cells=cells_digest,
    shell:
        "python $SCRIPTS/compute_extremes.py --code {params.code} {params.options} {params.cells}"
        " --read {input} --manifest {output} 2> {log}"


rule measure_rank:
    input:
        f"{BATCH}/build_cell.txt",
        f"{BATCH}/compute_singular_values.txt",
    output:
        f"{BATCH}/measure_rank.txt",
    log:
        f"{BATCH}/logs/measure_rank.log",
    benchmark:
        f"{BATCH}/benchmarks/measure_rank.tsv"
    priority: longest_first
    group:
        "batch"
    conda:
        "../../envs/exact.yaml"
    resources:
        mem_mb=memory_of("measure_rank"),
        runtime=minutes_of("measure_rank"),
    params:
        code=digest("measure_rank.py", "exact"),
        options=options(max_N_dense=STUDY["limits"]["dense_rank_N"]),
        cells=cells_digest,
    shell:
        "python $SCRIPTS/measure_rank.py --code {params.code} {params.options} {params.cells}"
        " --read {input} --manifest {output} 2> {log}"


rule measure_spectrum:
    input:
        f"{BATCH}/build_cell.txt",
        f"{BATCH}/compute_singular_values.txt",
        f"{BATCH}/compute_extremes.txt",
    output:
        f"{BATCH}/measure_spectrum.txt",
    log:
        f"{BATCH}/logs/measure_spectrum.log",
    benchmark:
        f"{BATCH}/benchmarks/measure_spectrum.tsv"
    priority: longest_first
    group:
        "batch"
    conda:
        "../../envs/linalg.yaml"
    resources:
        mem_mb=memory_of("measure_spectrum"),
        runtime=minutes_of("measure_spectrum"),
    params:
        code=digest("measure_spectrum.py", "linalg"),
        cells=cells_digest,
    shell:
        "python $SCRIPTS/measure_spectrum.py --code {params.code} {params.cells}"
        " --read {input} --manifest {output} 2> {log}"


rule measure_baselines:
    input:
        f"{BATCH}/build_cell.txt",
        f"{BATCH}/measure_spectrum.txt",
    output:
        f"{BATCH}/measure_baselines.txt",
    log:
        f"{BATCH}/logs/measure_baselines.log",
    benchmark:
        f"{BATCH}/benchmarks/measure_baselines.tsv"
    priority: longest_first
    group:
        "batch"
    conda:
        "../../envs/linalg.yaml"
    resources:
        mem_mb=memory_of("measure_baselines"),
        runtime=minutes_of("measure_baselines"),
    params:
        code=digest("measure_baselines.py", "linalg"),
        options=SPECTRUM_LIMITS,
        cells=cells_digest,
    shell:
        "python $SCRIPTS/measure_baselines.py --code {params.code} {params.options} {params.cells}"
        " --read {input} --manifest {output} 2> {log}"


rule check_bound:
    input:
        f"{BATCH}/build_cell.txt",
    output:
        f"{BATCH}/check_bound.txt",
    log:
        f"{BATCH}/logs/check_bound.log",
    benchmark:
        f"{BATCH}/benchmarks/check_bound.tsv"
    priority: longest_first
    group:
        "batch"
    conda:
        "../../envs/linalg.yaml"
    resources:
        mem_mb=memory_of("check_bound"),
        runtime=minutes_of("check_bound"),
    params:
        code=digest("check_bound.py", "linalg"),
        limits=options(max_N=STUDY["limits"]["bound_N"], members=STUDY["limits"]["bound_members"]),
        ladders=ladder_options(),
        memory=REUSE_MEMORY,
        cells=cells_digest,
    shell:
        "{params.memory} python $SCRIPTS/check_bound.py --code {params.code} {params.limits}"
        " {params.ladders} {params.cells} --read {input} --manifest {output} 2> {log}"
