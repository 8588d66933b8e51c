"""Plot how often Linformer's theorem 1 fails, relative and additive, and which k each needs."""

import argparse

import no_garbage_collection  # noqa: F401

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from figure_style import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    VERMILION,
    add_options,
    grid_axis,
    save,
    say,
    sheet,
)
from whole_files import intact

COLUMNS = {
    "uniform": ("uniform on (0, 1)", BLUE, "o"),
    "mean_zero": ("mean zero", VERMILION, "s"),
    "one_hot": ("one token's", GREEN, "^"),
}
FORMS = {
    "relative": ("relative to ‖Pw‖: the theorem", "-"),
    "rows": ("every row, to |x||w|", "--"),
    "norm": ("to ‖P‖_F |w|", ":"),
}
SIZES = (7.0, 5.5, 4.0)


def draw_frequencies(axes: Axes, table: pd.DataFrame) -> None:
    for size, (name, (_, color, marker)) in zip(SIZES, COLUMNS.items(), strict=True):
        series = table[table.column == name].sort_values("N")
        axes.errorbar(
            series.N,
            series.frequency,
            yerr=[series.frequency - series.low, series.high - series.frequency],
            color=color,
            marker=marker,
            markersize=size,
            markerfacecolor="none",
            linestyle="none",
            capsize=2,
        )
    axes.set_ylim(-0.05, 1.05)


def draw_needed(axes: Axes, table: pd.DataFrame) -> None:
    for size, (name, (_, color, marker)) in zip(SIZES, COLUMNS.items(), strict=True):
        for form, (_, line) in FORMS.items():
            series = table[(table.column == name) & (table.form == form)].sort_values("N")
            axes.plot(
                series.N,
                series.k_needed,
                color=color,
                marker=marker,
                linestyle=line,
                markersize=size,
                markerfacecolor="none",
            )
    theorem = table.drop_duplicates("N").sort_values("N")
    axes.plot(theorem.N, theorem.k_theorem, color=BLACK, linewidth=1.6)
    axes.plot(theorem.N, theorem.N, color=GREY, linewidth=0.8)
    last = theorem.iloc[-1]
    for text, height in (("theorem's k", last.k_theorem), ("k = N", last.N)):
        axes.annotate(
            text, (last.N, height), xytext=(4, 0), textcoords="offset points", va="center"
        )


def draw(projection: pd.DataFrame, needed: pd.DataFrame, font_size: float) -> Figure:
    epsilon = projection.epsilon.max()
    source = projection.source.iloc[0] if len(projection) else ""
    table = projection[(projection.epsilon == epsilon) & (projection.source == source)]
    smallest = needed[(needed.epsilon == epsilon) & (needed.source == source)]
    figure, (panels,) = sheet(font_size, 85, 1, 3, width_ratios=[1, 1, 1.3])
    titles = ("relative, the theorem", "additive, every row", f"k for 5 % at ε = {epsilon:g}")
    for axes, title in zip(panels, titles, strict=True):
        axes.set_title(title)
        axes.set_xlabel("N (tokens)")
    if table.empty:
        say(panels[1], "no projections of softmax matrices")
        return figure
    panels[0].set_ylabel(f"failures at the theorem's k, ε = {epsilon:g}")
    draw_frequencies(panels[0], table[table.form == "relative"])
    draw_frequencies(panels[1], table[table.form == "rows"])
    panels[2].set_ylabel("k")
    grid_axis(panels[2].yaxis, [10.0**power for power in range(1, 6)])
    draw_needed(panels[2], smallest)
    for axes in panels:
        grid_axis(axes.xaxis, table.N.unique(), closest=6.0)
    handles = [
        *(
            Line2D([], [], color=color, marker=marker, markerfacecolor="none", label=f"w {label}")
            for label, color, marker in COLUMNS.values()
        ),
        *(
            Line2D([], [], color=BLACK, linestyle=line, label=label)
            for label, line in FORMS.values()
        ),
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=3)
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--projection", required=True, help="projection.csv")
    parser.add_argument("--needed", required=True, help="projection_needed.csv")
    add_options(parser)
    args = parser.parse_args()
    tables = pd.read_csv(intact(args.projection)), pd.read_csv(intact(args.needed))
    save(draw(*tables, args.font_size), args.output, args.dpi)


if __name__ == "__main__":
    main()
