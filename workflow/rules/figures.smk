FIGURE_OPTIONS = options(dpi=STUDY["figures"]["dpi"], font_size=STUDY["figures"]["font_size"])
FIGURES = [
    f"{R}/figures/{name}.{extension}"
    for name in (
        "claims",
        "rank_against_d",
        "singular_value_decay",
        "spectral_density",
        "against_N",
        "baselines",
        "growth",
        "horizon",
        *(["depth_by_head"] if MODELS else []),
        *(["concentration"] if any(map(is_model, CONCENTRATION)) else []),
        "tails",
        *(["projection"] if "projection" in PROJECTED else []),
        "bound_tightness",
        "matrix_against_output",
        "acceptance",
        "contrast",
        "two_token",
        "running_sum",
        "rank_one_softmax",
    )
    for extension in ("pdf", "svg", "png")
]
HEADLINES = (
    "rank_against_d",
    "against_N",
    "horizon",
    *(["concentration"] if any(map(is_model, CONCENTRATION)) else []),
    *(["projection"] if "projection" in PROJECTED else []),
    "bound_tightness",
    "acceptance",
)
PAGE_NAMES = ("claims", "summary", "verdicts", "acceptance", "acceptance_history", "packages")
PAGES = [f"{R}/pages/{name}.html" for name in PAGE_NAMES]
GALLERY = [f"{R}/gallery/{name}.png" for name in HEADLINES]


# A figure costs more in imports than in drawing: on a cluster, all of them go in one submission.
rule plot_claims:
    input:
        f"{R}/claims.csv",
    output:
        pdf=f"{R}/figures/claims.pdf",
        svg=report(
            f"{R}/figures/claims.svg",
            caption="../report/claims.rst",
            category="1. Claims",
            labels={"claims": "all, on one page"},
        ),
        png=f"{R}/figures/claims.png",
    log:
        f"{R}/logs/plot_claims.log",
    benchmark:
        f"{R}/benchmarks/plot_claims.tsv"
    conda:
        "../../envs/figures.yaml"
    resources:
        mem_mb=500,
    params:
        code=digest("plot_claims.py", "figures"),
        options=FIGURE_OPTIONS,
    shell:
        "python $SCRIPTS/plot_claims.py --claims {input} {params.options}"
        " --output {output} 2> {log}"


rule plot_rank_against_d:
    input:
        f"{R}/tables/summary.csv",
    output:
        pdf=f"{R}/figures/rank_against_d.pdf",
        svg=report(
            f"{R}/figures/rank_against_d.svg",
            caption="../report/rank_against_d.rst",
            category="2. Rank",
            labels={"result": "rank against d"},
        ),
        png=f"{R}/figures/rank_against_d.png",
    log:
        f"{R}/logs/plot_rank_against_d.log",
    benchmark:
        f"{R}/benchmarks/plot_rank_against_d.tsv"
    conda:
        "../../envs/figures.yaml"
    resources:
        mem_mb=500,
    params:
        code=digest("plot_rank_against_d.py", "figures"),
        options=FIGURE_OPTIONS,
    shell:
        "python $SCRIPTS/plot_rank_against_d.py --summary {input} {params.options}"
        " --output {output} 2> {log}"


rule plot_rank_one_softmax:
    input:
        f"{R}/tables/rank_one_softmax.csv",
    output:
        pdf=f"{R}/figures/rank_one_softmax.pdf",
        svg=report(
            f"{R}/figures/rank_one_softmax.svg",
            caption="../report/rank_one_softmax.rst",
            category="5. Controls",
            labels={"result": "softmax of rank-one scores"},
        ),
        png=f"{R}/figures/rank_one_softmax.png",
    log:
        f"{R}/logs/plot_rank_one_softmax.log",
    benchmark:
        f"{R}/benchmarks/plot_rank_one_softmax.tsv"
    conda:
        "../../envs/figures.yaml"
    resources:
        mem_mb=500,
    params:
        code=digest("plot_rank_one_softmax.py", "figures"),
        options=FIGURE_OPTIONS,
    shell:
        "python $SCRIPTS/plot_rank_one_softmax.py --rank-one-softmax {input} {params.options}"
        " --output {output} 2> {log}"


