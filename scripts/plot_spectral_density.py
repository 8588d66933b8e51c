"""Plot which share of the singular values of causal matrices exceeds a level, for each N."""

import argparse

import no_garbage_collection  # noqa: F401

import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from figure_style import (
    BLACK,
    FEATURE_MAPS,
    GREY,
    add_options,
    log10_axis,
    save,
    say,
    sheet,
    widest,
)
from whole_files import intact

NORMALIZATIONS = {"none": "unnormalized", "row": "row-normalized"}
COLOURS = colormaps["cividis"]
MARKERS = "os^Dv<>p"
MARKED = 12  # levels from one marker to the next: a decade
QUADRATURE = {"color": BLACK, "linewidth": 0.8, "linestyle": (0, (1, 1))}
BAND = {"facecolor": GREY, "alpha": 0.3, "linewidth": 0}


def styles(sizes: list[int]) -> dict[int, dict[str, object]]:
    """A line for each N, the larger the darker, with a marker of its own."""
    last = len(sizes) - 1
    return {
        N: {
            "label": f"N = {N}",
            "color": COLOURS(0.85 * (last - place) / max(last, 1)),
            "marker": MARKERS[place % len(MARKERS)],
            "markersize": 4.0,
            "markerfacecolor": "white",
        }
        for place, N in enumerate(sizes)
    }


def draw_panel(axes: Axes, table: pd.DataFrame, looks: dict[int, dict[str, object]]) -> None:
    for N, rows in table.groupby("N"):
        rows = rows.sort_values("level")
        sampled = rows.dropna(subset=["count_slq"])
        low, high = (sampled.count_slq + sign * sampled.count_slq_error for sign in (-1, 1))
        axes.fill_between(sampled.level, low.clip(lower=0) / N, high.clip(upper=N) / N, **BAND)
        axes.plot(sampled.level, sampled.count_slq / N, **QUADRATURE)
        axes.plot(rows.level, rows["count"] / N, markevery=MARKED, **looks[N])


def draw(density: pd.DataFrame, font_size: float) -> Figure:
    causal = density[density["mask"] == "causal"]
    table = widest(causal, ["source", "d", "feature_map"], "N")
    looks = styles(sorted(set(table.N)))
    figure, (panels,) = sheet(font_size, 90, 1, 2, sharex=True, sharey=True)
    panels[0].set_ylabel("share of the singular values above")
    for axes, (normalization, title) in zip(panels, NORMALIZATIONS.items(), strict=True):
        axes.set_title(title)
        axes.set_xlabel("level, relative to the largest singular value")
        rows = table[table.normalization == normalization]
        if rows.empty:
            say(axes, f"no singular values of a causal, {title} matrix")
            continue
        draw_panel(axes, rows, looks)
        log10_axis(axes.xaxis)
        log10_axis(axes.yaxis)
    if looks:
        panels[0].set_ylim(0.7 / max(looks), 1.4)
        first = table.iloc[0]
        name = FEATURE_MAPS[first.feature_map][0]
        handles = [Line2D([], [], **look) for look in looks.values()]
        if table.count_slq.notna().any():
            handles.append(Line2D([], [], label="by quadrature", **QUADRATURE))
            handles.append(Patch(label="its 95 % interval", **BAND))
        title = f"source {first.source}, {name}, d = {first.d}, causal, first member"
        figure.legend(handles=handles, loc="outside upper center", ncols=5, title=title)
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spectral-density", required=True, help="spectral_density.csv")
    add_options(parser)
    args = parser.parse_args()
    save(draw(pd.read_csv(intact(args.spectral_density)), args.font_size), args.output, args.dpi)


if __name__ == "__main__":
    main()
