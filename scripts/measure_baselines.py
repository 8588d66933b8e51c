"""Put beside the ranks of a cell's matrices those that know less: all ones, and shuffled tokens."""

import argparse
import csv
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from causalrank.baselines import (
    Ranks,
    all_ones_singular_values,
    dense_ranks,
    shuffled,
    structured_ranks,
)
from causalrank.ensembles import seed_of
from causalrank.mixing import matrix
from causalrank.semiseparable import semiseparable
from causalrank.spectrum import summarize
from cell_batch import CellStep
from cell_files import LEVELS, MATRIX_KEYS, Cell, load_cell, progress
from whole_files import intact, write_csv

RANKS = ("stable_rank", "effective_rank")
HEADER = (
    *MATRIX_KEYS,
    *(f"{rank}{other}" for rank in RANKS for other in ("", "_all_ones", "_shuffled")),
)


class Baselines:
    """Of one cell: the limits, and the all-ones matrix, which all its members share."""

    def __init__(self, cell: Cell, max_N_dense: int, max_N_sums: int) -> None:
        self.cell, self.dense, self.sums = cell, cell.N <= max_N_dense, cell.N <= max_N_sums
        ones = np.ones((cell.N, 1))
        generator = np.random.Generator(np.random.PCG64(seed_of("all ones", cell.N)))
        unnormalized = summarize(all_ones_singular_values(cell.N))
        self.all_ones = {
            "none": (unnormalized.stable_rank, unnormalized.effective_rank),
            "row": self.ranks(ones, ones, "", "row", generator, True),
        }

    def ranks(
        self,
        F: np.ndarray,
        G: np.ndarray,
        feature_map: str,
        normalization: str,
        generator: np.random.Generator,
        whole: bool,
    ) -> Ranks:
        """Of the causal matrix; beyond the dense limit the effective rank only if `whole`."""
        if self.dense:
            return dense_ranks(matrix(F, G, feature_map, "causal", normalization))
        if feature_map == "softmax":
            return None, None
        try:
            A = semiseparable(F, G)
            A = A.row_normalized() if normalization == "row" else A
        except (ValueError, ZeroDivisionError):
            return None, None
        return structured_ranks(A, generator, LEVELS if self.sums and whole else None)

    def shuffled(self, member: int, normalization: str) -> Ranks:
        """Of a member with its queries and its keys shuffled: the same for both normalizations."""
        cell = self.cell
        seed = seed_of("shuffle", cell.source, cell.N, cell.d, member)
        generator = np.random.Generator(np.random.PCG64(seed))
        F, G = shuffled(cell.F[member], cell.G[member], generator)
        return self.ranks(F, G, cell.feature_map, normalization, generator, member == 0)


def rows(
    cell: Cell, spectrum: dict[tuple, dict[str, str]], max_N_dense: int, max_N_sums: int
) -> Iterator[tuple]:
    """A row per matrix. Without a mask, all ones have rank one and shuffling changes nothing."""
    baselines = Baselines(cell, max_N_dense, max_N_sums)
    for member, mask, normalization in cell.matrices():
        if (mask, normalization) == ("causal", "none"):
            progress(cell, member)
        measured = spectrum[str(member), mask, normalization]
        own = [measured[rank] for rank in RANKS]
        all_ones, other = (1.0, 1.0), own
        if mask == "causal":
            all_ones = baselines.all_ones[normalization]
            other = baselines.shuffled(member, normalization)
        columns = [value for rank in zip(own, all_ones, other, strict=True) for value in rank]
        yield (*cell.key, member, mask, normalization, *columns)


def read_spectrum(path: str | Path) -> dict[tuple, dict[str, str]]:
    with intact(path).open(newline="", encoding="utf-8") as file:
        return {tuple(row[key] for key in MATRIX_KEYS[-3:]): row for row in csv.DictReader(file)}


STEP = CellStep(
    {"--input": "factors.npz", "--spectrum": "spectrum.csv"}, {"--output": "baselines.csv"}
)


def measure(args: argparse.Namespace, factors: Path, spectrum: Path, target: Path) -> None:
    limits = args.max_N_dense, args.max_N_sums
    write_csv(target, HEADER, rows(load_cell(factors), read_spectrum(spectrum), *limits))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--max-N-dense", type=int, required=True, help="largest N whose singular values are known"
    )
    parser.add_argument(
        "--max-N-sums", type=int, required=True, help="largest N whose effective rank is counted"
    )
    STEP.run(parser, measure)


if __name__ == "__main__":
    main()