rule plot_singular_value_decay:
    input:
        f"{R}/tables/singular_values.csv",
    output:
        pdf=f"{R}/figures/singular_value_decay.pdf",
        svg=report(
            f"{R}/figures/singular_value_decay.svg",
            caption="../report/singular_value_decay.rst",
            category="3. Spectrum",
            labels={"result": "singular value decay"},
        ),
        png=f"{R}/figures/singular_value_decay.png",
    log:
        f"{R}/logs/plot_singular_value_decay.log",
    benchmark:
        f"{R}/benchmarks/plot_singular_value_decay.tsv"
    conda:
        "../../envs/figures.yaml"
    resources:
        mem_mb=500,
    params:
        code=digest("plot_singular_value_decay.py", "figures"),
        options=FIGURE_OPTIONS,
    shell:
        "python $SCRIPTS/plot_singular_value_decay.py --singular-values {input} {params.options}"
        " --output {output} 2> {log}"


rule plot_spectral_density:
    input:
        f"{R}/tables/spectral_density.csv",
    output:
        pdf=f"{R}/figures/spectral_density.pdf",
        svg=report(
            f"{R}/figures/spectral_density.svg",
            caption="../report/spectral_density.rst",
            category="3. Spectrum",
            labels={"result": "share of singular values above a level"},
        ),
        png=f"{R}/figures/spectral_density.png",
    log:
        f"{R}/logs/plot_spectral_density.log",
    benchmark:
        f"{R}/benchmarks/plot_spectral_density.tsv"
    conda:
        "../../envs/figures.yaml"
    resources:
        mem_mb=500,
    params:
        code=digest("plot_spectral_density.py", "figures"),
        options=FIGURE_OPTIONS,
    shell:
        "python $SCRIPTS/plot_spectral_density.py --spectral-density {input} {params.options}"
        " --output {output} 2> {log}"


rule plot_against_N:
    input:
        summary=f"{R}/tables/summary.csv",
        all_ones=f"{R}/tables/all_ones.csv",
    output:
        pdf=f"{R}/figures/against_N.pdf",
        svg=report(
            f"{R}/figures/against_N.svg",
            caption="../report/against_N.rst",
            category="3. Spectrum",
            labels={"result": "stable rank and condition number against N"},
        ),
        png=f"{R}/figures/against_N.png",
    log:
        f"{R}/logs/plot_against_N.log",
    benchmark:
        f"{R}/benchmarks/plot_against_N.tsv"
    conda:
        "../../envs/figures.yaml"
    resources:
        mem_mb=500,
    params:
        code=digest("plot_against_N.py", "figures"),
        options=FIGURE_OPTIONS,
    shell:
        "python $SCRIPTS/plot_against_N.py --summary {input.summary} --all-ones {input.all_ones} {params.options}"
        " --output {output} 2> {log}"


rule plot_baselines:
    input:
        f"{R}/tables/baselines.csv",
    output:
        pdf=f"{R}/figures/baselines.pdf",
        svg=report(
            f"{R}/figures/baselines.svg",
            caption="../report/baselines.rst",
            category="3. Spectrum",
            labels={"result": "what queries and keys add to the mask"},
        ),
        png=f"{R}/figures/baselines.png",
    log:
        f"{R}/logs/plot_baselines.log",
    benchmark:
        f"{R}/benchmarks/plot_baselines.tsv"
    conda:
        "../../envs/figures.yaml"
    resources:
        mem_mb=500,
    params:
        code=digest("plot_baselines.py", "figures"),
        options=FIGURE_OPTIONS,
    shell:
        "python $SCRIPTS/plot_baselines.py --baselines {input} {params.options}"
        " --output {output} 2> {log}"


