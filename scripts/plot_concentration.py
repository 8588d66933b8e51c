"""Plot Linformer's record: the share of the first quarter of singular values, head by head."""

import argparse

import no_garbage_collection  # noqa: F401

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.lines import Line2D

from figure_style import (
    BLUE,
    GREEN,
    MASK_TITLES,
    MASKS,
    ORANGE,
    VERMILION,
    add_options,
    save,
    say,
    sheet,
)
from whole_files import intact

LENGTHS = ((BLUE, "o", "-"), (VERMILION, "s", "--"), (GREEN, "^", "-."), (ORANGE, "D", ":"))
"""Colour, marker and line of each length, the longest first."""
MOST_NUMBERS = 20
OFFSET = 0.08


def quarter(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of softmax attention's heads, at a quarter of N."""
    rows = (table.feature_map == "softmax") & (table.normalization == "row")
    rows &= (table.quantity == "cumulative") & (table.fraction == 0.25)
    return table[rows & table.layer.notna()]


def most_windows(table: pd.DataFrame) -> pd.DataFrame:
    """Of each N, the rows of the source with most windows, then of the first name."""
    chosen = table.sort_values(["windows", "source"], ascending=[False, True])
    first = chosen.drop_duplicates("N").set_index("N").source
    return table[table.source == table.N.map(first)]


def draw_heatmap(axes: Axes, table: pd.DataFrame, limits: tuple[float, float]) -> AxesImage:
    grid = table.pivot(index="layer", columns="head", values="mean")
    values = grid.to_numpy()
    image = axes.imshow(values, cmap="cividis", vmin=limits[0], vmax=limits[1], aspect="auto")
    axes.set_xticks(range(grid.shape[1]), [f"{x:g}" for x in grid.columns])
    axes.set_yticks(range(grid.shape[0]), [f"{x:g}" for x in grid.index])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    if grid.shape[1] <= MOST_NUMBERS:
        for (row, column), value in np.ndenumerate(values):
            axes.text(
                *(column, row, f"{value:.2f}"),
                ha="center",
                va="center",
                color="white" if image.norm(value) < 0.5 else "black",
                fontsize=0.6 * matplotlib.rcParams["font.size"],
            )
    return image


def draw_layers(axes: Axes, table: pd.DataFrame, lengths: list[int]) -> None:
    for place, (N, (color, marker, line)) in enumerate(zip(lengths, LENGTHS, strict=False)):
        series = table[table.N == N].sort_values("layer")
        axes.errorbar(
            series.layer + OFFSET * place,
            series["mean"],
            yerr=[series["mean"] - series.low, series.high - series["mean"]],
            color=color,
            marker=marker,
            linestyle=line,
            markerfacecolor="none",
            capsize=2,
        )
    axes.set_xticks(sorted(table.layer.unique()))


def draw(concentration: pd.DataFrame, layers: pd.DataFrame, font_size: float) -> Figure:
    heads, means = quarter(concentration), quarter(layers)
    longest = heads[heads.N == heads.N.max()]
    lengths = sorted(means.N.unique(), reverse=True)[: len(LENGTHS)]
    figure, panels = sheet(font_size, 125, 2, 2, sharey="row", height_ratios=[1.25, 1])
    panels[0, 0].set_ylabel("layer")
    panels[1, 0].set_ylabel("share of the first quarter,\nmean of the layer's heads")
    image = None
    for (above, below), mask in zip(panels.T, MASKS, strict=True):
        shown = most_windows(longest[longest["mask"] == mask])
        above.set_xlabel("head")
        below.set_xlabel("layer")
        if shown.empty:
            above.set_title(MASK_TITLES[mask])
            say(above, f"no {mask} softmax matrices of a model")
            continue
        first = shown.iloc[0]
        above.set_title(f"{MASK_TITLES[mask]},\nN = {first.N}, mean of {first.windows} windows")
        image = draw_heatmap(above, shown, (longest["mean"].min(), longest["mean"].max()))
        draw_layers(below, most_windows(means[means["mask"] == mask]), lengths)
    if image is not None:
        figure.colorbar(
            image, ax=panels[0], label="share of the first quarter\nof singular values", aspect=20
        )
        handles = [
            Line2D([], [], color=color, marker=marker, linestyle=line, markerfacecolor="none")
            for _, (color, marker, line) in zip(lengths, LENGTHS, strict=False)
        ]
        labels = [f"N = {N}" for N in lengths]
        panels[1, 1].legend(handles, labels, loc="lower right")
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--concentration", required=True, help="concentration.csv")
    parser.add_argument("--layers", required=True, help="concentration_layers.csv")
    add_options(parser)
    args = parser.parse_args()
    tables = pd.read_csv(intact(args.concentration)), pd.read_csv(intact(args.layers))
    save(draw(*tables, args.font_size), args.output, args.dpi)


if __name__ == "__main__":
    main()
