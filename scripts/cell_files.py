"""The factors of a cell on disk, and the keys that its rows carry in every table."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np

from causalrank.mixing import MASKS, NORMALIZATIONS
from whole_files import fail, load_arrays, save_arrays

CELL_KEYS = ("source", "N", "d", "feature_map")
MATRIX_KEYS = (*CELL_KEYS, "member", "mask", "normalization")
LEVELS = 10.0 ** -(np.arange(1, 49) / 8)
"""Shares of sigma_max above which singular values are counted: eight a decade."""


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

    @property
    def is_low_rank(self) -> bool:
        """Whether the unmasked matrix has factors with fewer columns than it has rows."""
        return self.feature_map != "softmax" and self.F.shape[2] < self.N

    def matrices(self) -> Iterator[tuple[int, str, str]]:
        """The (member, mask, normalization) of every mixing matrix, in the tables' order."""
        yield from product(range(len(self.F)), MASKS, NORMALIZATIONS)


def key_of_folder(folder: Path, keys: Sequence[str] = CELL_KEYS) -> tuple[str | int, ...]:
    """The values of the keys that a folder is named by: those of source~S/N~8 are S and 8."""
    values = [part.partition("~")[2] for part in folder.parts[-len(keys) :]]
    return tuple(int(x) if key in "Nd" else x for key, x in zip(keys, values, strict=True))


def save_cell(path: str | Path, cell: Cell) -> None:
    values = {} if cell.v is None else {"v": cell.v}
    save_arrays(path, key=np.array(list(map(str, cell.key))), F=cell.F, G=cell.G, **values)


def load_cell(path: str | Path) -> Cell:
    arrays = load_arrays(path)
    if not {"key", "F", "G"} <= set(arrays):
        fail(f"{path}: holds no cell; name a factors.npz, which build_cell.py writes")
    source, N, d, feature_map = arrays["key"].tolist()
    return Cell(source, int(N), int(d), feature_map, arrays["F"], arrays["G"], arrays.get("v"))


def save_extremes(path: str | Path, found: dict[str, np.ndarray]) -> None:
    """Arrays of shape (members, normalizations) in one: reading costs time by their number."""
    flat = {name: values for name, values in found.items() if values.ndim == 2}
    others = {name: values for name, values in found.items() if name not in flat}
    save_arrays(path, names=np.array([*flat]), values=np.array([*flat.values()]), **others)


def load_extremes(path: str | Path) -> dict[str, np.ndarray]:
    arrays = load_arrays(path)
    names, values = arrays.pop("names").tolist(), arrays.pop("values")
    return dict(zip(names, values, strict=True)) | arrays


def progress(cell: Cell, member: int) -> None:
    """Say on stderr, which is the step's log, how far a cell has come."""
    print(f"{cell.path}: member {member + 1} of {len(cell.F)}", file=sys.stderr, flush=True)