rule plot_growth:
    input:
        growth=f"{R}/tables/growth.csv",
        sizes=f"{R}/tables/growth_sizes.csv",
        slopes=f"{R}/tables/growth_slopes.csv",
    output:
        pdf=f"{R}/figures/growth.pdf",
        svg=report(
            f"{R}/figures/growth.svg",
            caption="../report/growth.rst",
            category="3. Spectrum",
            labels={"result": "growth law of conditioning"},
        ),
        png=f"{R}/figures/growth.png",
    log:
        f"{R}/logs/plot_growth.log",
    benchmark:
        f"{R}/benchmarks/plot_growth.tsv"
    conda:
        "../../envs/figures.yaml"
    resources:
        mem_mb=500,
    params:
        code=digest("plot_growth.py", "figures"),
        options=FIGURE_OPTIONS,
    shell:
        "python $SCRIPTS/plot_growth.py --growth {input.growth} --sizes {input.sizes}"
        " --slopes {input.slopes} {params.options} --output {output} 2> {log}"


rule plot_horizon:
    input:
        f"{R}/tables/horizon.csv",
    output:
        pdf=f"{R}/figures/horizon.pdf",
        svg=report(
            f"{R}/figures/horizon.svg",
            caption="../report/horizon.rst",
            category="3. Spectrum",
            labels={"result": "from which N on a matrix is numerically singular"},
        ),
        png=f"{R}/figures/horizon.png",
    log:
        f"{R}/logs/plot_horizon.log",
    benchmark:
        f"{R}/benchmarks/plot_horizon.tsv"
    conda:
        "../../envs/figures.yaml"
    resources:
        mem_mb=500,
    params:
        code=digest("plot_horizon.py", "figures"),
        options=FIGURE_OPTIONS,
    shell:
        "python $SCRIPTS/plot_horizon.py --horizon {input} {params.options}"
        " --output {output} 2> {log}"


rule plot_depth_by_head:
    input:
        f"{R}/tables/heads.csv",
    output:
        pdf=f"{R}/figures/depth_by_head.pdf",
        svg=report(
            f"{R}/figures/depth_by_head.svg",
            caption="../report/depth_by_head.rst",
            category="3. Spectrum",
            labels={"result": "heads of the model, layer by head"},
        ),
        png=f"{R}/figures/depth_by_head.png",
    log:
        f"{R}/logs/plot_depth_by_head.log",
    benchmark:
        f"{R}/benchmarks/plot_depth_by_head.tsv"
    conda:
        "../../envs/figures.yaml"
    resources:
        mem_mb=500,
    params:
        code=digest("plot_depth_by_head.py", "figures"),
        options=FIGURE_OPTIONS,
    shell:
        "python $SCRIPTS/plot_depth_by_head.py --heads {input} {params.options}"
        " --output {output} 2> {log}"


rule plot_bound_tightness:
    input:
        f"{R}/tables/bound.csv",
    output:
        pdf=f"{R}/figures/bound_tightness.pdf",
        svg=report(
            f"{R}/figures/bound_tightness.svg",
            caption="../report/bound_tightness.rst",
            category="4. Output error",
            labels={"result": "approximations, their errors and three bounds"},
        ),
        png=f"{R}/figures/bound_tightness.png",
    log:
        f"{R}/logs/plot_bound_tightness.log",
    benchmark:
        f"{R}/benchmarks/plot_bound_tightness.tsv"
    conda:
        "../../envs/figures.yaml"
    resources:
        mem_mb=500,
    params:
        code=digest("plot_bound_tightness.py", "figures"),
        options=FIGURE_OPTIONS,
    shell:
        "python $SCRIPTS/plot_bound_tightness.py --bound {input} {params.options}"
        " --output {output} 2> {log}"


