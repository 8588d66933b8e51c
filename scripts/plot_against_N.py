"""Plot stable rank and condition number of causal matrices against N, beside the all-ones one."""

import argparse

import no_garbage_collection  # noqa: F401

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from figure_style import (
    GREY,
    add_options,
    grid_axis,
    legend,
    map_style,
    maps_of,
    save,
    say,
    sheet,
    widest,
)

ALL_ONES = {"color": GREY, "linewidth": 3, "alpha": 0.35, "zorder": 0}
LIMIT = {"color": GREY, "linestyle": (0, (1, 1)), "linewidth": 0.8, "zorder": 0}
BEYOND = {"linestyle": "none", "markeredgewidth": 1.8}
CEILING = {"color": GREY, "linestyle": "-", "linewidth": 0.8, "zorder": 0}


def ceiling(N: pd.Series) -> pd.Series:
    """log10 of the largest condition number that double precision resolves."""
    return -np.log10(N * np.finfo(float).eps)


def draw_panel(axes: Axes, table: pd.DataFrame, maps: list[str], beyond: pd.Series) -> None:
    """A series per feature map; bold markers at the ceiling where a member lies `beyond` it."""
    absent = []
    for name in maps:
        series = table[table.feature_map == name].sort_values("N")
        known = series.dropna(subset=["mean"])
        style = map_style(name)
        axes.plot(known.N, known["mean"], **style)
        axes.vlines(known.N, known["min"], known["max"], color=style["color"], linewidth=0.8)
        above = series[beyond.loc[series.index]]
        axes.plot(above.N, ceiling(above.N), **style | BEYOND)
        unknown = series.N[series["mean"].isna() & ~beyond.loc[series.index]]
        if len(unknown):
            absent.append(f"{style['label']} at N = {', '.join(map(str, unknown))}")
    if absent:
        say(axes, "not computed: " + "; ".join(absent), 0.03)


def draw(summary: pd.DataFrame, all_ones: pd.DataFrame, font_size: float) -> Figure:
    table = summary[(summary.normalization == "none") & (summary["mask"] == "causal")]
    table = widest(table, ["source", "d"], "N")
    maps = maps_of(table, "N")
    table = table[table.feature_map.isin(maps)]
    stable = table[table.quantity == "stable_rank"]
    condition = table[table.quantity == "log10_condition"]
    figure, ((left, right),) = sheet(font_size, 80, 1, 2)
    left.set_ylabel("stable rank (dimensionless)")
    right.set_ylabel("log10 of the condition number")
    for axes in (left, right):
        axes.set_xlabel("sequence length N (tokens)")
        if table.empty:
            say(axes, "no unnormalized causal matrix in this study")
    if table.empty:
        return figure
    sizes = pd.Series(sorted(set(table.N)))
    baseline = all_ones[all_ones.N.between(sizes.min(), sizes.max())]
    left.plot(baseline.N, baseline.stable_rank, **ALL_ONES)
    left.plot(baseline.N, baseline.limit, **LIMIT)
    draw_panel(left, stable, maps, pd.Series(False, index=stable.index))
    right.plot(baseline.N, np.log10(baseline.condition_number), **ALL_ONES)
    right.plot(sizes, ceiling(sizes), **CEILING)
    # A member whose spectrum is known and whose condition number is not lies beyond.
    cells = ["feature_map", "N"]
    computed = pd.MultiIndex.from_frame(stable.dropna(subset=["mean"])[cells])
    seen = pd.MultiIndex.from_frame(condition[cells]).isin(computed)
    draw_panel(right, condition, maps, condition["mean"].isna() & seen)
    for axes in (left, right):
        grid_axis(axes.xaxis, sizes)
    others = [
        Line2D([], [], label="all-ones matrix", **ALL_ONES),
        Line2D([], [], label="its limit π²/8", **LIMIT),
        Line2D([], [], label="1/(N eps)", **CEILING),
    ]
    first = table.iloc[0]
    legend(figure, maps, others, f"source {first.source}, d = {first.d}, causal, unnormalized")
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--summary", required=True, help="summary.csv")
    parser.add_argument("--all-ones", required=True, help="all_ones.csv")
    add_options(parser)
    args = parser.parse_args()
    figure = draw(pd.read_csv(args.summary), pd.read_csv(args.all_ones), args.font_size)
    save(figure, args.output, args.dpi)


if __name__ == "__main__":
    main()
