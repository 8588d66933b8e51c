"""Gather the growth rates of all sources, dimensions and feature maps into one table."""

import argparse
import csv
import re
from pathlib import Path

from estimate_growth import HEADER
from whole_files import fail, write_csv

PATH = re.compile("source~([^/]+)/d~([^/]+)/feature_map~([^/]+)[.]csv")


def read(path: Path, decays: int) -> list[list[str]]:
    """The rows of one file; ValueError says in which way they are not whole."""
    if not path.read_bytes().endswith(b"\n"):
        raise ValueError("is cut short")
    with path.open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    if tuple(header) != HEADER:
        raise ValueError(f"has the columns {', '.join(header)}")
    match = PATH.search(path.as_posix())
    if not rows or any(not match or tuple(row[:3]) != match.groups() for row in rows):
        raise ValueError("has no rows, or rows of another source, d or map than its path says")
    keys = {tuple(row[:5]) for row in rows}
    members = {row[3] for row in rows}
    if not len(rows) == len(keys) == len(members) * decays:
        raise ValueError(f"has not {decays} different decays for every member")
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--input", nargs="*", default=[], help="what estimate_growth.py wrote")
    parser.add_argument("--decays", type=int, required=True, help="rows that each member has")
    parser.add_argument("--output", required=True, help="the table, a CSV")
    args = parser.parse_args()
    table = []
    for name in args.input:
        try:
            table += read(Path(name), args.decays)
        except (OSError, ValueError) as error:
            fail(f"{name}: {error}; delete the file and run again")
    write_csv(args.output, HEADER, table)


if __name__ == "__main__":
    main()
