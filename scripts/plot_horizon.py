"""Plot from which length on row-normalized causal matrices are numerically singular, by format."""

import argparse

import no_garbage_collection  # noqa: F401

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from figure_style import (
    BLACK,
    BLUE,
    FEATURE_MAPS,
    GREEN,
    ORANGE,
    SUPERSCRIPT,
    add_options,
    save,
    say,
    sheet,
)
from whole_files import intact

# Of falling lightness, so that grey printers keep the order; below each other within a row.
FORMATS = {
    "bfloat16": (ORANGE, "o", -0.27),
    "float16": (GREEN, "^", -0.09),
    "float32": (BLUE, "s", 0.09),
    "float64": (BLACK, "D", 0.27),
}
MARKER = {"linestyle": "none", "markersize": 3.8, "markeredgecolor": BLACK, "markeredgewidth": 0.4}
MM_PER_ROW, MM_BESIDE, MM_PER_PANEL = 4.0, 24.0, 9.0
MOST_LABELS = 15
GAP = 0.6  # rows between two feature maps
SLOT = 1.35  # by what factor the markers stand apart that lie beyond what was searched


def places(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of a panel, feature map and d, with their y from the top and their label."""
    rows = table[["feature_map", "d"]].drop_duplicates()
    order = rows.feature_map.map(list(FEATURE_MAPS).index)
    rows = rows.assign(order=order).sort_values(["order", "d"])
    first = ~rows.feature_map.duplicated()
    names = rows.feature_map.map(lambda name: FEATURE_MAPS[name][0] + "   ").where(first, "")
    y = np.arange(len(rows)) + GAP * (first.cumsum() - 1)
    return rows.assign(y=y, label=names + rows.d.astype(str))


def draw_row(axes: Axes, row: pd.DataFrame, y: float) -> None:
    """Median and range of members by format; what lies beyond the search ends in an arrow."""
    end = row.searched.max()
    for name, (color, marker, offset) in FORMATS.items():
        found = row.horizon[row.precision == name].fillna(np.inf)
        if found.empty:
            continue
        low, middle, high = found.min(), found.median(), found.max()
        place = y + offset
        if np.isinf(high):
            end *= SLOT
            arrow = {"arrowstyle": "->", "color": color, "linewidth": 0.8, "shrinkA": 0}
            axes.annotate("", (end * SLOT, place), (end, place), arrowprops=arrow)
            middle, high = min(middle, end), end
        if np.isfinite(low):
            axes.hlines(place, low, high, color=color, linewidth=0.9)
        axes.plot(middle, place, color=color, marker=marker, **MARKER)


def draw_panel(axes: Axes, table: pd.DataFrame) -> None:
    rows = places(table)
    for row in rows.itertuples():
        draw_row(axes, table[(table.feature_map == row.feature_map) & (table.d == row.d)], row.y)
    axes.set_yticks(rows.y, rows.label)
    axes.set_ylim(rows.y.max() + 0.6, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.axvspan(table.searched.max(), axes.get_xlim()[1], color="0.92", linewidth=0, zorder=0)
    axes.grid(axis="x", color="0.85", linewidth=0.4)
    axes.set_axisbelow(True)
    members, source = table.member.nunique(), table.source.iloc[0]
    axes.set_title(f"source {source}, by feature map and d; {members} member{'s'[: members > 1]}")


def length_axis(axes: Axes, table: pd.DataFrame) -> None:
    """Powers of two, from the shortest horizon to past the longest search."""
    low, high = table.horizon.min(), table.searched.max()
    first = int(np.log2(low)) if np.isfinite(low) else 0
    ticks = [2**power for power in range(first, int(np.log2(high)) + 1)]
    step = -(-len(ticks) // MOST_LABELS)
    axes.set_xscale("log", base=2)
    axes.set_xlim(ticks[0] / 1.2, high * SLOT ** (len(FORMATS) + 1.5))
    axes.xaxis.set_major_locator(FixedLocator(ticks[::-1][::step]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_xlabel("sequence length N (tokens)")


def name_formats(figure: Figure, table: pd.DataFrame) -> None:
    handles = []
    for name, (color, marker, _) in FORMATS.items():
        epsilon = table.epsilon[table.precision == name]
        if len(epsilon):
            power = str(round(-np.log2(epsilon.iloc[0]))).translate(SUPERSCRIPT)
            look = {"color": color, "marker": marker, **MARKER}
            handles.append(Line2D([], [], label=f"{name}: 2{power}", **look))
    handles.append(Patch(facecolor="0.92", label="longer than searched"))
    title = "causal, row-normalized: from which N on the condition number is at least 1/eps:"
    columns = {"ncols": len(handles), "handlelength": 1.2}
    figure.legend(handles=handles, loc="outside upper center", title=title, **columns)


def draw(horizon: pd.DataFrame, font_size: float) -> Figure:
    table = horizon[horizon.normalization == "row"]
    if table.empty:
        figure, ((axes,),) = sheet(font_size, 60)
        say(axes, "no horizon of a row-normalized matrix in this study")
        return figure
    sources = [rows for _, rows in table.groupby("source")]
    heights = [places(rows).y.max() + 1.2 for rows in sources]
    height = MM_BESIDE + MM_PER_PANEL * len(sources) + MM_PER_ROW * sum(heights)
    ratios = {"sharex": True, "height_ratios": heights}
    figure, panels = sheet(font_size, height, len(sources), 1, **ratios)
    length_axis(panels[-1, 0], table)
    for axes, rows in zip(panels[:, 0], sources, strict=True):
        draw_panel(axes, rows)
    name_formats(figure, table)
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--horizon", required=True, help="horizon.csv")
    add_options(parser)
    args = parser.parse_args()
    save(draw(pd.read_csv(intact(args.horizon)), args.font_size), args.output, args.dpi)


if __name__ == "__main__":
    main()
