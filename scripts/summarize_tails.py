"""Bound, from counts above levels, how much of its sum a spectrum's tail carries."""

import argparse
import csv
import itertools
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from causalrank.concentration import counted_index, counted_share
from causalrank.inertia import Counts
from cell_files import MATRIX_KEYS
from whole_files import intact, write_csv

BOUNDS = ("cumulative_at_quarter", "index_of_90")
HEADER = (*MATRIX_KEYS, *(f"{name}{end}" for name in BOUNDS for end in ("_low", "_high")))


def rows(density: Path) -> Iterator[tuple]:
    """A row for each matrix of spectral_density.csv; an index is given over N."""
    with intact(density).open(newline="", encoding="utf-8") as file:
        lines = csv.DictReader(file)
        for key, group in itertools.groupby(lines, lambda line: tuple(map(line.get, MATRIX_KEYS))):
            pairs = sorted(((float(x["level"]), int(x["count"])) for x in group), reverse=True)
            levels, numbers = map(np.array, zip(*pairs, strict=True))
            N = int(key[1])
            if numbers[0] == 0:  # only the zero matrix has no singular value near its largest
                yield *key, *[None] * (2 * len(BOUNDS))
                continue
            counts = Counts(levels, numbers, N)
            index = (j / N for j in counted_index(counts, 0.9))
            yield *key, *counted_share(counts, 0.25), *index


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spectral-density", type=Path, required=True)
    parser.add_argument("--output", required=True, help="the table, a CSV")
    args = parser.parse_args()
    write_csv(args.output, HEADER, rows(args.spectral_density))


if __name__ == "__main__":
    main()
