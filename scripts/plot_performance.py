"""Plot time and memory against N, of the structured engine and of what else could be called."""

import argparse

import no_garbage_collection  # noqa: F401

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from figure_style import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    SKY,
    SUPERSCRIPT,
    VERMILION,
    add_options,
    log10_axis,
    save,
    say,
    sheet,
)
from whole_files import intact

DASHED, DASHDOT, DOTTED, SPARSE = "--", "-.", (0, (1, 1.5)), (0, (1, 4))
# Solid lines give both ends of the spectrum, dashed and dash-dotted ones the largest singular
# value only, dotted ones the smallest.
METHODS = {
    "engine": ("engine", BLUE, "o", "-"),
    "engine_one_thread": ("engine, one thread", SKY, "D", "-"),
    "numpy_svd": ("numpy svd", VERMILION, "s", "-"),
    "scipy_svdvals": ("scipy svdvals", ORANGE, "^", "-"),
    "randomized_svd": ("scikit-learn randomized_svd", PURPLE, "p", DASHDOT),
    "svds_matrix_LM": ("scipy svds LM", GREEN, "v", DASHED),
    "svds_operator_LM": ("scipy svds LM, operator", GREEN, "<", DASHDOT),
    "svds_matrix_SM": ("scipy svds SM", GREEN, "1", DOTTED),
    "svds_operator_SM": ("scipy svds SM, operator", GREEN, "2", SPARSE),
    "primme_matrix_LM": ("PRIMME svds LM", BLACK, ">", DASHED),
    "primme_operator_LM": ("PRIMME svds LM, operator", BLACK, "h", DASHDOT),
    "primme_matrix_SM": ("PRIMME svds SM", BLACK, "3", DOTTED),
    "primme_operator_SM": ("PRIMME svds SM, operator", BLACK, "4", SPARSE),
}
CROSS = {"linestyle": "none", "marker": "x", "markersize": 9.0, "markeredgewidth": 1.3}


def style(method: str) -> dict[str, object]:
    label, color, marker, linestyle = METHODS[method]
    look = {"label": label, "color": color, "marker": marker, "linestyle": linestyle}
    return look | {"markersize": 4.5, "markerfacecolor": "none", "markeredgewidth": 0.9}


def draw_panel(axes: Axes, table: pd.DataFrame, column: str) -> None:
    """A line for each method; a cross on its last point, if the table has larger matrices."""
    for method in METHODS:
        series = table[table.method == method].sort_values("N")
        done = series[series[column].notna()]
        if done.empty:
            continue
        look = style(method)
        axes.plot(done.N, done[column], **look)
        if done.N.iloc[-1] < series.N.iloc[-1]:
            axes.plot(done.N.iloc[-1:], done[column].iloc[-1:], color=look["color"], **CROSS)


def powers_axis(axis: matplotlib.axis.Axis, sizes: pd.Series) -> None:
    """A logarithmic axis with ticks at every other power of two: longer numbers would touch."""
    axis.axes.set_xscale("log", base=2)
    exponents = np.log2([sizes.min(), sizes.max()]).round().astype(int)
    axis.set_major_locator(FixedLocator([2.0**n for n in range(exponents[0], exponents[1] + 1, 2)]))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(
        FuncFormatter(lambda value, _: "2" + f"{np.log2(value):.0f}".translate(SUPERSCRIPT))
    )


def draw(performance: pd.DataFrame, font_size: float) -> Figure:
    figure, ((left, right),) = sheet(font_size, 105, 1, 2)
    left.set_ylabel("time (seconds)")
    right.set_ylabel("peak memory of the process (MiB)")
    for axes, column in ((left, "seconds"), (right, "mb_peak")):
        axes.set_xlabel("sequence length N (tokens)")
        if not performance[column].notna().any():
            say(axes, "no method ran")
            continue
        draw_panel(axes, performance, column)
        log10_axis(axes.yaxis)
        powers_axis(axes.xaxis, performance.N)
    ran = set(performance.method[performance.seconds.notna()])
    handles = [Line2D([], [], **style(method)) for method in METHODS if method in ran]
    if handles:
        handles.append(Line2D([], [], color=GREY, label="cannot at larger N", **CROSS))
        figure.legend(handles=handles, loc="outside upper center", ncols=3)
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--performance", required=True, help="performance.csv")
    add_options(parser)
    args = parser.parse_args()
    save(draw(pd.read_csv(intact(args.performance)), args.font_size), args.output, args.dpi)


if __name__ == "__main__":
    main()
