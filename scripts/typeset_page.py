"""Typeset a table as a page of HTML that the report shows, for reading and searching."""

import argparse
import csv
import sys
from collections.abc import Iterable
from html import escape
from pathlib import Path

from whole_files import intact, whole

LONG = 40  # characters, from which a field gets room
SHORT = 8  # characters, below which a number stays as it is written: it may be a version
PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>{title}</title>
<style>
body {{ font: 13px/1.4 sans-serif; margin: 1em; }}
table {{ border-collapse: collapse; }}
th {{ position: sticky; top: 0; background: white; border-bottom: 2px solid black; }}
th, td {{ padding: 2px 8px; text-align: left; vertical-align: top; max-width: 28em; }}
td {{ border-bottom: 1px solid #ccc; }}
.text {{ min-width: 18em; }}
.number {{ text-align: right; font-variant-numeric: tabular-nums; }}
</style>
<table>
<thead><tr>{header}</tr></thead>
<tbody>
{rows}
</tbody>
</table>
</html>
"""


def cell(field: str) -> str:
    """A field; of a long fraction six digits, and all of them in its tooltip."""
    try:
        number = float(field)
    except ValueError:
        kind = ' class="text"' if len(field) > LONG else ""
        return f"<td{kind}>{escape(field)}</td>"
    text = field if field.lstrip("-").isdigit() or len(field) < SHORT else f"{number:.6g}"
    tooltip = f' title="{escape(field)}"' if text != field else ""
    return f'<td class="number"{tooltip}>{text}</td>'


def page(title: str, header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    return PAGE.format(
        title=escape(title),
        header="".join(f"<th>{escape(name)}</th>" for name in header),
        rows="\n".join(f"<tr>{''.join(map(cell, row))}</tr>" for row in rows),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--input", required=True, help="a table, a CSV")
    parser.add_argument("--output", required=True, help="the page, HTML")
    args = parser.parse_args()
    # Of a large study, a claim's field of the lines that it goes by is longer than csv expects.
    csv.field_size_limit(sys.maxsize)
    with intact(args.input).open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    with whole(args.output) as part:
        part.write_text(page(Path(args.input).name, header, rows), encoding="utf-8")


if __name__ == "__main__":
    main()
