rule measure_concentration:
    input:
        source_file,
    output:
        f"{R}/concentration/arrays/{LENGTH}.npz",
    log:
        f"{R}/logs/measure_concentration/{LENGTH}.log",
    benchmark:
        f"{R}/benchmarks/measure_concentration/{LENGTH}.tsv"
    priority: concentration_first
    conda:
        "../../envs/linalg.yaml"
    resources:
        mem_mb=length_memory(resources.concentration_megabytes),
        runtime=length_minutes,
    params:
        code=digest("measure_concentration.py", "linalg"),
        kinds=kinds_of,
    shell:
        "python $SCRIPTS/measure_concentration.py --source {wildcards.source} --N {wildcards.N}"
        " {params.kinds} --input {input} --output {output} 2> {log}"


rule encode_concentration:
    input:
        weights=model_wheel("weights"),
        text=model_wheel("text"),
    output:
        f"{R}/concentration/model/{LENGTH}.npz",
    log:
        f"{R}/logs/encode_concentration/{LENGTH}.log",
    benchmark:
        f"{R}/benchmarks/encode_concentration/{LENGTH}.tsv"
    priority: concentration_first
    conda:
        "../../envs/model.yaml"
    resources:
        mem_mb=length_memory(resources.concentration_megabytes),
        runtime=length_minutes,
    params:
        code=digest("encode_concentration.py", "model"),
        kinds=kinds_of,
        options=fresh_windows,
    shell:
        "python $SCRIPTS/encode_concentration.py --source {wildcards.source} {params.kinds}"
        " --weights {input.weights} --text {input.text} {params.options}"
        " --output {output} 2> {log}"


rule average_concentration:
    input:
        [concentration_file(key) for key in CONCENTRATION],
    output:
        heads=f"{R}/tables/concentration.csv",
        layers=f"{R}/tables/concentration_layers.csv",
    log:
        f"{R}/logs/average_concentration.log",
    benchmark:
        f"{R}/benchmarks/average_concentration.tsv"
    conda:
        "../../envs/linalg.yaml"
    resources:
        mem_mb=500,
    params:
        code=digest("average_concentration.py", "linalg"),
    shell:
        "python $SCRIPTS/average_concentration.py --input {input} --output {output.heads}"
        " --layers {output.layers} 2> {log}"


rule summarize_tails:
    input:
        f"{R}/tables/spectral_density.csv",
    output:
        f"{R}/tables/tails.csv",
    log:
        f"{R}/logs/summarize_tails.log",
    benchmark:
        f"{R}/benchmarks/summarize_tails.tsv"
    conda:
        "../../envs/linalg.yaml"
    resources:
        mem_mb=500,
    params:
        code=digest("summarize_tails.py", "linalg"),
    shell:
        "python $SCRIPTS/summarize_tails.py --spectral-density {input} --output {output} 2> {log}"


rule plot_concentration:
    input:
        heads=f"{R}/tables/concentration.csv",
        layers=f"{R}/tables/concentration_layers.csv",
    output:
        pdf=f"{R}/figures/concentration.pdf",
        svg=report(
            f"{R}/figures/concentration.svg",
            caption="../report/concentration.rst",
            category="3. Spectrum",
            labels={"result": "Linformer's record: cumulative singular values of the heads"},
        ),
        png=f"{R}/figures/concentration.png",
    log:
        f"{R}/logs/plot_concentration.log",
    benchmark:
        f"{R}/benchmarks/plot_concentration.tsv"
    conda:
        "../../envs/figures.yaml"
    resources:
        mem_mb=500,
    params:
        code=digest("plot_concentration.py", "figures"),
        options=FIGURE_OPTIONS,
    shell:
        "python $SCRIPTS/plot_concentration.py --concentration {input.heads}"
        " --layers {input.layers} {params.options} --output {output} 2> {log}"


rule plot_tails:
    input:
        tails=f"{R}/tables/tails.csv",
        concentration=f"{R}/tables/concentration.csv" if CONCENTRATION else [],
    output:
        pdf=f"{R}/figures/tails.pdf",
        svg=report(
            f"{R}/figures/tails.svg",
            caption="../report/tails.rst",
            category="3. Spectrum",
            labels={"result": "the spectrum's tail against N"},
        ),
        png=f"{R}/figures/tails.png",
    log:
        f"{R}/logs/plot_tails.log",
    benchmark:
        f"{R}/benchmarks/plot_tails.tsv"
    conda:
        "../../envs/figures.yaml"
    resources:
        mem_mb=500,
    params:
        code=digest("plot_tails.py", "figures"),
        options=FIGURE_OPTIONS,
    shell:
        "python $SCRIPTS/plot_tails.py --tails {input.tails}"
        " --concentration {input.concentration} {params.options} --output {output} 2> {log}"
