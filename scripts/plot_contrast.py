"""Plot a contrast's norm on its way through layers, and the tasks that do and do not need it."""

import argparse

import no_garbage_collection  # noqa: F401

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from figure_style import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    MASKS,
    ORANGE,
    PURPLE,
    VERMILION,
    add_options,
    legend,
    log10_axis,
    save,
    say,
    sheet,
)
from whole_files import intact

STATIONS = {
    "contrast_scores": "scores",
    "contrast_attention": "attention",
    "contrast_output": "output",
    "contrast_residual": "residual",
    "contrast_output_last": "output,\nlast token",
}
LOOKS = (
    {"color": BLACK, "marker": "D", "linestyle": ":"},
    {"color": BLUE, "marker": "o", "linestyle": "-"},
    {"color": VERMILION, "marker": "s", "linestyle": "--"},
    {"color": GREEN, "marker": "^", "linestyle": "-."},
    {"color": PURPLE, "marker": "v", "linestyle": (0, (5, 1))},
    {"color": ORANGE, "marker": "x", "linestyle": (0, (1, 1))},
)
LOWEST = 1e-3
"""Below the panel: exact zeros, and what rounding leaves of them."""
KIND_TITLES = {"location": "task: which token?", "presence": "task: any token?"}
MASK_NAMES = {"bidirectional": "no mask", "causal": "causal"}


def looks_of(values: pd.Series) -> dict[float, dict]:
    """A look for each value in order; from the seventh on, looks repeat."""
    return {value: LOOKS[i % len(LOOKS)] for i, value in enumerate(sorted(set(values)))}


def draw_stations(axes: Axes, rows: pd.DataFrame, looks: dict[float, dict]) -> None:
    """Medians over seeds, and lines from the smallest to the largest."""
    for number, (scale, look) in enumerate(looks.items()):
        values = rows[rows.score_scale == scale][list(STATIONS)].dropna()
        if values.empty:
            continue
        low, middle, high = (
            values.quantile(q, interpolation="nearest").clip(lower=LOWEST / 100)
            for q in (0, 0.5, 1)
        )
        x = np.arange(len(STATIONS)) + 0.05 * (number - len(looks) / 2)
        axes.vlines(x, low, high, color=look["color"], linewidth=0.6)
        axes.plot(x, middle, markerfacecolor="white", **look)
    log10_axis(axes.yaxis)
    axes.set_ylim(LOWEST, 300)
    axes.set_xticks(range(len(STATIONS)), list(STATIONS.values()), fontsize="x-small")


def draw_tasks(axes: Axes, rows: pd.DataFrame, looks: dict[float, dict]) -> None:
    """Accuracy with its interval, by number of heads."""
    scales = sorted(set(rows.score_scale))
    for number, (heads, look) in enumerate(looks.items()):
        chosen = rows[rows["heads"] == heads].sort_values("score_scale")
        x = chosen.score_scale.map(scales.index) + 0.08 * (number - len(looks) / 2)
        interval = {"color": look["color"], "linewidth": 0.6}
        axes.vlines(x, chosen.accuracy_low, chosen.accuracy_high, **interval)
        axes.plot(x, chosen.accuracy, markerfacecolor="white", **look)
    axes.axhline(0.5, color=GREY, linewidth=0.6)
    axes.set_xticks(range(len(scales)), [f"{scale:g}" for scale in scales])
    axes.set_ylim(0.2, 1.02)
    small = {"fontsize": "x-small", "title_fontsize": "x-small"}
    axes.legend(handles=samples(looks), title="heads", loc="lower left", ncols=2, **small)


def samples(looks: dict[float, dict]) -> list[Line2D]:
    return [
        Line2D([], [], label=f"{value:g}", markerfacecolor="white", **look)
        for value, look in looks.items()
    ]


def draw(passage: pd.DataFrame, tasks: pd.DataFrame, font_size: float) -> Figure:
    figure, panels = sheet(font_size, 125, 2, 3)
    by_scale, by_heads = looks_of(passage.score_scale), looks_of(tasks["heads"])
    heads = sorted(set(passage["heads"])) or [None]
    for row, mask in enumerate(MASKS):
        for column, number in enumerate((heads[0], heads[-1])):
            axes = panels[row, column]
            axes.set(title=f"heads: {number}, {MASK_NAMES[mask]}")
            rows = passage[(passage["heads"] == number) & (passage["mask"] == mask)]
            if rows.empty:
                say(axes, "no such layer")
            else:
                draw_stations(axes, rows, by_scale)
        panels[row, 0].set_ylabel("norm, per unit of contrast")
    for axes, (kind, title) in zip(panels[:, 2], KIND_TITLES.items(), strict=True):
        axes.set(title=title, xlabel="score scale (dimensionless)", ylabel="accuracy")
        rows = tasks[tasks.kind == kind]
        if rows.empty:
            say(axes, f"no task of {kind}")
        else:
            draw_tasks(axes, rows, by_heads)
    if by_scale:
        counts = ", ".join(f"{count}" for count in sorted(set(passage.parameters)))
        title = f"score scale, left and middle; every layer has {counts} parameters"
        legend(figure, (), samples(by_scale), title=title)
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--passage", required=True, help="layer_passage.csv")
    parser.add_argument("--tasks", required=True, help="tasks.csv")
    add_options(parser)
    args = parser.parse_args()
    tables = pd.read_csv(intact(args.passage)), pd.read_csv(intact(args.tasks))
    save(draw(*tables, args.font_size), args.output, args.dpi)


if __name__ == "__main__":
    main()
