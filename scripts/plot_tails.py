"""Plot against N which fraction of the singular values carries 90 % of their sum."""

import argparse

import no_garbage_collection  # noqa: F401

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figure_style import (
    MASK_TITLES,
    MASKS,
    add_options,
    grid_axis,
    legend,
    map_style,
    maps_of,
    save,
    say,
    sheet,
    widest,
)
from whole_files import intact

COLUMNS = ["source", "N", "d", "feature_map", "mask", "normalization", "mean", "low", "high"]

FRACTIONS = (0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)


def draw_map(axes: Axes, name: str, exact: pd.DataFrame, bounds: pd.DataFrame) -> None:
    """A line through means over members; bars between bounds, of a first member."""
    style = map_style(name)
    axes.plot(exact.N, exact["mean"], **style)
    axes.vlines(
        bounds.N,
        bounds.index_of_90_low,
        bounds.index_of_90_high,
        color=style["color"],
        linewidth=3.0,
        alpha=0.5,
    )


def draw(tails: pd.DataFrame, concentration: pd.DataFrame, font_size: float) -> Figure:
    exact = concentration[concentration.quantity == "index_of_90"]
    exact = exact[exact.layer.isna() & (exact.normalization == "row")]
    exact = widest(exact, ["source", "d"], "N")
    bounds = widest(tails[tails.normalization == "row"], ["source", "d"], "N")
    both = pd.concat([exact, bounds])
    figure, (panels,) = sheet(font_size, 75, 1, 2, sharex=True, sharey=True)
    panels[0].set_ylabel("fraction of singular values\nwith 90 % of their sum")
    maps = maps_of(both, "N")
    smallest = both[["mean", "index_of_90_low"]].min().min()
    bottom = max((x for x in FRACTIONS if x <= smallest), default=FRACTIONS[0])
    for axes, mask in zip(panels, MASKS, strict=True):
        axes.set_title(MASK_TITLES[mask])
        axes.set_xlabel("N (tokens)")
        panel = both[both["mask"] == mask]
        if panel.empty:
            say(axes, f"no spectra of {mask} row-normalized matrices")
            continue
        for name in maps:
            parts = (table[table.feature_map == name] for table in (exact, bounds))
            parts = (part[part["mask"] == mask].sort_values("N") for part in parts)
            draw_map(axes, name, *parts)
        grid_axis(axes.xaxis, both.N.unique(), closest=2.1)
        grid_axis(axes.yaxis, FRACTIONS)
        axes.set(xlim=(0.8 * both.N.min(), 1.25 * both.N.max()), ylim=(bottom, 1))
    if maps:
        sources = both[["source", "d"]].drop_duplicates()
        names = ", ".join(f"{row.source}, d = {row.d}" for row in sources.itertuples())
        legend(figure, maps, title=f"rows normalized; {names}; bars: bounds from counts")
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tails", required=True, help="tails.csv")
    parser.add_argument("--concentration", nargs="*", default=[], help="concentration.csv, if any")
    add_options(parser)
    args = parser.parse_args()
    exact = [pd.read_csv(intact(path)) for path in args.concentration]
    empty = pd.DataFrame(columns=[*COLUMNS, "quantity", "layer"])
    table = exact[0] if exact else empty
    save(draw(pd.read_csv(intact(args.tails)), table, args.font_size), args.output, args.dpi)


if __name__ == "__main__":
    main()
