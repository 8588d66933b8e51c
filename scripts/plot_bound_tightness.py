"""Plot the output error of every approximation beside its three bounds, by mask."""

import argparse

import no_garbage_collection  # noqa: F401

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from figure_style import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    MASK_TITLES,
    MASKS,
    VERMILION,
    add_options,
    legend,
    log10_axis,
    save,
    say,
    sheet,
)
from whole_files import intact

QUANTITIES = {
    "output_over_value": {"color": BLACK, "marker": "o", "label": "error of the worst row"},
    "row_l1_error_max": {"color": VERMILION, "marker": "|", "label": "row bound"},
    "spectral_over_value": {"color": BLUE, "marker": "s", "label": "spectral bound"},
    "entrywise_over_value": {"color": GREEN, "marker": "^", "label": "entrywise bound"},
}
SMALLEST = 1e-9
"""Errors below it are rounding of float64: an exact approximation."""
KEYS = ["mask", "normalization", "approximation", "strength", "exists", "reason"]


def ladder(table: pd.DataFrame) -> list[tuple[str, str]]:
    """The (approximation, strength) of the table, in its order."""
    return list(dict.fromkeys(zip(table.approximation, table.strength, strict=True)))


def draw_row(axes: Axes, y: int, rows: pd.DataFrame) -> None:
    """The medians over matrices, and between which values the error lies.

    Quantiles are taken among the values of the table, so each drawn number is one of its fields.
    """
    for column, style in QUANTITIES.items():
        known = rows[column][rows[column] > 0]
        if known.empty:
            continue
        low, middle, high = known.quantile([0, 0.5, 1], interpolation="nearest")
        if column == "output_over_value":
            axes.hlines(y, low, high, color=style["color"], linewidth=0.8)
        size = 9 if style["marker"] == "|" else 4
        axes.plot(middle, y, **style, markerfacecolor="white", markersize=size, linestyle="none")


def draw(bound: pd.DataFrame, font_size: float) -> Figure:
    table = bound[bound.exists.notna() & (bound.normalization == "row")]
    approximations = ladder(table)
    height = 35 + 5 * max(len(approximations), 6)
    figure, (panels,) = sheet(font_size, height, 1, 2, sharex=True, sharey=True)
    for axes, mask in zip(panels, MASKS, strict=True):
        axes.set(title=MASK_TITLES[mask], xlabel="error or bound / max ‖v‖ (dimensionless)")
        panel = table[table["mask"] == mask]
        if panel.empty:
            say(axes, f"no {mask} matrix was approximated in this study")
            continue
        log10_axis(axes.xaxis)
        for y, (name, strength) in enumerate(approximations):
            rows = panel[(panel.approximation == name) & (panel.strength == strength)]
            if not rows.exists.any():
                why = rows.reason.iloc[0].split(":")[0]
                place = {"transform": axes.get_yaxis_transform(), "ha": "right", "va": "center"}
                look = {"color": GREY, "style": "italic", "fontsize": "small"}
                axes.text(0.99, y, why, **place, **look)
            draw_row(axes, y, rows)
        names = [f"{name.replace('_', ' ')} {strength}" for name, strength in approximations]
        axes.set_yticks(range(len(names)), names)
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.set_xlim(left=SMALLEST)
    handles = [
        Line2D([], [], linestyle="none", markerfacecolor="white", **style)
        for style in QUANTITIES.values()
    ]
    legend(figure, (), handles)
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bound", required=True, help="bound.csv")
    add_options(parser)
    args = parser.parse_args()
    bound = pd.read_csv(intact(args.bound), usecols=[*KEYS, *QUANTITIES], dtype={"strength": str})
    save(draw(bound, args.font_size), args.output, args.dpi)


if __name__ == "__main__":
    main()
