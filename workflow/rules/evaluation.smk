EVALUATION = STUDY["evaluation"]
ACCEPTANCE = {name: float(value) for name, value in STUDY["acceptance"].items()}
LAYERS = options(
    d_model=EVALUATION["d_model"],
    N=EVALUATION["N"],
    heads=sorted(EVALUATION["heads"]),
    score_scales=sorted(map(float, EVALUATION["score_scales"])),
    seeds=EVALUATION["seeds"],
)
LAYER_MEGABYTES = resources.layer_megabytes(EVALUATION["N"], EVALUATION["d_model"])
DRAWN_LAYERS = EVALUATION["seeds"] * len(EVALUATION["heads"]) * len(EVALUATION["score_scales"])
LAYER_SECONDS = resources.layer_seconds(EVALUATION["N"], DRAWN_LAYERS)
TASK_SECONDS = resources.task_seconds(
    EVALUATION["N"], EVALUATION["d_model"], DRAWN_LAYERS, EVALUATION["tasks"]
)
RANK_THRESHOLD = options(rank_threshold=ACCEPTANCE["rank_threshold"])


rule evaluate_layers:
    output:
        ranks=f"{R}/tables/layer_ranks.csv",
        passage=f"{R}/tables/layer_passage.csv",
    log:
        f"{R}/logs/evaluate_layers.log",
    benchmark:
        f"{R}/benchmarks/evaluate_layers.tsv"
    conda:
        "../../envs/exact.yaml"
    resources:
        mem_mb=allocated(LAYER_MEGABYTES),
        runtime=lasting(LAYER_SECONDS),
    params:
        code=digest("evaluate_layers.py", "exact"),
        layers=LAYERS,
        threshold=RANK_THRESHOLD,
    shell:
        "python $SCRIPTS/evaluate_layers.py {params.layers} {params.threshold}"
        " --ranks {output.ranks} --passage {output.passage} 2> {log}"


rule evaluate_controls:
    output:
        f"{R}/tables/contrast_controls.csv",
    log:
        f"{R}/logs/evaluate_controls.log",
    benchmark:
        f"{R}/benchmarks/evaluate_controls.tsv"
    conda:
        "../../envs/exact.yaml"
    resources:
        mem_mb=allocated(500),
        runtime=allotted(60),
    params:
        code=digest("evaluate_controls.py", "exact"),
        threshold=RANK_THRESHOLD,
    shell:
        "python $SCRIPTS/evaluate_controls.py {params.threshold} --output {output} 2> {log}"


rule evaluate_head_pairs:
    output:
        f"{R}/tables/head_pairs.csv",
    log:
        f"{R}/logs/evaluate_head_pairs.log",
    benchmark:
        f"{R}/benchmarks/evaluate_head_pairs.tsv"
    conda:
        "../../envs/exact.yaml"
    resources:
        mem_mb=allocated(500),
        runtime=allotted(60),
    params:
        code=digest("evaluate_head_pairs.py", "exact"),
        threshold=RANK_THRESHOLD,
    shell:
        "python $SCRIPTS/evaluate_head_pairs.py {params.threshold} --output {output} 2> {log}"


rule evaluate_tasks:
    output:
        runs=f"{R}/tables/task_runs.csv",
        means=f"{R}/tables/tasks.csv",
        differences=f"{R}/tables/task_differences.csv",
    log:
        f"{R}/logs/evaluate_tasks.log",
    benchmark:
        f"{R}/benchmarks/evaluate_tasks.tsv"
    conda:
        "../../envs/linalg.yaml"
    resources:
        mem_mb=allocated(resources.task_megabytes(EVALUATION["N"], EVALUATION["d_model"])),
        runtime=lasting(TASK_SECONDS),
    params:
        code=digest("evaluate_tasks.py", "linalg"),
        layers=LAYERS,
        tasks=options(tasks=EVALUATION["tasks"]),
    shell:
        "python $SCRIPTS/evaluate_tasks.py {params.layers} {params.tasks}"
        " --runs {output.runs} --output {output.means}"
        " --differences {output.differences} 2> {log}"


rule approximate_layers:
    output:
        f"{R}/tables/approximate_layers.csv",
    log:
        f"{R}/logs/approximate_layers.log",
    benchmark:
        f"{R}/benchmarks/approximate_layers.tsv"
    conda:
        "../../envs/exact.yaml"
    resources:
        mem_mb=allocated(LAYER_MEGABYTES),
        runtime=lasting(LAYER_SECONDS),
    params:
        code=digest("approximate_layers.py", "exact"),
        layers=LAYERS,
        threshold=RANK_THRESHOLD,
        ladders=ladder_options(),
    shell:
        "python $SCRIPTS/approximate_layers.py {params.layers} {params.threshold}"
        " {params.ladders} --output {output} 2> {log}"


# The record of declarations outlives the job that extends it: what `update` marks is not removed.
# A table that is damaged is deleted by what reads it, so the step keeps another record for itself.
rule judge_acceptance:
    input:
        f"{R}/tables/approximate_layers.csv",
    output:
        table=f"{R}/tables/acceptance.csv",
        history=update(f"{R}/tables/acceptance_history.csv"),
        record=update(f"{R}/declarations.csv"),
    log:
        f"{R}/logs/judge_acceptance.log",
    benchmark:
        f"{R}/benchmarks/judge_acceptance.tsv"
    conda:
        "../../envs/tables.yaml"
    resources:
        mem_mb=1000,
    params:
        code=digest("judge_acceptance.py", "tables"),
        criterion=options(**ACCEPTANCE),
    shell:
        "python $SCRIPTS/judge_acceptance.py --approximations {input} {params.criterion}"
        " --output {output.table} --history {output.history} {output.record} 2> {log}"


rule plot_acceptance:
    input:
        f"{R}/tables/acceptance.csv",
    output:
        pdf=f"{R}/figures/acceptance.pdf",
        svg=report(
            f"{R}/figures/acceptance.svg",
            caption="../report/acceptance.rst",
            category="4. Output error",
            labels={"result": "rank and acceptance"},
        ),
        png=f"{R}/figures/acceptance.png",
    log:
        f"{R}/logs/plot_acceptance.log",
    benchmark:
        f"{R}/benchmarks/plot_acceptance.tsv"
    conda:
        "../../envs/figures.yaml"
    resources:
        mem_mb=500,
    params:
        code=digest("plot_acceptance.py", "figures"),
        options=FIGURE_OPTIONS,
    shell:
        "python $SCRIPTS/plot_acceptance.py --acceptance {input} {params.options}"
        " --output {output} 2> {log}"


rule plot_contrast:
    input:
        passage=f"{R}/tables/layer_passage.csv",
        tasks=f"{R}/tables/tasks.csv",
    output:
        pdf=f"{R}/figures/contrast.pdf",
        svg=report(
            f"{R}/figures/contrast.svg",
            caption="../report/contrast.rst",
            category="5. Controls",
            labels={"result": "a contrast on its way through layers"},
        ),
        png=f"{R}/figures/contrast.png",
    log:
        f"{R}/logs/plot_contrast.log",
    benchmark:
        f"{R}/benchmarks/plot_contrast.tsv"
    conda:
        "../../envs/figures.yaml"
    resources:
        mem_mb=500,
    params:
        code=digest("plot_contrast.py", "figures"),
        options=FIGURE_OPTIONS,
    shell:
        "python $SCRIPTS/plot_contrast.py --passage {input.passage} --tasks {input.tasks}"
        " {params.options} --output {output} 2> {log}"
