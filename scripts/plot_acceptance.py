"""Plot approximations of layers by the rank that they keep and the error that they make."""

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
    PURPLE,
    add_options,
    legend,
    log10_axis,
    save,
    say,
    sheet,
)
from whole_files import intact

METHODS = {name: look for name, look in FAMILIES.items() if name != "worst values"} | {
    "linear": (("linear",), PURPLE, "v"),
    "uniform": (("uniform",), BLACK, "<"),
}
"""The worst values are no attention; the last two are attention, but none that was asked for."""
BOXES = {
    "rank lost, tolerance not met": ("left", 0.985, "top"),
    "rank kept, tolerance not met": ("right", 0.985, "top"),
    "rank lost, tolerance met": ("left", 0.015, "bottom"),
    "rank kept, tolerance met": ("right", 0.015, "bottom"),
}
SHARES = (0.0, 1.7)
ERRORS = (1e-10, 1e4)
"""What lies beyond is drawn at the edge: below are exact methods, but for rounding."""
NAMED_BY = {
    "rank lost, tolerance met": ("rank_share_min", True),
    "rank lost, tolerance not met": ("output_error_max", False),
    "rank kept, tolerance met": ("output_error_max", False),
    "rank kept, tolerance not met": ("output_error_max", False),
}
"""Which row of a box is named: the least rank, or the largest error."""


def instance(rows: pd.DataFrame, box: str) -> str:
    """The box's name, and the layer and method that stands for it."""
    column, ascending = NAMED_BY[box]
    found = rows[rows.box == box].sort_values(column, ascending=ascending, kind="stable")
    if found.empty:
        return f"{box}:\nnone"
    row = found.iloc[0]
    method = f"{row.method} {row.strength}".replace("_plus_one", "+1").strip()
    return f"{box}:\n{method},\nheads {row.heads}, scale {row.score_scale:g}"


def marks(color: str, marker: str) -> dict[str, object]:
    style = {"linestyle": "none", "color": color, "marker": marker}
    return style | {"markersize": 3.5, "markeredgewidth": 0.7}


def draw_panel(axes: Axes, rows: pd.DataFrame) -> None:
    axes.axvline(1.0, color=BLACK, linewidth=0.8)
    axes.axhline(rows.asked_output_error.iloc[0], color=BLACK, linewidth=0.8, linestyle="--")
    for names, color, marker in METHODS.values():
        chosen = rows[rows.method.isin(names)]
        for enough, fill in ((True, "none"), (False, color)):
            part = chosen[(chosen.contrast_kept_min >= chosen.asked_contrast) == enough]
            axes.plot(
                part.rank_share_min,
                part.output_error_max.clip(*ERRORS),
                markerfacecolor=fill,
                alpha=0.8,
                **marks(color, marker),
            )
    for box, (side, height, vertical) in BOXES.items():
        place = 0.985 if side == "right" else 0.015
        style = {"transform": axes.transAxes, "ha": side, "va": vertical, "fontsize": "x-small"}
        axes.text(place, height, instance(rows, box), color=GREY, in_layout=False, **style)
    axes.set_xlim(*SHARES)
    axes.set_ylim(*ERRORS)


def draw(acceptance: pd.DataFrame, font_size: float) -> Figure:
    table = acceptance.copy()
    table["strength"] = table.strength.fillna("").astype(str)
    figure, (panels,) = sheet(font_size, 100, 1, 2, sharey=True)
    for axes, mask in zip(panels, MASKS, strict=True):
        axes.set(title=MASK_TITLES[mask], xlabel="share of the rank (least of the seeds)")
        rows = table[table["mask"] == mask]
        if rows.empty:
            say(axes, f"no {mask} layer was approximated")
            continue
        log10_axis(axes.yaxis, range(-8, 1, 2))
        draw_panel(axes, rows)
    panels[0].set_ylabel("relative output error (largest of the seeds)")
    handles = [
        Line2D([], [], markerfacecolor="none", label=name, **marks(color, marker))
        for name, (_, color, marker) in METHODS.items()
    ]
    if not table.empty:
        first = table.iloc[0]
        asked = f"error {first.asked_output_error:g}"
        handles.append(Line2D([], [], color=BLACK, linestyle="--", linewidth=0.8, label=asked))
        style = {"linestyle": "none", "marker": "o", "color": GREY}
        handles.append(Line2D([], [], label=f"contrast < {first.asked_contrast:g}", **style))
        figure.supxlabel(
            f"criterion: declaration {first.declaration}; rank above"
            f" {first.asked_rank_threshold:g} of the largest singular value",
            fontsize="small",
        )
    legend(figure, (), handles)
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--acceptance", required=True, help="acceptance.csv")
    add_options(parser)
    args = parser.parse_args()
    table = pd.read_csv(intact(args.acceptance), dtype={"strength": str})
    save(draw(table, args.font_size), args.output, args.dpi)


if __name__ == "__main__":
    main()
