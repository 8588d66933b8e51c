"""Draw the claims as a table of one page: what was said, what was measured, and the verdict."""

import argparse
from functools import cache
from itertools import accumulate, pairwise

import no_garbage_collection  # noqa: F401

import pandas as pd
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties

from figure_style import BLUE, GREY, MM_PER_INCH, VERMILION, WIDTH_MM, add_options, save, sheet
from whole_files import intact

# A symbol and a word for each verdict; the colour only repeats them.
VERDICTS = {"holds": ("✔", BLUE), "fails": ("✘", VERMILION), "undetermined": ("?", GREY)}
EXPECTATIONS = {
    "equal": ("= {}", "= {} ± {}"),
    "at_least": ("≥ {}", "≥ {} − {}"),
    "at_most": ("≤ {}", "≤ {} + {}"),
    "one_more_member": ("like members: {}", "like members: {} ± {}"),
}

# Left edges of the columns and the right edge of the page, in millimetres.
EDGES = {"claim": 1, "statement": 40, "what": 96, "expected": 131, "measured": 153, "end": 171}
GAP_MM = 2.0
LINE_SPACING = 1.25
POINTS_PER_INCH = 72.0


class Ruler:
    """Breaks text into lines that fit a column, by the widths that the renderer measures."""

    def __init__(self, figure: Figure):
        self.renderer = FigureCanvasAgg(figure).get_renderer()
        self.mm_per_pixel = MM_PER_INCH / figure.dpi
        self.width_mm = cache(self._width_mm)

    def _width_mm(self, word: str, font: FontProperties) -> float:
        width, _, _ = self.renderer.get_text_width_height_descent(word, font, False)
        return width * self.mm_per_pixel

    def lines(self, text: str, font: FontProperties, room_mm: float) -> list[str]:
        """Lines no wider than `room_mm`; a word that is wider itself is cut."""
        space = self.width_mm(" ", font)
        lines, used = [""], 0.0
        for word in " ".join(text.split()).replace(" = ", "\u00a0=\u00a0").split(" "):
            for part in self._parts(word, font, room_mm):
                width = self.width_mm(part, font)
                if lines[-1] and used + space + width > room_mm:
                    lines.append(part)
                    used = width
                else:
                    lines[-1] = f"{lines[-1]} {part}".strip()
                    used += width + (space if used else 0.0)
        return lines

    def _parts(self, word: str, font: FontProperties, room_mm: float) -> list[str]:
        share = self.width_mm(word, font) / room_mm
        if share <= 1:
            return [word]
        length = max(1, int(0.8 * len(word) / share))
        return [word[start : start + length] for start in range(0, len(word), length)]


def expectation(row: tuple) -> str:
    exactly, with_tolerance = EXPECTATIONS[row.relation]
    form = with_tolerance if row.tolerance else exactly
    return form.format(f"{row.expected:.5g}", f"{row.tolerance:.2g}")


def columns_of(row: tuple) -> dict[str, list[tuple[str, str]]]:
    """The (text, weight) of each column's paragraphs."""
    symbol, _ = VERDICTS[row.verdict]
    measured = "no data" if pd.isna(row.measured) else f"{row.measured:.5g}"
    return {
        "claim": [(f"{symbol} {row.verdict}", "bold"), (row.id, "normal")],
        "statement": [(row.statement, "normal")],
        "what": [(f"{row.statistic} ({row.table}.csv)", "normal")],
        "expected": [(expectation(row), "normal")],
        "measured": [(measured, "normal")],
    }


def draw(claims: pd.DataFrame, font_size: float) -> Figure:
    figure, ((axes,),) = sheet(font_size, 100)
    axes.set_axis_off()
    ruler, size = Ruler(figure), 0.8 * font_size
    line_mm = LINE_SPACING * size / POINTS_PER_INCH * MM_PER_INCH
    fonts = {weight: FontProperties(size=size, weight=weight) for weight in ("normal", "bold")}
    names, edges = list(EDGES)[:-1], list(EDGES.values())
    widths = dict(zip(names, (b - a - GAP_MM for a, b in pairwise(edges)), strict=True))

    def wrapped(cells: dict[str, list[tuple[str, str]]]) -> dict[str, list[tuple[str, str]]]:
        return {
            name: [
                (line, weight)
                for text, weight in paragraphs
                for line in ruler.lines(text, fonts[weight], widths[name])
            ]
            for name, paragraphs in cells.items()
        }

    counts = claims.verdict.value_counts()
    tally = ", ".join(f"{symbol} {counts.get(v, 0)} {v}" for v, (symbol, _) in VERDICTS.items())
    heads = {name: [(name, "bold")] for name in names} | {"what": [("what is measured", "bold")]}
    rows = [(wrapped(heads), "black")]
    rows += [
        (wrapped(columns_of(row)), VERDICTS[row.verdict][1])
        for row in claims.itertuples(index=False)
    ]
    heights = [max(map(len, cells.values())) * line_mm + GAP_MM for cells, _ in rows]
    top, height_mm = 3 * line_mm, 3 * line_mm + sum(heights) + GAP_MM
    figure.set_layout_engine("none")
    figure.set_size_inches(WIDTH_MM / MM_PER_INCH, height_mm / MM_PER_INCH)
    axes.set_position([0, 0, 1, 1])
    axes.set(xlim=(0, WIDTH_MM), ylim=(height_mm, 0))
    axes.text(EDGES["claim"], line_mm, f"{len(claims)} claims: {tally}", va="top", size=font_size)
    tops = list(accumulate(heights[:-1], initial=top))
    axes.hlines(tops, 0, WIDTH_MM, color="0.7", linewidth=0.5)
    for (cells, color), y in zip(rows, tops, strict=True):
        for name, lines in cells.items():
            for place, (line, weight) in enumerate(lines):
                axes.text(
                    EDGES[name],
                    y + GAP_MM / 2 + (place + 0.75) * line_mm,
                    line,
                    color=color if weight == "bold" else "black",
                    va="baseline",
                    font=fonts[weight],
                    parse_math=False,
                )
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--claims", required=True, help="claims.csv")
    add_options(parser)
    args = parser.parse_args()
    save(draw(pd.read_csv(intact(args.claims)), args.font_size), args.output, args.dpi)


if __name__ == "__main__":
    main()
