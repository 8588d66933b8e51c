"""Plot how singular values decay, without and with the causal mask, down to double precision."""

import argparse

import no_garbage_collection  # noqa: F401

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figure_style import (
    GREY,
    MASK_TITLES,
    MASKS,
    add_options,
    legend,
    log10_axis,
    map_style,
    maps_of,
    save,
    say,
    sheet,
    widest,
)
from whole_files import intact

SMALLEST = 1e-20
ZERO = 1e-40  # below the axis: a line that falls out of the panel has reached exact zeros
MARKED = 8
MOST_MAPS = 4


def draw_floor(axes: Axes, N: int) -> None:
    """Weyl: a computed singular value errs by about N eps of the largest one."""
    floor = N * np.finfo(float).eps
    axes.axhspan(SMALLEST, floor, facecolor="0.93", edgecolor="0.75", hatch="///", linewidth=0)
    axes.axhline(floor, color=GREY, linewidth=0.8)
    axes.annotate(
        "N eps: below is rounding",
        (0.02, floor),
        xycoords=("axes fraction", "data"),
        xytext=(2, -3),
        textcoords="offset points",
        va="top",
        fontsize="small",
        bbox={"facecolor": "0.93", "edgecolor": "none", "pad": 0.5},
    )


def draw(singular_values: pd.DataFrame, font_size: float) -> Figure:
    table = singular_values[singular_values.normalization == "none"]
    sizes = widest(table, ["source", "N"], "feature_map")
    table = widest(sizes, ["source", "d"], "feature_map")
    maps = maps_of(table, "index")[:MOST_MAPS]
    figure, panels = sheet(font_size, 85, 1, 2, sharex=True, sharey=True)
    panels[0, 0].set_ylabel("singular value / largest")
    for axes, mask in zip(panels[0], MASKS, strict=True):
        axes.set_title(MASK_TITLES[mask])
        axes.set_xlabel("index j; ticks at d and N")
        panel = table[table["mask"] == mask]
        if panel.empty:
            say(axes, f"no singular values of unnormalized {mask} matrices")
            continue
        log10_axis(axes.yaxis, range(-20, 1, 4))
        N, d = int(panel.N.iloc[0]), int(panel.d.iloc[0])
        axes.set_xticks(sorted({min(d, N), N}))
        axes.set_ylim(SMALLEST, 3)
        draw_floor(axes, N)
        for name in maps:
            series = panel[panel.feature_map == name].sort_values("index")
            axes.plot(
                series["index"],
                series.sigma_relative.clip(lower=ZERO),
                markevery=max(1, len(series) // MARKED),
                **map_style(name),
            )
    if not table.empty:
        first = table.iloc[0]
        title = f"source {first.source}, N = {first.N}, d = {first.d}, unnormalized, first member"
        legend(figure, maps, title=title)
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--singular-values", required=True, help="singular_values.csv")
    add_options(parser)
    args = parser.parse_args()
    save(draw(pd.read_csv(intact(args.singular_values)), args.font_size), args.output, args.dpi)


if __name__ == "__main__":
    main()
