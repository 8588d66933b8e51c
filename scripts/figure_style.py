"""What the figures share: the sheet, styles that survive a grey printer, and saving.

Colours are those of Okabe and Ito (2008), told apart by readers with any common colour blindness;
every series also has its own marker and line style, so that colour carries nothing alone. The
object interface of matplotlib is enough: pyplot would add state and its time to every job.
"""

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_pdf import FigureCanvasPdf
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter, NullLocator

from whole_files import whole

WIDTH_MM = 170.0
MM_PER_INCH = 25.4

BLACK, GREY, ORANGE, SKY = "#000000", "#666666", "#E69F00", "#56B4E9"
GREEN, BLUE, VERMILION, PURPLE = "#009E73", "#0072B2", "#D55E00", "#CC79A7"

# Markers are hollow and of falling size: where series coincide, all of them stay visible.
FEATURE_MAPS = {
    "elu_plus_one": ("elu+1", BLUE, "o", "-", 7.5),
    "exp": ("exp", VERMILION, "s", "--", 6.0),
    "relu": ("relu", GREEN, "^", "-.", 5.0),
    "softmax": ("softmax", BLACK, "D", ":", 2.8),
    "softplus": ("softplus", SKY, "v", (0, (6, 1, 1, 1, 1, 1)), 6.5),
    "squared_relu": ("relu²", PURPLE, ">", (0, (8, 2)), 5.5),
    "identity": ("identity", ORANGE, "x", (0, (1, 3)), 5.0),
}
MASKS = ("bidirectional", "causal")
MASK_TITLES = {"bidirectional": "no mask (bidirectional)", "causal": "causal mask"}

CLOSEST = 1.6  # the smallest ratio of two labels on a logarithmic axis, unless said otherwise
SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")

SETTINGS = {
    "figure.constrained_layout.use": True,
    "figure.constrained_layout.w_pad": 0.06,
    "figure.constrained_layout.h_pad": 0.05,
    "text.hinting": "none",  # a text's width does not depend on the resolution
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": "medium",
    "axes.titlelocation": "left",
    "axes.titley": 1.0,  # fixed: finding a place for titles would double the time to draw
    "axes.linewidth": 0.6,
    "lines.linewidth": 1.0,
    "lines.markersize": 4.0,
    "legend.frameon": False,
    "legend.handlelength": 2.6,
    "legend.columnspacing": 1.4,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "hatch.linewidth": 0.4,
    "svg.hashsalt": "causalrank",
    "pdf.fonttype": 42,
}


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dpi", type=int, default=150, help="pixels per inch of a PNG")
    parser.add_argument("--font-size", type=float, default=8.0, help="points")
    parser.add_argument("--output", nargs="+", required=True, help=".pdf, .svg or .png files")


def sheet(
    font_size: float,
    height_mm: float,
    rows: int = 1,
    columns: int = 1,
    **subplots: object,
) -> tuple[Figure, np.ndarray]:
    """A figure as wide as a page's text, and its axes, shape (rows, columns).

    Whatever a user's matplotlibrc says is set aside: the same table gives the same bytes.
    """
    matplotlib.rcdefaults()
    matplotlib.rcParams.update(SETTINGS | {"font.size": font_size})
    figure = Figure(figsize=(WIDTH_MM / MM_PER_INCH, height_mm / MM_PER_INCH))
    return figure, figure.subplots(rows, columns, squeeze=False, **subplots)


def map_style(feature_map: str) -> dict[str, object]:
    """Keyword arguments of Axes.plot for a series of one feature map."""
    label, color, marker, linestyle, size = FEATURE_MAPS[feature_map]
    style = {"label": label, "color": color, "marker": marker, "linestyle": linestyle}
    return style | {"markersize": size, "markerfacecolor": "none", "markeredgewidth": 0.9}


