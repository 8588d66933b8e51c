"""Plot the two-token family: what a score transmits, what saturates, and who responds."""

import argparse

import no_garbage_collection  # noqa: F401

import pandas as pd
from matplotlib.figure import Figure

from figure_style import BLUE, GREY, VERMILION, add_options, log10_axis, save, say, sheet
from whole_files import intact

TRANSMISSION = {"color": BLUE, "linestyle": "-", "label": "tanh a"}
SATURATION = {"color": VERMILION, "linestyle": "--", "label": "1 − tanh² a"}
LINEAR_TO = 4.0


def dots(color: str, marker: str, label: str) -> dict[str, object]:
    """A measured series beside the line of its closed form."""
    style = {"color": color, "marker": marker, "label": label, "linestyle": "none"}
    return style | {"markerfacecolor": "none", "markeredgewidth": 0.7, "markevery": 2}


def draw(two_token: pd.DataFrame, font_size: float) -> Figure:
    figure, (panels,) = sheet(font_size, 75, 1, 3)
    transmission, condition, response = panels
    for axes in panels:
        axes.set_xlabel("score a (dimensionless)")
    transmission.set(title="transmission, saturation", ylabel="value (dimensionless)")
    condition.set(title="condition number", ylabel="condition number")
    response.set(title="response of the output", ylabel="d output / d a")
    if two_token.empty:
        for axes in panels:
            say(axes, "no two-token matrix")
        return figure
    table = two_token.sort_values("a")
    near = table[table.a <= LINEAR_TO]
    transmission.plot(near.a, near.tanh_a, **TRANSMISSION)
    transmission.plot(near.a, near.determinant, **dots(BLUE, "o", "det A"))
    transmission.plot(near.a, near.saturation, **SATURATION)
    known = table[(table.a > 0) & (table.condition_number < float("inf"))]
    if known.empty:
        say(condition, "no finite condition number")
    else:
        condition.plot(known.a, known.condition_closed_form, color=GREY, label="1 / tanh a")
        condition.plot(known.a, known.condition_number, **dots(BLUE, "o", "measured"))
        log10_axis(condition.xaxis)
        log10_axis(condition.yaxis)
    response.plot(near.a, near.saturation, **SATURATION)
    response.plot(near.a, near.response_opposite, **dots(VERMILION, "s", "values (1, −1)"))
    response.plot(near.a, near.response_equal, **dots("black", "x", "values (1, 1)"))
    for axes, place in zip(panels, ("center right", "upper right", "upper right"), strict=True):
        if axes.lines:
            axes.legend(loc=place, fontsize="small", handlelength=2.2)
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--two-token", required=True, help="two_token.csv")
    add_options(parser)
    args = parser.parse_args()
    save(draw(pd.read_csv(intact(args.two_token)), args.font_size), args.output, args.dpi)


if __name__ == "__main__":
    main()
