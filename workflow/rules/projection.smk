rule project_draws:
    input:
        source_file,
    output:
        table=f"{R}/projection/arrays/{LENGTH}.csv",
        needed=f"{R}/projection_needed/arrays/{LENGTH}.csv",
        uniform=f"{R}/projection_uniform/arrays/{LENGTH}.csv",
    log:
        f"{R}/logs/project_draws/{LENGTH}.log",
    benchmark:
        f"{R}/benchmarks/project_draws/{LENGTH}.tsv"
    conda:
        "../../envs/linalg.yaml"
    resources:
        mem_mb=length_memory(resources.projection_megabytes),
        runtime=length_minutes,
    params:
        code=digest("project_draws.py", "linalg"),
    shell:
        "python $SCRIPTS/project_draws.py --source {wildcards.source} --N {wildcards.N}"
        " --input {input} --output {output.table} --needed {output.needed}"
        " --uniform {output.uniform} 2> {log}"


rule project_heads:
    input:
        weights=model_wheel("weights"),
        text=model_wheel("text"),
    output:
        table=f"{R}/projection_heads/model/{LENGTH}.csv",
        uniform=f"{R}/projection_uniform/model/{LENGTH}.csv",
    log:
        f"{R}/logs/project_heads/{LENGTH}.log",
    benchmark:
        f"{R}/benchmarks/project_heads/{LENGTH}.tsv"
    priority: concentration_first
    conda:
        "../../envs/model.yaml"
    resources:
        mem_mb=length_memory(resources.projection_megabytes),
        runtime=length_minutes,
    params:
        code=digest("project_heads.py", "model"),
        options=first_window,
    shell:
        "python $SCRIPTS/project_heads.py --source {wildcards.source} --weights {input.weights}"
        " --text {input.text} {params.options} --output {output.table}"
        " --uniform {output.uniform} 2> {log}"


rule gather_lengths:
    input:
        lambda w: projected(w.table),
    output:
        f"{R}/tables/{{table}}.csv",
    log:
        f"{R}/logs/gather_lengths/{{table}}.log",
    benchmark:
        f"{R}/benchmarks/gather_lengths/{{table}}.tsv"
    wildcard_constraints:
        table="projection|projection_needed|projection_uniform|projection_heads",
    conda:
        "../../envs/linalg.yaml"
    resources:
        mem_mb=500,
    params:
        code=digest("gather_lengths.py", "linalg"),
    shell:
        "python $SCRIPTS/gather_lengths.py --input {input} --output {output} 2> {log}"


rule plot_projection:
    input:
        projection=f"{R}/tables/projection.csv",
        needed=f"{R}/tables/projection_needed.csv",
    output:
        pdf=f"{R}/figures/projection.pdf",
        svg=report(
            f"{R}/figures/projection.svg",
            caption="../report/projection.rst",
            category="3. Spectrum",
            labels={"result": "Linformer's theorem 1, relative and additive"},
        ),
        png=f"{R}/figures/projection.png",
    log:
        f"{R}/logs/plot_projection.log",
    benchmark:
        f"{R}/benchmarks/plot_projection.tsv"
    conda:
        "../../envs/figures.yaml"
    resources:
        mem_mb=500,
    params:
        code=digest("plot_projection.py", "figures"),
        options=FIGURE_OPTIONS,
    shell:
        "python $SCRIPTS/plot_projection.py --projection {input.projection}"
        " --needed {input.needed} {params.options} --output {output} 2> {log}"
