"""Read spectrum, conditioning and numerical rank off a cell's singular values."""

import argparse
from collections.abc import Iterator
from dataclasses import astuple, fields

import numpy as np

from causalrank.mixing import MASKS, NORMALIZATIONS
from causalrank.precision import PRECISIONS
from causalrank.spectrum import Spectrum, decay_indices, numerical_rank, numpy_tolerance, summarize
from cell_files import MATRIX_KEYS, Cell, load_cell
from whole_files import load_arrays, write_csv

TOLERANCES = ("numpy", "1e-4", "1e-6", "1e-8", "1e-10", "1e-12")
QUANTITIES = tuple(field.name for field in fields(Spectrum))
SPECTRUM_HEADER = (*MATRIX_KEYS, *QUANTITIES, "method", "residual_max", "residual_min")
NUMERICAL_RANK_HEADER = (*MATRIX_KEYS, "precision", "tolerance", "numerical_rank")
DECAY_HEADER = (*MATRIX_KEYS, "index", "sigma_relative", "cumulative")


def keyed(cell: Cell) -> Iterator[tuple[tuple, tuple[int, int, int]]]:
    """The table key of every matrix, and its place in an array of singular values."""
    for member, mask, normalization in cell.matrices():
        place = member, MASKS.index(mask), NORMALIZATIONS.index(normalization)
        yield (*cell.key, member, mask, normalization), place


def spectrum_rows(cell: Cell, sigma: np.ndarray) -> Iterator[tuple]:
    """A row per matrix. `residual_*` wait for methods that give singular vectors."""
    for key, place in keyed(cell):
        values = sigma[place]
        if np.isnan(values).any():
            yield (*key, *[None] * len(QUANTITIES), "", None, None)
            continue
        from_factors = MASKS[place[1]] == "bidirectional" and cell.feature_map != "softmax"
        method = "qr, gesdd" if from_factors and cell.F.shape[2] < cell.N else "gesdd"
        yield (*key, *astuple(summarize(values)), method, None, None)


def numerical_rank_rows(cell: Cell, sigma: dict[str, np.ndarray]) -> Iterator[tuple]:
    for key, place in keyed(cell):
        for precision, fmt in PRECISIONS.items():
            values = sigma[precision][place]
            for name in TOLERANCES:
                tolerance = numpy_tolerance(cell.N, fmt.epsilon) if name == "numpy" else float(name)
                unknown = tolerance is None or np.isnan(values).any()
                rank = None if unknown else numerical_rank(values, tolerance)
                yield (*key, precision, name, rank)


def decay_rows(cell: Cell, sigma: np.ndarray) -> Iterator[tuple]:
    """sigma_j / sigma_1 and (sigma_1 + ... + sigma_j) / sum of the first member, j from 1 to N."""
    for key, place in keyed(cell):
        values = sigma[place]
        if place[0] == 0 and not np.isnan(values).any() and values[0] > 0:
            cumulative = np.cumsum(values) / values.sum()
            for j in decay_indices(cell.N):
                yield (*key, int(j), float(values[j - 1] / values[0]), float(cumulative[j - 1]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--input", nargs="+", required=True, help="factors.npz of each cell")
    parser.add_argument(
        "--singular-values", nargs="+", required=True, help="singular_values.npz of each cell"
    )
    parser.add_argument("--spectrum", nargs="+", required=True, help="a spectrum.csv each")
    parser.add_argument("--numerical-rank", nargs="+", required=True, help="a CSV each")
    parser.add_argument("--decay", nargs="+", required=True, help="a singular_values.csv each")
    args = parser.parse_args()
    outputs = zip(args.spectrum, args.numerical_rank, args.decay, strict=True)
    inputs = zip(args.input, args.singular_values, strict=True)
    for (factors, values), (spectrum, ranks, decay) in zip(inputs, outputs, strict=True):
        cell, sigma = load_cell(factors), load_arrays(values)
        write_csv(spectrum, SPECTRUM_HEADER, spectrum_rows(cell, sigma["float64"]))
        write_csv(ranks, NUMERICAL_RANK_HEADER, numerical_rank_rows(cell, sigma))
        write_csv(decay, DECAY_HEADER, decay_rows(cell, sigma["float64"]))


if __name__ == "__main__":
    main()
