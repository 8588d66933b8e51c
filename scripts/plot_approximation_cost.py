"""Plot time and memory of approximate attention against N, by mask."""

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
    MASK_TITLES,
    MASKS,
    ORANGE,
    PURPLE,
    SKY,
    VERMILION,
    add_options,
    grid_axis,
    legend,
    log10_axis,
    save,
    say,
    sheet,
)
from whole_files import intact

# Solid lines have a form without the matrix; dashed ones form it.
DASHED = "--"
LOOKS = {
    "exact": ("exact, by rows", BLACK, "o", "-"),
    "exact_matrix": ("exact, matrix", BLACK, "s", DASHED),
    "linformer": ("Linformer", BLUE, "^", "-"),
    "nystrom": ("Nyström", VERMILION, "v", "-"),
    "nystromformer": ("Nyströmformer", VERMILION, "^", "-"),
    "performer": ("Performer", GREEN, "D", "-"),
    "performer_orthogonal": ("orthogonal", SKY, "d", "-"),
    "taylor": ("Taylor", PURPLE, "p", "-"),
    "window": ("window", ORANGE, "h", "-"),
    "truncation": ("truncation", GREY, "<", DASHED),
    "projection": ("projection", BLUE, ">", DASHED),
    "top_k": ("top k", GREEN, "x", DASHED),
    "decay": ("decay", ORANGE, "+", DASHED),
    "rounding": ("bfloat16", VERMILION, "1", DASHED),
    "quantization": ("8 bits", PURPLE, "2", DASHED),
}
QUANTITIES = {"seconds": "time (s)", "mb_peak": "largest resident set (MiB)"}


def style(name: str) -> dict[str, object]:
    label, color, marker, linestyle = LOOKS[name]
    look = {"label": label, "color": color, "marker": marker, "linestyle": linestyle}
    return look | {"markerfacecolor": "none", "markeredgewidth": 0.8}


def draw_panel(axes: Axes, table: pd.DataFrame, column: str) -> None:
    known = table[table[column].notna()]
    if known.empty:
        say(axes, "no run ended in this study")
        return
    for name in LOOKS:
        rows = known[known.approximation == name]
        axes.plot(rows.N, rows[column], **style(name))
    grid_axis(axes.xaxis, table.N, closest=3.0)
    log10_axis(axes.yaxis)


def draw(cost: pd.DataFrame, font_size: float) -> Figure:
    figure, panels = sheet(font_size, 150, 2, 2, sharex=True, sharey="row")
    for row, (column, label) in zip(panels, QUANTITIES.items(), strict=True):
        row[0].set_ylabel(label)
        for axes, mask in zip(row, MASKS, strict=True):
            draw_panel(axes, cost[cost["mask"] == mask], column)
    for axes, mask in zip(panels[0], MASKS, strict=True):
        axes.set_title(MASK_TITLES[mask])
    for axes in panels[1]:
        axes.set_xlabel("N (tokens)")
    legend(figure, (), [Line2D([], [], **style(name)) for name in LOOKS])
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cost", required=True, help="approximation_cost.csv")
    add_options(parser)
    args = parser.parse_args()
    save(draw(pd.read_csv(intact(args.cost)), args.font_size), args.output, args.dpi)


if __name__ == "__main__":
    main()
