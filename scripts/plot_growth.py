"""Plot the growth law of conditioning: -ln sigma_min against N, and exponents against d."""

import argparse

import no_garbage_collection  # noqa: F401

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from figure_style import (
    BLACK,
    FEATURE_MAPS,
    GREY,
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

LINEAR = 1e-3  # between this and its negative, exponents are drawn on a linear scale
TICKS = (-1, -0.1, -0.01, -LINEAR, 0, LINEAR, 0.01, 0.1, 1)
HEADS = {"linestyle": "none", "markersize": 2.5, "markeredgewidth": 0.5, "alpha": 0.7}
SIDE, NEXT = 1.16, 1.12  # by what factor the heads stand to the right of their d, and apart


def draw_sizes(axes: Axes, sizes: pd.DataFrame, slopes: pd.DataFrame) -> list[str]:
    """Means with bars over members, and lines whose slope is the exponent, in its interval."""
    resolved = sizes.dropna(subset=["mean"]).sort_values("N")
    maps = maps_of(resolved, "N")
    for name in maps:
        known = resolved[resolved.feature_map == name]
        style = map_style(name)
        axes.plot(known.N, known["mean"], **style | {"linestyle": "none"})
        axes.vlines(known.N, known["min"], known["max"], color=style["color"], linewidth=0.8)
        for row in slopes[slopes.feature_map == name].dropna(subset=["pivot"]).itertuples():
            N = np.array([row.N_from, row.pivot_N, row.N_to])
            low, middle, high = (
                row.pivot + rate * (N - row.pivot_N)
                for rate in (row.exponent_low, row.exponent, row.exponent_high)
            )
            axes.fill_between(N, low, high, color=style["color"], alpha=0.25, linewidth=0)
            axes.plot(N, middle, color=style["color"], linestyle=style["linestyle"])
    if not maps:
        say(axes, "no sigma_min of a drawn, causal, unnormalized matrix")
    return maps


def at(table: pd.DataFrame) -> str:
    """Which maps and d a table has: "elu+1, exp at d = 1"."""
    dimensions = {
        FEATURE_MAPS[name][0]: ", ".join(map(str, sorted(table.d[table.feature_map == name])))
        for name in FEATURE_MAPS
        if name in set(table.feature_map)
    }
    alike: dict[str, list[str]] = {}
    for label, numbers in dimensions.items():
        alike.setdefault(numbers, []).append(label)
    return "\n".join(f"{', '.join(labels)} at d = {numbers}" for numbers, labels in alike.items())


def draw_exponents(axes: Axes, drawn: pd.DataFrame, heads: pd.DataFrame) -> list[str]:
    known = drawn[np.isfinite(drawn.exponent)]
    present = set(known.feature_map) | set(heads.feature_map)
    maps = [name for name in FEATURE_MAPS if name in present]
    for place, name in enumerate(maps):
        style = map_style(name)
        series = known[known.feature_map == name].sort_values("d")
        axes.plot(series.d, series.exponent, **style)
        axes.vlines(series.d, series.exponent_low, series.exponent_high, color=style["color"])
        members = heads[heads.feature_map == name]
        axes.plot(members.d * SIDE * NEXT**place, members.exponent, **style | HEADS)
    axes.axhline(0, color=GREY, linewidth=0.6, zorder=0)
    scale_exponents(axes, pd.concat([known.exponent_low, known.exponent_high, heads.exponent]))
    none = drawn[drawn.exponent == -np.inf]
    undefined = drawn[drawn.exponent.isna()]
    notes = [f"−∞: {at(none)}"] if len(none) else []
    notes += [f"undefined: {at(undefined)}"] if len(undefined) else []
    if notes:
        say(axes, "\n".join(notes), 0.08)
    if not maps:
        say(axes, "no finite exponent in this study")
    return maps


def scale_exponents(axes: Axes, values: pd.Series) -> None:
    """A logarithmic axis on both sides of zero, with room for the notes at the bottom."""
    axes.set_yscale("symlog", linthresh=LINEAR, linscale=0.5)
    low, high = (values.min(), values.max()) if len(values) else (0.0, 1.0)
    axes.set_ylim(min(3 * low, -6 * LINEAR), max(2 * high, 10 * LINEAR))
    bottom, top = axes.get_ylim()
    axes.yaxis.set_major_locator(FixedLocator([tick for tick in TICKS if bottom <= tick <= top]))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}".replace("-", "−")))


def draw(
    growth: pd.DataFrame, sizes: pd.DataFrame, slopes: pd.DataFrame, font_size: float
) -> Figure:
    figure, ((left, right),) = sheet(font_size, 85, 1, 2)
    left.set(xlabel="sequence length N (tokens)", ylabel="−ln sigma_min (natural logarithm)")
    right.set(xlabel="head dimension d", ylabel="exponent (per token)")
    free = growth[growth.decay == 1.0]
    drawn = widest(free[free.member.isna()], ["source", "decay"], "d")
    heads = free[free.member.notna() & np.isfinite(free.exponent)]
    unnormalized = sizes[sizes.normalization == "none"]
    chosen = widest(unnormalized, ["source", "d"], "N")
    slopes = slopes[slopes.normalization == "none"].merge(chosen[["source", "d"]].drop_duplicates())
    seen = {*draw_sizes(left, chosen, slopes), *draw_exponents(right, drawn, heads)}
    if len(drawn) + len(heads):
        grid_axis(right.xaxis, {*drawn.d, *heads.d})
    titles = [f"source {row.source}, d = {row.d}" for row in chosen.head(1).itertuples()]
    left.set_title("".join(titles))
    right.set_title("".join(f"source {source}" for source in drawn.source.unique()))
    lines = slopes["pivot"].notna().any()
    others = [Line2D([], [], label="slope: the exponent", color=BLACK)] if lines else []
    if len(heads):
        label = f"heads of {', '.join(sorted(set(heads.source)))}"
        others.append(Line2D([], [], label=label, color=BLACK, marker=".", **HEADS))
    legend(figure, [name for name in FEATURE_MAPS if name in seen], others)
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--growth", required=True, help="growth.csv")
    parser.add_argument("--sizes", required=True, help="growth_sizes.csv")
    parser.add_argument("--slopes", required=True, help="growth_slopes.csv")
    add_options(parser)
    args = parser.parse_args()
    tables = [pd.read_csv(intact(path)) for path in (args.growth, args.sizes, args.slopes)]
    save(draw(*tables, args.font_size), args.output, args.dpi)


if __name__ == "__main__":
    main()
