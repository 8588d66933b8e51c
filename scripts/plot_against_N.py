"""Plot stable rank and condition number of causal matrices against N, beside the all-ones one."""

import argparse

import no_garbage_collection  # noqa: F401

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from figure_style import (
    CLOSEST,
    FEATURE_MAPS,
    GREY,
    add_options,
    grid_axis,
    legend,
    map_style,
    save,
    say,
    sheet,
    widest,
)
from whole_files import intact

ALL_ONES = {"color": GREY, "linewidth": 3, "alpha": 0.35, "zorder": 0}
LIMIT = {"color": GREY, "linestyle": (0, (1, 1)), "linewidth": 0.8, "zorder": 0}
MOST_LABELS = 7  # on an axis of half the sheet
CEILING = {"color": GREY, "linestyle": "-", "linewidth": 0.8, "zorder": 0}


def ceiling(N: pd.Series) -> pd.Series:
    """log10 of the largest condition number that a dense method in double precision sees."""
    return -np.log10(N * np.finfo(float).eps)


def lines_of(table: pd.DataFrame) -> list[str]:
    """The feature maps with two N or more; all of them if none has."""
    counts = table.groupby("feature_map").N.nunique()
    return [name for name in FEATURE_MAPS if counts.get(name, 0) >= min(2, counts.max())]


def draw_panel(axes: Axes, table: pd.DataFrame, maps: list[str], measured: pd.Series) -> None:
    """A series per feature map; points without a finite mean in words, above the panel.

    Of `measured` matrices, others of the same quantities are known.
    """
    notes: dict[str, list[str]] = {"singular": [], "not resolved": [], "not computed": []}
    for name in maps:
        series = table[table.feature_map == name].sort_values("N")
        finite = np.isfinite(series["mean"])
        known = series[finite]
        style = map_style(name)
        axes.plot(series.N, series["mean"].where(finite), **style)
        axes.vlines(known.N, known["min"], known["max"], color=style["color"], linewidth=0.8)
        seen = measured.loc[series.index]
        for note, rows in (
            ("singular", series[np.isinf(series["mean"])]),
            ("not resolved", series[series["mean"].isna() & seen]),
            ("not computed", series[series["mean"].isna() & ~seen]),
        ):
            if len(rows):
                notes[note].append(f"{style['label']} at N = {', '.join(map(str, rows.N))}")
    lines = [f"{note}: {point}" for note, points in notes.items() for point in points]
    axes.set_title("\n".join(lines), fontsize="small", style="italic", color=GREY)


def draw(summary: pd.DataFrame, all_ones: pd.DataFrame, font_size: float) -> Figure:
    table = summary[(summary.normalization == "none") & (summary["mask"] == "causal")]
    table = widest(table, ["source", "d"], "N")
    maps = lines_of(table)
    table = table[table.feature_map.isin(maps)]
    stable = table[table.quantity == "stable_rank"]
    condition = table[table.quantity == "log10_condition"]
    figure, ((left, right),) = sheet(font_size, 85, 1, 2)
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
    cells = ["feature_map", "N"]
    computed = pd.MultiIndex.from_frame(stable.dropna(subset=["mean"])[cells])
    measured = pd.MultiIndex.from_frame(condition[cells]).isin(computed)
    draw_panel(right, condition, maps, pd.Series(measured, index=condition.index))
    closest = max(CLOSEST, (sizes.max() / sizes.min()) ** (1 / MOST_LABELS))
    for axes in (left, right):
        grid_axis(axes.xaxis, sizes, closest)
    others = [
        Line2D([], [], label="all-ones matrix", **ALL_ONES),
        Line2D([], [], label="its limit π²/8", **LIMIT),
        Line2D([], [], label="1/(N eps)", **CEILING),
    ]
    first = table.iloc[0]
    title = f"source {first.source}, d = {first.d}, causal, unnormalized;"
    title += " above 1/(N eps), dense double precision sees nothing"
    legend(figure, maps, others, title)
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--summary", required=True, help="summary.csv")
    parser.add_argument("--all-ones", required=True, help="all_ones.csv")
    add_options(parser)
    args = parser.parse_args()
    tables = pd.read_csv(intact(args.summary)), pd.read_csv(intact(args.all_ones))
    save(draw(*tables, args.font_size), args.output, args.dpi)


if __name__ == "__main__":
    main()
