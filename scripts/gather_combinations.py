"""Gather into one table what was found by source, dimension and feature map."""

import argparse
import csv
from pathlib import Path

from cell_files import key_of_folder
from combination_tables import COMBINATION_KEYS, TABLES
from gathering import vouched_for
from whole_files import fail, write_csv


def read(path: Path, table: str, rows_per_member: int) -> list[list[str]]:
    """The rows of one file; ValueError says in which way they are not whole."""
    columns, keys = TABLES[table]
    if not path.read_bytes().endswith(b"\n"):
        raise ValueError("is cut short")
    with path.open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    if tuple(header) != columns:
        raise ValueError(f"has the columns {', '.join(header)}")
    label = [str(part) for part in key_of_folder(path.parent, COMBINATION_KEYS)]
    if not rows or any(row[:3] != label for row in rows):
        raise ValueError("has no rows, or rows of another source, d or map than its path says")
    different = {tuple(row[:keys]) for row in rows}
    members = {row[3] for row in rows}
    if not len(rows) == len(different) == len(members) * rows_per_member:
        raise ValueError(f"has not {rows_per_member} different rows for every member")
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", required=True, choices=list(TABLES))
    parser.add_argument("--read", nargs="*", type=Path, default=[], help="batches' manifests")
    parser.add_argument("--cells-digests", nargs="*", default=[], help="of each batch")
    parser.add_argument("--rows-per-member", type=int, required=True)
    parser.add_argument("--output", required=True, help="the table, a CSV")
    args = parser.parse_args()
    name, rows = f"{args.table}.csv", []
    for folder in vouched_for(args.read, args.cells_digests, name, COMBINATION_KEYS):
        try:
            rows += read(folder / name, args.table, args.rows_per_member)
        except (OSError, ValueError) as error:
            fail(f"{folder / name}: {error}; delete the file and run again")
    write_csv(args.output, TABLES[args.table][0], rows)


if __name__ == "__main__":
    main()
