"""Reading and writing the small files of a step: whole or absent, and the same bytes each time."""

import csv
import math
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import NoReturn

import numpy as np

from causalrank.mixing import MASKS, NORMALIZATIONS

CELL_KEYS = ("source", "N", "d", "feature_map")
MATRIX_KEYS = (*CELL_KEYS, "member", "mask", "normalization")


@contextmanager
def whole(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; rename it to `path` when the block succeeds.

    The name is unique, so two writers of one file cannot mix their bytes: the last rename wins.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.stem}.", suffix=path.suffix, dir=path.parent)
    os.close(handle)
    try:
        yield Path(name)
        umask = os.umask(0)
        os.umask(umask)
        Path(name).chmod(0o666 & ~umask)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def save_arrays(path: str | Path, **arrays: np.ndarray) -> None:
    """Write an uncompressed .npz; numpy stamps every member with 1980-01-01, so bytes repeat."""
    with whole(path) as part:
        np.savez(part, **arrays)


def load_arrays(path: str | Path) -> dict[str, np.ndarray]:
    """Read an .npz without unpickling."""
    with np.load(path, allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


@dataclass(frozen=True)
class Cell:
    """A cell's key and its factors: F, G of shape (members, N, D), v of (members, N, d_v) or None.

    For softmax, F and G are q and k.
    """

    source: str
    N: int
    d: int
    feature_map: str
    F: np.ndarray
    G: np.ndarray
    v: np.ndarray | None

    @property
    def key(self) -> tuple[str, int, int, str]:
        return self.source, self.N, self.d, self.feature_map

    @property
    def path(self) -> str:
        """The folder of the cell below results/cells/."""
        return "/".join(f"{name}~{value}" for name, value in zip(CELL_KEYS, self.key, strict=True))

    def matrices(self) -> Iterator[tuple[int, str, str]]:
        """The (member, mask, normalization) of every mixing matrix, in the tables' order."""
        yield from product(range(len(self.F)), MASKS, NORMALIZATIONS)


def save_cell(path: str | Path, cell: Cell) -> None:
    values = {} if cell.v is None else {"v": cell.v}
    key = dict(zip(CELL_KEYS, map(np.array, cell.key), strict=True))
    save_arrays(path, **key, F=cell.F, G=cell.G, **values)


def load_cell(path: str | Path) -> Cell:
    arrays = load_arrays(path)
    source, N, d, feature_map = (arrays[name].item() for name in CELL_KEYS)
    return Cell(source, N, d, feature_map, arrays["F"], arrays["G"], arrays.get("v"))


def progress(cell: Cell, member: int) -> None:
    """Say on stderr, which is the step's log, how far a cell has come."""
    print(f"{cell.path}: member {member + 1} of {len(cell.F)}", file=sys.stderr, flush=True)


def _field(value: object) -> object:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, float):
        return repr(float(value))
    return value


def write_csv(path: str | Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write a table: floats with all their digits, None and NaN as an empty field."""
    with whole(path) as part, part.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows([_field(value) for value in row] for row in rows)


def fail(message: str) -> NoReturn:
    """End the step with one line for its user."""
    print(f"error: {message}", file=sys.stderr)
    raise SystemExit(1)
