"""Gather a table from the cells of the grid, strictly: all of them, each once, as labelled."""

import argparse
import csv
import re
from collections import Counter
from itertools import product
from pathlib import Path

from causalrank.mixing import MASKS, NORMALIZATIONS
from cell_files import CELL_KEYS, MATRIX_KEYS
from whole_files import fail, write_csv

ROW_KEYS = {
    "rank": (),
    "block_rank": ("split",),
    "spectrum": (),
    "numerical_rank": ("precision", "tolerance"),
    "bound": ("approximation", "strength"),
    "singular_values": ("index",),
    "spectral_density": ("level",),
    "methods": (),
    "baselines": (),
}
FIRST_MEMBER_ONLY = ("singular_values", "spectral_density")
CELL_PATH = re.compile("/".join(f"{key}~([^/]+)" for key in CELL_KEYS))


def read_cell(path: Path, table: str, members: int) -> tuple[list[str], list[list[str]]]:
    """The header and rows of a cell's table; ValueError says in which way they are not whole."""
    if not path.read_bytes().endswith(b"\n"):
        raise ValueError("is cut short")
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.reader(file)
        header, rows = next(reader, []), list(reader)
    keys = (*MATRIX_KEYS, *ROW_KEYS[table])
    if tuple(header[: len(keys)]) != keys:
        raise ValueError(f"has the columns {', '.join(header)}")
    if any(len(row) != len(header) for row in rows):
        raise ValueError("has rows that are longer or shorter than its header")
    match = CELL_PATH.search(path.as_posix())
    label = match.groups() if match else ()
    if any(tuple(row[: len(CELL_KEYS)]) != label for row in rows):
        raise ValueError("holds rows of another cell than its folder says")
    counts = Counter(tuple(row[: len(keys)]) for row in rows)
    repeated = next((key for key, count in counts.items() if count > 1), None)
    if repeated:
        raise ValueError(f"has more than one row for {', '.join(repeated)}")
    if table not in FIRST_MEMBER_ONLY:
        _require_every_matrix(rows, members, len(keys))
    return header, rows


def _require_every_matrix(rows: list[list[str]], members: int, keys: int) -> None:
    """All matrices, with as many rows each, or with a single one whose keys are left empty."""
    per_matrix = Counter(tuple(row[len(CELL_KEYS) : len(MATRIX_KEYS)]) for row in rows)
    unmeasured = {
        tuple(row[len(CELL_KEYS) : len(MATRIX_KEYS)])
        for row in rows
        if keys > len(MATRIX_KEYS) and not any(row[len(MATRIX_KEYS) : keys])
    }
    expected = set(product(map(str, range(members)), MASKS, NORMALIZATIONS))
    for what, matrices in (
        ("lacks", expected - set(per_matrix)),
        ("has the unexpected", set(per_matrix) - expected),
    ):
        if matrices:
            more = len(matrices) - 1
            raise ValueError(f"{what} matrix {', '.join(min(matrices))} and {more} more")
    measured = [key for key in per_matrix if key not in unmeasured or per_matrix[key] > 1]
    fewest = min(measured, key=per_matrix.get, default=None)
    if fewest and per_matrix[fewest] < max(per_matrix.values()):
        raise ValueError(f"has fewer rows for matrix {', '.join(fewest)} than for others")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", required=True, choices=list(ROW_KEYS))
    parser.add_argument("--input", nargs="+", required=True, help="the table of each cell")
    parser.add_argument("--members", nargs="+", type=int, required=True, help="of each cell")
    parser.add_argument("--output", required=True)
    args = parser.parse_args()
    if len(set(args.input)) < len(args.input):
        fail("a cell is named twice")
    table_header, table_rows = None, []
    for name, members in zip(args.input, args.members, strict=True):
        try:
            header, rows = read_cell(Path(name), args.table, members)
            if header != (table_header := table_header or header):
                raise ValueError("has other columns than the cells before it")
        except (OSError, ValueError) as error:
            fail(f"{name}: {error}; delete the file and run again")
        table_rows += rows
    write_csv(args.output, table_header, table_rows)


if __name__ == "__main__":
    main()
