"""Plot the rank of softmax of a rank-one score matrix: proved, and as double precision sees it."""

import argparse

import no_garbage_collection  # noqa: F401

import pandas as pd
from matplotlib.figure import Figure

from figure_style import BLACK, BLUE, GREY, VERMILION, add_options, grid_axis, save, say, sheet
from whole_files import intact

RANKS = {
    "exact_rank": {"color": BLUE, "marker": "o", "linestyle": "-", "label": "exact rank"},
    "numerical_rank": {
        "color": VERMILION,
        "marker": "s",
        "linestyle": "--",
        "label": "numerical (float64, N eps)",
    },
    "score_rank": {"color": GREY, "marker": "x", "linestyle": ":", "label": "of the score matrix"},
}


def draw(rank_one: pd.DataFrame, font_size: float) -> Figure:
    figure, ((left, right),) = sheet(font_size, 75, 1, 2)
    left.set(title="rank", ylabel="rank")
    right.set(title="determinant", ylabel="log10 |det|")
    for axes in (left, right):
        axes.set_xlabel("sequence length N (tokens)")
    if rank_one.empty:
        say(left, "no rank-one scores")
        say(right, "no rank-one scores")
        return figure
    for column, style in RANKS.items():
        left.plot(rank_one.N, rank_one[column], markerfacecolor="none", **style)
    right.plot(rank_one.N, rank_one.log10_abs_det, color=BLACK, marker="o", markerfacecolor="none")
    for axis in (left.xaxis, left.yaxis, right.xaxis):
        grid_axis(axis, rank_one.N)
    left.set_yticks([1, *rank_one.N])
    left.legend(loc="lower right", bbox_to_anchor=(1.0, 0.08))
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rank-one-softmax", required=True, help="rank_one_softmax.csv")
    add_options(parser)
    args = parser.parse_args()
    save(draw(pd.read_csv(intact(args.rank_one_softmax)), args.font_size), args.output, args.dpi)


if __name__ == "__main__":
    main()
