"""Plot how much of the output-error bound is reached, by perturbation and mask."""

import argparse

import no_garbage_collection  # noqa: F401

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from figure_style import (
    BLACK,
    BLUE,
    MASK_TITLES,
    MASKS,
    VERMILION,
    add_options,
    legend,
    save,
    say,
    sheet,
)

COLUMNS = ["mask", "approximation", "strength", "tightness_max", "tightness_median"]
ROWS = {
    "tightness_max": {"color": VERMILION, "marker": "o", "label": "a matrix's tightest row"},
    "tightness_median": {"color": BLUE, "marker": "s", "label": "a matrix's median row"},
}


def by_strength(table: pd.DataFrame) -> list[tuple[str, str]]:
    """The (approximation, strength) of the table; numbers in order, then precisions."""

    def order(key: tuple[str, str]) -> tuple[str, float, str]:
        try:
            return key[0], float(key[1]), ""
        except ValueError:
            return key[0], float("inf"), key[1]

    return sorted(set(zip(table.approximation, table.strength, strict=True)), key=order)


def draw_panel(axes: Axes, table: pd.DataFrame, perturbations: list[tuple[str, str]]) -> None:
    """For each perturbation the spread over matrices: all of them, the middle half, the median.

    Quantiles are taken among the values of the table, so each drawn number is one of its fields.
    """
    for place, (approximation, strength) in enumerate(perturbations):
        rows = table[(table.approximation == approximation) & (table.strength == strength)]
        for (column, style), offset in zip(ROWS.items(), (-0.17, 0.17), strict=True):
            known = rows[column].dropna()
            if known.empty:
                continue
            y, color = place + offset, style["color"]
            least, low, middle, high, most = known.quantile(
                [0, 0.25, 0.5, 0.75, 1], interpolation="nearest"
            )
            axes.hlines(y, least, most, color=color, linewidth=0.8)
            axes.hlines(y, low, high, color=color, linewidth=3)
            axes.plot(middle, y, color=color, marker=style["marker"], markerfacecolor="white")


def draw(bound: pd.DataFrame, font_size: float) -> Figure:
    table = bound.dropna(subset=["approximation", "tightness_max"])
    perturbations = by_strength(table)
    height = 30 + 9 * max(len(perturbations), 3)
    figure, (panels,) = sheet(font_size, height, 1, 2, sharex=True, sharey=True)
    for axes, mask in zip(panels, MASKS, strict=True):
        axes.set(title=MASK_TITLES[mask], xlabel="error / bound (dimensionless)")
        panel = table[table["mask"] == mask]
        if panel.empty:
            say(axes, f"no {mask} matrix was perturbed in this study")
            continue
        axes.axvline(1, color=BLACK, linewidth=1.2)
        draw_panel(axes, panel, perturbations)
        axes.set_yticks(range(len(perturbations)), [" ".join(key) for key in perturbations])
        axes.set_xlim(0, 1.05)
        axes.set_ylim(len(perturbations) - 0.5, -0.5)
    handles = [Line2D([], [], markerfacecolor="white", **style) for style in ROWS.values()]
    handles.append(Line2D([], [], color=BLACK, linewidth=1.2, label="the bound"))
    legend(figure, (), handles)
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bound", required=True, help="bound.csv")
    add_options(parser)
    args = parser.parse_args()
    bound = pd.read_csv(args.bound, usecols=COLUMNS, dtype={"strength": str})
    save(draw(bound, args.font_size), args.output, args.dpi)


if __name__ == "__main__":
    main()
