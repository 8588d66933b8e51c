"""Plot what the mask changes in a worked example, beside what the running-sum form changes."""

import argparse

import no_garbage_collection  # noqa: F401

import pandas as pd
from matplotlib.figure import Figure

from figure_style import BLACK, BLUE, VERMILION, add_options, log10_axis, save, say, sheet
from whole_files import intact

SERIES = {
    "causal_to_bidirectional": {
        "color": VERMILION,
        "marker": "o",
        "linestyle": "-",
        "label": "causal against bidirectional output (mean)",
    },
    "rounding_bound": {
        "color": BLACK,
        "linestyle": "--",
        "label": "bound on float32 rounding",
    },
    "running_sum_to_masked": {
        "color": BLUE,
        "marker": "s",
        "linestyle": ":",
        "label": "running sum against masked matrix (largest)",
    },
}


def draw(running_sum: pd.DataFrame, font_size: float) -> Figure:
    figure, ((axes,),) = sheet(font_size, 75)
    axes.set(xlabel="position i (tokens)", ylabel="absolute difference of output i")
    if running_sum.empty:
        say(axes, "no worked example")
        return figure
    log10_axis(axes.yaxis)
    for column, style in SERIES.items():
        seen = running_sum[running_sum[column] > 0]
        axes.plot(seen.position, seen[column], markerfacecolor="white", **style)
    axes.set_xlim(0, running_sum.position.max() + 1)
    axes.legend(loc="upper right", bbox_to_anchor=(1.0, 0.78))
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--running-sum", required=True, help="running_sum.csv")
    add_options(parser)
    args = parser.parse_args()
    save(draw(pd.read_csv(intact(args.running_sum)), args.font_size), args.output, args.dpi)


if __name__ == "__main__":
    main()
