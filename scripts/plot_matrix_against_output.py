"""Plot the error of the output against the error of the matrix, with two that disagree."""

import argparse

import no_garbage_collection  # noqa: F401

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from approximation_families import FAMILIES
from figure_style import (
    BLACK,
    GREY,
    MASK_TITLES,
    MASKS,
    add_options,
    legend,
    log10_axis,
    save,
    say,
    sheet,
)
from whole_files import intact

CONTROLS = {
    "values_scaled_up": ("values scaled up", "*"),
    "error_in_the_null_space": ("error in V's null space: output error 0", "v"),
}
X, Y = "relative_frobenius_error", "relative_output_error"
FLOOR = 1e-18
"""Where an output error of zero is drawn, below what rounding leaves of any other."""


def marks(color: str, marker: str, size: float) -> dict[str, object]:
    return {
        **{"linestyle": "none", "color": color, "marker": marker, "markersize": size},
        **{"markerfacecolor": "none", "markeredgewidth": 0.5},
    }


def draw_controls(axes: Axes, controls: pd.DataFrame) -> None:
    for name, (_, marker) in CONTROLS.items():
        rows = controls[controls.control == name]
        axes.plot(rows[X], rows[Y].clip(lower=FLOOR), **control_marks(marker), clip_on=False)


def control_marks(marker: str) -> dict[str, object]:
    return marks(BLACK, marker, 7) | {"markerfacecolor": "white", "markeredgewidth": 0.9}


def draw(bound: pd.DataFrame, controls: pd.DataFrame, font_size: float) -> Figure:
    """Points are drawn as pixels: tens of thousands of shapes would make the file unreadable."""
    table = bound[(bound[X] > 0) & (bound[Y] > 0)]
    figure, (panels,) = sheet(font_size, 105, 1, 2, sharex=True, sharey=True)
    for axes, mask in zip(panels, MASKS, strict=True):
        axes.set(title=MASK_TITLES[mask], xlabel="‖Â − A‖ / ‖A‖, Frobenius (dimensionless)")
        panel = table[table["mask"] == mask]
        if panel.empty:
            say(axes, f"no {mask} matrix was approximated in this study")
        for names, color, marker in FAMILIES.values():
            rows = panel[panel.approximation.isin(names)]
            axes.plot(rows[X], rows[Y], **marks(color, marker, 2.5), rasterized=True)
        if mask == "bidirectional":
            draw_controls(axes, controls)
        for axis in (axes.xaxis, axes.yaxis):
            log10_axis(axis)
        axes.axline((1, 1), (10, 10), color=GREY, linewidth=0.8, linestyle="--")
        axes.set_ylim(bottom=FLOOR)
    panels[0].set_ylabel("‖(Â − A)V‖ / ‖AV‖, Frobenius (dimensionless)")
    handles = [Line2D([], [], label=name, **marks(c, m, 5)) for name, (_, c, m) in FAMILIES.items()]
    handles += [Line2D([], [], label=name, **control_marks(m)) for name, m in CONTROLS.values()]
    handles.append(Line2D([], [], color=GREY, linewidth=0.8, linestyle="--", label="equal"))
    legend(figure, (), handles)
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bound", required=True, help="bound.csv")
    parser.add_argument("--controls", required=True, help="matrix_against_output.csv")
    add_options(parser)
    args = parser.parse_args()
    bound = pd.read_csv(intact(args.bound), usecols=["mask", "approximation", X, Y])
    figure = draw(bound, pd.read_csv(intact(args.controls)), args.font_size)
    save(figure, args.output, args.dpi)


if __name__ == "__main__":
    main()
