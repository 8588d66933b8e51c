"""Gather a table from the cells of the grid, strictly: all of them, each once, as labelled.

Which cells there are, and that their tables are what the steps wrote, the batches' manifests say.
"""

import argparse
import csv
import io
from collections import Counter
from itertools import product
from pathlib import Path

from causalrank.mixing import MASKS, NORMALIZATIONS
from cell_files import CELL_KEYS, MATRIX_KEYS, key_of_folder
from gathering import vouched_for
from whole_files import fail, whole

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


def read_cell(path: Path, table: str, members: int) -> tuple[str, str]:
    """The header and the lines of a cell's table; ValueError says why they are not whole."""
    text = path.read_bytes().decode()
    if not text.endswith("\n"):
        raise ValueError("is cut short")
    reader = csv.reader(io.StringIO(text, newline=""))
    header, rows = next(reader, []), list(reader)
    keys = (*MATRIX_KEYS, *ROW_KEYS[table])
    if tuple(header[: len(keys)]) != keys:
        raise ValueError(f"has the columns {', '.join(header)}")
    if any(len(row) != len(header) for row in rows):
        raise ValueError("has rows that are longer or shorter than its header")
    label = [str(part) for part in key_of_folder(path.parent)]
    if any(row[: len(CELL_KEYS)] != label for row in rows):
        raise ValueError("holds rows of another cell than its folder says")
    counts = Counter(tuple(row[: len(keys)]) for row in rows)
    repeated = next((key for key, count in counts.items() if count > 1), None)
    if repeated:
        raise ValueError(f"has more than one row for {', '.join(repeated)}")
    if table not in FIRST_MEMBER_ONLY:
        _require_every_matrix(rows, members, len(keys))
    return tuple(text.split("\n", 1))


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
    parser.add_argument("--read", nargs="+", type=Path, required=True, help="batches' manifests")
    parser.add_argument("--cells-digests", nargs="+", required=True, help="of each batch")
    parser.add_argument("--members", nargs="+", required=True, help="SOURCE=NUMBER, of each source")
    parser.add_argument("--output", required=True)
    args = parser.parse_args()
    members = {name: int(number) for name, _, number in (x.partition("=") for x in args.members)}
    name = f"{args.table}.csv"
    folders = vouched_for(args.read, args.cells_digests, name, CELL_KEYS)
    table_header = None
    with whole(args.output) as part, part.open("w", newline="", encoding="utf-8") as file:
        for folder in folders:
            path = folder / name
            try:
                header, lines = read_cell(path, args.table, members[key_of_folder(folder)[0]])
                if table_header is None:
                    file.write(f"{header}\n")
                if header != (table_header := table_header or header):
                    raise ValueError("has other columns than the cells before it")
            except (OSError, ValueError) as error:
                fail(f"{path}: {error}; delete the file and run again")
            file.write(lines)


if __name__ == "__main__":
    main()
