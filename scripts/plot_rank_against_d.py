"""Plot exact and numerical rank against d, without and with the causal mask."""

import argparse

import no_garbage_collection  # noqa: F401

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from figure_style import (
    FEATURE_MAPS,
    GREY,
    MASK_TITLES,
    MASKS,
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
from whole_files import intact

VERDICTS = {
    "exact_rank": "exact rank",
    "numerical_rank": "numerical rank (float64, N eps)",
}
RANK_IS_D = {"color": GREY, "alpha": 0.35, "linewidth": 3}
RANK_IS_N = {"color": GREY, "linestyle": (0, (1, 1)), "linewidth": 0.8}


def misjudged(numerical: pd.DataFrame, exact: pd.DataFrame) -> pd.DataFrame:
    """The rows of `numerical` whose mean, smallest or largest member is not that of `exact`."""
    keys, values = ["feature_map", "d"], ["mean", "min", "max"]
    right = exact.set_index(keys)[values].reindex(pd.MultiIndex.from_frame(numerical[keys]))
    known = right.notna().all(axis=1).to_numpy() & numerical["mean"].notna().to_numpy()
    return numerical[known & (numerical[values].to_numpy() != right.to_numpy()).any(axis=1)]


def points(table: pd.DataFrame, whole: pd.DataFrame, maps: list[str]) -> list[str]:
    """The points of `table` in words, a line per map; `whole` has all points."""
    lines = []
    for name in maps:
        some, every = (set(rows.d[rows.feature_map == name]) for rows in (table, whole))
        if some:
            where = "every d" if some == every else "d = " + ", ".join(map(str, sorted(some)))
            lines.append(f"{FEATURE_MAPS[name][0]} at {where}")
    return lines


def draw_panel(axes: Axes, table: pd.DataFrame, exact: pd.DataFrame, maps: list[str]) -> None:
    """A series per feature map: mean over members, bars over all; gaps and errors in words.

    Ranks of 511 and 512 are one point to the eye, so differences have to be told.
    """
    for name in maps:
        series = table[table.feature_map == name].dropna(subset=["mean"]).sort_values("d")
        style = map_style(name)
        axes.plot(series.d, series["mean"], **style)
        axes.vlines(series.d, series["min"], series["max"], color=style["color"], linewidth=0.8)
    notes = []
    for title, rows in (
        ("not measured:", table[table["mean"].isna()]),
        ("not the exact rank:", misjudged(table, exact)),
    ):
        lines = points(rows, table, maps)
        notes += [title, *lines] if lines else []
    note = {"ha": "right", "va": "bottom", "multialignment": "left", "fontsize": "small"}
    axes.text(0.99, 0.02, "\n".join(notes), transform=axes.transAxes, in_layout=False, **note)


def draw(summary: pd.DataFrame, font_size: float) -> Figure:
    table = summary[(summary.normalization == "none") & summary.quantity.isin(VERDICTS)]
    table = widest(table, ["source", "N"], "d")
    maps = maps_of(table, "d")
    figure, panels = sheet(font_size, 120, 2, 2, sharex=True, sharey=True)
    for axes, mask in zip(panels[0], MASKS, strict=True):
        axes.set_title(MASK_TITLES[mask])
    for axes in panels[1]:
        axes.set_xlabel("head dimension d")
    for row, (quantity, label) in zip(panels, VERDICTS.items(), strict=True):
        row[0].set_ylabel(label)
        for axes, mask in zip(row, MASKS, strict=True):
            masked = table[table["mask"] == mask]
            panel = masked[masked.quantity == quantity]
            if panel.empty:
                say(axes, f"no unnormalized {mask} matrix in this study")
                continue
            N, dimensions = int(panel.N.iloc[0]), sorted(set(panel.d))
            axes.axhline(N, zorder=0, **RANK_IS_N)
            axes.plot(dimensions, dimensions, zorder=0, **RANK_IS_D)
            draw_panel(axes, panel, masked[masked.quantity == "exact_rank"], maps)
            grid_axis(axes.xaxis, dimensions)
            grid_axis(axes.yaxis, [*dimensions, N])
    if not table.empty:
        first = table.iloc[0]
        others = [
            Line2D([], [], label="rank = d", **RANK_IS_D),
            Line2D([], [], label="rank = N", **RANK_IS_N),
        ]
        legend(figure, maps, others, f"source {first.source}, N = {first.N}")
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--summary", required=True, help="summary.csv")
    add_options(parser)
    args = parser.parse_args()
    save(draw(pd.read_csv(intact(args.summary)), args.font_size), args.output, args.dpi)


if __name__ == "__main__":
    main()
