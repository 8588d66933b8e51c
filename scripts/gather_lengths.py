"""Gather into one table what was found by source and length."""

import argparse
import csv
import io
import re
from pathlib import Path

from whole_files import fail, intact, write_csv

PATH = re.compile("source~([^/]+)/N~([^/]+)/d~([^/]+)[.]csv")


def read(path: Path) -> tuple[list[str], list[list[str]]]:
    """Header and rows of one file; ValueError says in which way they are not whole."""
    text = intact(path).read_bytes().decode()
    if not text.endswith("\n"):
        raise ValueError("is cut short")
    header, *rows = csv.reader(io.StringIO(text, newline=""))
    match = PATH.search(path.as_posix())
    if any(not match or tuple(row[:3]) != match.groups() for row in rows):
        raise ValueError("has rows of another source, N or d than its path says")
    if any(len(row) != len(header) for row in rows):
        raise ValueError("has rows that are longer or shorter than its header")
    return header, rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--input", nargs="+", required=True, help="a file for each length")
    parser.add_argument("--output", required=True, help="the table, a CSV")
    args = parser.parse_args()
    first, table = None, []
    for name in args.input:
        try:
            header, rows = read(Path(name))
            if header != (first := first or header):
                raise ValueError("has other columns than the files before it")
        except (OSError, ValueError) as error:
            fail(f"{name}: {error}; delete the file and run again")
        table += rows
    write_csv(args.output, first, table)


if __name__ == "__main__":
    main()
