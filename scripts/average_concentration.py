"""Average concentrations over windows of text, or drawn members, with 95 % intervals.

Windows are consecutive and of one text, and taken as independent: the mean is that of this text,
and where neighbours resemble each other its interval is too narrow.
"""

import argparse
from collections.abc import Iterator

import numpy as np

from causalrank.concentration import QUANTITIES
from causalrank.intervals import difference_interval, mean_interval
from concentration_files import KEYS
from whole_files import fail, load_arrays, write_csv

MATRIX = (*KEYS, "feature_map", "mask", "normalization")
AVERAGE = ("quantity", "fraction", "windows", "mean", "low", "high")
HEADS = (*MATRIX, "layer", "head", *AVERAGE, "change", "change_low", "change_high")
LAYERS = (*MATRIX, "layer", *AVERAGE, "rise", "rise_low", "rise_high")


def read(path: str) -> tuple[tuple, list[tuple], np.ndarray]:
    """Key, kinds and values of (windows, [layers, heads,] kinds, quantities) of a file."""
    arrays = load_arrays(path)
    if set(arrays) != {*KEYS, "kinds", "values"}:
        fail(f"{path}: holds no concentrations; delete the file and run again")
    key = tuple(arrays[name].item() for name in KEYS)
    return key, [tuple(kind) for kind in arrays["kinds"].tolist()], arrays["values"]


def averages(values: np.ndarray) -> np.ndarray:
    """Mean, low and high over windows, shape (3, ...), of values of shape (windows, ...)."""
    mean, half = mean_interval(values)
    return np.array([mean, mean - half, mean + half])


def places(key: tuple, kinds: list[tuple], values: np.ndarray) -> Iterator[tuple]:
    """The (kind, layer, head) of every matrix; members that are no heads have neither."""
    layered = values.ndim == 5
    for number, kind in enumerate(kinds):
        for place in np.ndindex(values.shape[1:3] if layered else ()):
            yield (*key, *kind), place, number


Part = tuple[tuple, list[tuple], np.ndarray]


def shorter(part: Part, parts: list[Part]) -> Part | None:
    """The same source at the next smaller N; of members only, which count as drawn anew there."""
    (source, N, d), _, values = part
    found = [p for p in parts if (p[0][0], p[0][2]) == (source, d) and p[0][1] < N]
    return max(found, key=lambda p: p[0][1]) if found and values.ndim == 3 else None


def changes(part: Part, before: Part | None) -> dict[tuple, np.ndarray]:
    """By kind, what a matrix gains on the shorter one, its low and high, shape (3, quantities)."""
    if before is None:
        return {}
    (_, kinds, values), (_, old_kinds, old) = part, before
    found = {}
    for kind in set(kinds) & set(old_kinds):
        columns = old[:, old_kinds.index(kind)], values[:, kinds.index(kind)]
        mean, half = difference_interval(*columns)
        found[kind] = np.array([mean, mean - half, mean + half])
    return found


def head_rows(part: Part, before: Part | None) -> Iterator[tuple]:
    values, found, gained = part[2], averages(part[2]), changes(part, before)
    for matrix, place, number in places(*part):
        change = gained.get(part[1][number])
        for column, quantity in enumerate(QUANTITIES):
            index = (slice(None), *place, number, column)
            gain = [None] * 3 if change is None else change[:, column].tolist()
            where = *matrix, *(place or (None, None)), *quantity, len(values)
            yield *where, *found[index].tolist(), *gain


def layer_rows(key: tuple, kinds: list[tuple], values: np.ndarray) -> Iterator[tuple]:
    """The mean of a layer's heads, by window; `rise` is what it gains on the layer before."""
    layers = values.mean(axis=2)
    found, rises = averages(layers), averages(np.diff(layers, axis=1))
    for number, kind in enumerate(kinds):
        for layer in range(layers.shape[1]):
            for column, quantity in enumerate(QUANTITIES):
                index = number, column
                rise = rises[:, layer - 1, *index].tolist() if layer else [None] * 3
                yield (
                    *(*key, *kind, layer, *quantity, len(values)),
                    *found[:, layer, *index].tolist(),
                    *rise,
                )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--input", nargs="*", default=[], help=".npz of each source and length")
    parser.add_argument("--output", required=True, help="by head, a CSV")
    parser.add_argument("--layers", required=True, help="by layer, a CSV")
    args = parser.parse_args()
    parts = [read(path) for path in args.input]
    write_csv(
        args.output, HEADS, (row for part in parts for row in head_rows(part, shorter(part, parts)))
    )
    layered = [part for part in parts if part[2].ndim == 5]
    write_csv(args.layers, LAYERS, (row for part in layered for row in layer_rows(*part)))


if __name__ == "__main__":
    main()
