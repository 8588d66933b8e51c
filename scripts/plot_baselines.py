"""Plot the ranks of causal matrices beside those with shuffled tokens and the all-ones one."""

import argparse

import no_garbage_collection  # noqa: F401

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from figure_style import (
    BLUE,
    FEATURE_MAPS,
    GREY,
    ORANGE,
    add_options,
    grid_axis,
    legend,
    save,
    say,
    sheet,
    widest,
)
from whole_files import intact

RANKS = {"stable_rank": "stable rank", "effective_rank": "effective rank"}
NORMALIZATIONS = {"none": "unnormalized", "row": "row-normalized"}
# By the suffix of the column: colour, marker, its face, and the place within a row.
SERIES = {
    "": ("measured", BLUE, "o", BLUE, -0.17),
    "_shuffled": ("queries and keys shuffled", ORANGE, "s", "white", 0.17),
}
ALL_ONES = {"color": GREY, "linewidth": 1.0, "linestyle": (0, (4, 2)), "zorder": 0}
STEPS = (1, 2, 5)  # of a logarithmic axis, in each decade
NARROW = 3  # a smaller ratio of largest to smallest is shown on a linear axis
MM_PER_ROW, MM_BESIDE = 5.0, 24.0


def compared(baselines: pd.DataFrame) -> pd.DataFrame:
    """The causal matrices to show: of one N, and of one d for each source.

    N is that with most sources, then most feature maps, above 1 where there is one; d is that with
    most feature maps.
    """
    causal = baselines[baselines["mask"] == "causal"]
    if causal.empty:
        return causal
    counts = causal.groupby("N")[["source", "feature_map"]].nunique()
    N = max(counts.index, key=lambda N: (N > 1, *counts.loc[N], N))
    sources = causal[causal.N == N].groupby("source")
    return pd.concat(widest(rows, ["source", "d"], "feature_map") for _, rows in sources)


def places(table: pd.DataFrame) -> dict[tuple[str, str], int]:
    """The row of each (source, feature_map), from the top; above each source one for its name."""
    rows: dict[tuple[str, str], int] = {}
    for number, (source, part) in enumerate(table.groupby("source"), start=1):
        for name in FEATURE_MAPS:
            if name in set(part.feature_map):
                rows[source, name] = len(rows) + number
    return rows


def label_rows(axes: Axes, table: pd.DataFrame, rows: dict[tuple[str, str], int]) -> None:
    labels = {y: FEATURE_MAPS[name][0] for (_, name), y in rows.items()}
    for source, part in table.groupby("source"):
        above = min(y for (name, _), y in rows.items() if name == source) - 1
        labels[above] = f"{source}, d = {part.d.iloc[0]}:"
    axes.set_yticks(list(labels), list(labels.values()))
    axes.set_ylim(max(labels) + 0.6, -0.6)


def rank_axis(axes: Axes, values: np.ndarray) -> None:
    """Logarithmic if the values spread."""
    low, high = values.min(), values.max()
    if high <= NARROW * low:
        axes.xaxis.set_major_locator(MaxNLocator(5))
        return
    decades = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)
    ticks = [step * 10.0**decade for decade in decades for step in STEPS]
    grid_axis(axes.xaxis, [tick for tick in ticks if low / 1.1 < tick < high * 1.1])
    axes.set_xlim(low * (low / high) ** 0.05, high * (high / low) ** 0.05)


def draw_panel(
    axes: Axes, table: pd.DataFrame, rows: dict[tuple[str, str], int], rank: str
) -> None:
    """Lines over all members, thick over the middle half, a marker at the median."""
    columns = [rank + suffix for suffix in SERIES]
    known = table.dropna(subset=columns)
    if known.empty:
        say(axes, f"no {RANKS[rank]}")
        return
    for (source, name), y in rows.items():
        part = known[(known.source == source) & (known.feature_map == name)]
        if part.empty:
            continue
        for suffix, (_, color, marker, face, offset) in SERIES.items():
            low, lower, middle, upper, high = part[rank + suffix].quantile([0, 0.25, 0.5, 0.75, 1])
            axes.hlines(y + offset, low, high, color=color, linewidth=0.8)
            axes.hlines(y + offset, lower, upper, color=color, linewidth=2.4)
            look = {"color": color, "marker": marker, "markerfacecolor": face, "markersize": 4.0}
            axes.plot(middle, y + offset, **look)
    ones = known[f"{rank}_all_ones"].iloc[0]
    axes.axvline(ones, **ALL_ONES)
    rank_axis(axes, np.append(known[columns].to_numpy(), ones))


def draw(baselines: pd.DataFrame, font_size: float) -> Figure:
    table = compared(baselines)
    rows = places(table)
    height = 2 * (MM_BESIDE + MM_PER_ROW * (len(rows) + table.source.nunique()))
    figure, panels = sheet(font_size, height, 2, 2, sharey=True)
    for line, (normalization, title) in zip(panels, NORMALIZATIONS.items(), strict=True):
        for axes, (rank, label) in zip(line, RANKS.items(), strict=True):
            axes.set_title(title)
            axes.tick_params(axis="y", length=0)
            axes.set_xlabel(f"{label} (dimensionless)")
            draw_panel(axes, table[table.normalization == normalization], rows, rank)
    if rows:
        label_rows(panels[0, 0], table, rows)
        handles = [
            Line2D([], [], label=label, color=color, marker=marker, markerfacecolor=face)
            for label, color, marker, face, _ in SERIES.values()
        ]
        handles.append(Line2D([], [], label="all-ones matrix", **ALL_ONES))
        legend(figure, [], handles, f"causal matrices, N = {table.N.iloc[0]}")
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--baselines", required=True, help="baselines.csv")
    add_options(parser)
    args = parser.parse_args()
    save(draw(pd.read_csv(intact(args.baselines)), args.font_size), args.output, args.dpi)


if __name__ == "__main__":
    main()