rule plot_matrix_against_output:
    input:
        bound=f"{R}/tables/bound.csv",
        controls=f"{R}/tables/matrix_against_output.csv",
    output:
        pdf=f"{R}/figures/matrix_against_output.pdf",
        svg=report(
            f"{R}/figures/matrix_against_output.svg",
            caption="../report/matrix_against_output.rst",
            category="4. Output error",
            labels={"result": "error of the output against that of the matrix"},
        ),
        png=f"{R}/figures/matrix_against_output.png",
    log:
        f"{R}/logs/plot_matrix_against_output.log",
    benchmark:
        f"{R}/benchmarks/plot_matrix_against_output.tsv"
    conda:
        "../../envs/figures.yaml"
    resources:
        mem_mb=1000,
    params:
        code=digest("plot_matrix_against_output.py", "figures"),
        options=FIGURE_OPTIONS,
    shell:
        "python $SCRIPTS/plot_matrix_against_output.py --bound {input.bound}"
        " --controls {input.controls} {params.options} --output {output} 2> {log}"


rule plot_two_token:
    input:
        f"{R}/tables/two_token.csv",
    output:
        pdf=f"{R}/figures/two_token.pdf",
        svg=report(
            f"{R}/figures/two_token.svg",
            caption="../report/two_token.rst",
            category="5. Controls",
            labels={"result": "the two-token pair"},
        ),
        png=f"{R}/figures/two_token.png",
    log:
        f"{R}/logs/plot_two_token.log",
    benchmark:
        f"{R}/benchmarks/plot_two_token.tsv"
    conda:
        "../../envs/figures.yaml"
    resources:
        mem_mb=500,
    params:
        code=digest("plot_two_token.py", "figures"),
        options=FIGURE_OPTIONS,
    shell:
        "python $SCRIPTS/plot_two_token.py --two-token {input} {params.options}"
        " --output {output} 2> {log}"


rule plot_running_sum:
    input:
        f"{R}/tables/running_sum.csv",
    output:
        pdf=f"{R}/figures/running_sum.pdf",
        svg=report(
            f"{R}/figures/running_sum.svg",
            caption="../report/running_sum.rst",
            category="5. Controls",
            labels={"result": "running sum and masked matrix"},
        ),
        png=f"{R}/figures/running_sum.png",
    log:
        f"{R}/logs/plot_running_sum.log",
    benchmark:
        f"{R}/benchmarks/plot_running_sum.tsv"
    conda:
        "../../envs/figures.yaml"
    resources:
        mem_mb=500,
    params:
        code=digest("plot_running_sum.py", "figures"),
        options=FIGURE_OPTIONS,
    shell:
        "python $SCRIPTS/plot_running_sum.py --running-sum {input} {params.options}"
        " --output {output} 2> {log}"


rule copy_to_gallery:
    input:
        f"{R}/figures/{{figure}}.png",
    output:
        f"{R}/gallery/{{figure}}.png",
    log:
        f"{R}/logs/copy_to_gallery/{{figure}}.log",
    benchmark:
        f"{R}/benchmarks/copy_to_gallery/{{figure}}.tsv"
    wildcard_constraints:
        figure="|".join(HEADLINES),
    conda:
        "../../envs/figures.yaml"
    resources:
        mem_mb=500,
    params:
        code=digest("copy_to_gallery.py", "figures"),
    shell:
        "python $SCRIPTS/copy_to_gallery.py --input {input} --output {output} 2> {log}"


# The report shows pages; it only offers a CSV for download.
rule typeset_page:
    input:
        lambda w: f"{R}/claims.csv" if w.page == "claims" else f"{R}/tables/{w.page}.csv",
    output:
        report(
            f"{R}/pages/{{page}}.html",
            caption="../report/page.rst",
            category="6. Tables",
            labels={"table": "{page}"},
        ),
    log:
        f"{R}/logs/typeset_page/{{page}}.log",
    benchmark:
        f"{R}/benchmarks/typeset_page/{{page}}.tsv"
    wildcard_constraints:
        page="|".join(PAGE_NAMES),
    conda:
        "../../envs/linalg.yaml"
    resources:
        mem_mb=500,
    params:
        code=digest("typeset_page.py", "linalg"),
    shell:
        "python $SCRIPTS/typeset_page.py --input {input} --output {output} 2> {log}"