def maps_of(table: pd.DataFrame, along: str) -> list[str]:
    """The feature maps worth a series, in the order of FEATURE_MAPS: large markers below small.

    These have at least half as many different values of `along` as the map that has most.
    """
    if table.empty:
        return []
    counts = table.groupby("feature_map")[along].nunique()
    return [name for name in FEATURE_MAPS if counts.get(name, 0) * 2 >= counts.max()]


def widest(table: pd.DataFrame, keys: list[str], along: str) -> pd.DataFrame:
    """The rows of those `keys`, a source and a number, that have most different values of `along`.

    Among equals the larger number wins, then the source that comes first.
    """
    if table.empty:
        return table
    counts = table.groupby(keys, sort=True)[along].nunique()
    chosen = max(counts.index, key=lambda key: (counts[key], key[1]))
    return table[(table[keys] == list(chosen)).all(axis=1)]


def grid_axis(
    axis: matplotlib.axis.Axis, values: Iterable[float], closest: float = CLOSEST
) -> None:
    """A logarithmic axis with ticks at the grid's own values; those too close stay unlabelled."""
    axis.axes.set(**{f"{axis.axis_name}scale": "log"})
    ordered = sorted(set(values), reverse=True)
    labelled: list[float] = []
    for value in ordered:
        if not labelled or value * closest <= labelled[-1]:
            labelled.append(value)
    axis.set_major_locator(FixedLocator(labelled))
    axis.set_minor_locator(FixedLocator([value for value in ordered if value not in labelled]))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def log10_axis(axis: matplotlib.axis.Axis, powers: Sequence[int] = ()) -> None:
    """A logarithmic axis with ticks at powers of ten, written without the costly TeX parser."""
    axis.axes.set(**{f"{axis.axis_name}scale": "log"})
    axis.set_major_locator(FixedLocator([10.0**p for p in powers]) if powers else LogLocator())
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: power_of_ten(value)))


def power_of_ten(value: float) -> str:
    exponent = f"{value:.0e}".split("e")[1]
    return "10" + str(int(exponent)).translate(SUPERSCRIPT)


def legend(
    figure: Figure, maps: Sequence[str], others: Sequence[Line2D] = (), title: str = ""
) -> None:
    """The legend of all panels, above them, at most five entries in a row."""
    handles = [*(Line2D([], [], **map_style(name)) for name in maps), *others]
    columns = min(len(handles), 5)
    figure.legend(handles=handles, loc="outside upper center", ncols=columns, title=title)


def say(axes: Axes, text: str, height: float = 0.5) -> None:
    """One line inside a panel: what is not there, and why."""
    axes.text(
        0.5,
        height,
        text,
        transform=axes.transAxes,
        ha="center",
        va="center",
        color=GREY,
        style="italic",
        fontsize="small",
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.0},
        in_layout=False,
    )


def save(figure: Figure, outputs: Sequence[str], dpi: int) -> None:
    """Write the figure to each path, its format being the suffix: no dates, no versions.

    The panels are laid out once, so that all formats show the same. Canvases are asked directly:
    Figure.savefig would draw everything twice.
    """
    if figure.get_layout_engine() is not None:
        figure.draw_without_rendering()
        figure.set_layout_engine("none")
    for output in outputs:
        with whole(output) as part:
            WRITERS[Path(output).suffix](figure, part, dpi)


def write_pdf(figure: Figure, path: Path, dpi: int) -> None:
    metadata = dict.fromkeys(("Creator", "Producer", "CreationDate"))
    FigureCanvasPdf(figure).print_pdf(path, metadata=metadata)


def write_svg(figure: Figure, path: Path, dpi: int) -> None:
    FigureCanvasSVG(figure).print_svg(path, metadata=dict.fromkeys(("Creator", "Date")))


def write_png(figure: Figure, path: Path, dpi: int) -> None:
    figure.set_dpi(dpi)
    FigureCanvasAgg(figure).print_png(path, metadata={"Software": None})


WRITERS = {".pdf": write_pdf, ".svg": write_svg, ".png": write_png}
