"""Measure the exact rank of a cell's mixing matrices, with its certificate, and log |det A|."""

import argparse
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from causalrank.determinant import (
    causal_log_det,
    causal_softmax_log_det,
    dense_log_det,
    log_row_sums,
)
from causalrank.diagonal import zero_diagonal
from causalrank.ensembles import seed_of
from causalrank.mixing import MASKS, NORMALIZATIONS, matrix
from causalrank.rank import (
    ExactRank,
    bidirectional_rank,
    causal_rank,
    dense_rank,
    random_prime,
)
from cell_files import MATRIX_KEYS, Cell, load_cell, progress
from whole_files import load_arrays, write_csv

HEADER = (
    *MATRIX_KEYS,
    "exact_rank",
    "exact_rank_lower",
    "exact_rank_upper",
    "certificate",
    "zero_diagonal",
    "log_abs_det",
)


def exact_rank(cell: Cell, member: int, mask: str, max_N_dense: int) -> ExactRank:
    """The rank of a member under a mask: row normalization does not change it.

    exp makes softmax no rational matrix. Causally it is triangular with a positive diagonal, over
    the reals; bidirectionally what can be ranked is the matrix of rounded exponentials.
    """
    seed = seed_of("prime", *cell.key, member)
    p = random_prime(np.random.Generator(np.random.PCG64(seed)))
    F, G = cell.F[member], cell.G[member]
    if cell.feature_map != "softmax":
        return (causal_rank if mask == "causal" else bidirectional_rank)(F, G, p)
    if mask == "causal":
        return ExactRank(cell.N, cell.N, cell.N, "triangular (real exp)")
    if max_N_dense < cell.N:
        return ExactRank(None, None, cell.N, "")
    rank = dense_rank(matrix(F, G, "softmax", mask, "none"), p)
    return replace(rank, certificate=f"{rank.certificate} (rounded exp)")


def log_abs_det(cell: Cell, member: int, mask: str, rank: ExactRank, sigma: np.ndarray) -> float:
    """log |det A| of the unnormalized matrix, NaN where it cannot be told."""
    F, G = cell.F[member], cell.G[member]
    if rank.value is not None and rank.value < cell.N:
        return -np.inf
    if mask == "causal" and cell.feature_map == "softmax":
        return causal_softmax_log_det(F, G)
    if mask == "causal":
        return causal_log_det(F, G, zero_diagonal(F, G))
    return dense_log_det(matrix(F, G, cell.feature_map, mask, "none"), sigma)


def rows(cell: Cell, sigma: np.ndarray, max_N_dense: int) -> Iterator[tuple]:
    for member, (F, G) in enumerate(zip(cell.F, cell.G, strict=True)):
        progress(cell, member)
        softmax = cell.feature_map == "softmax"
        zeros = 0 if softmax else int(zero_diagonal(F, G).sum())
        for place, mask in enumerate(MASKS):
            rank = exact_rank(cell, member, mask, max_N_dense)
            log_det = log_abs_det(cell, member, mask, rank, sigma[member, place, 0])
            for normalization in NORMALIZATIONS:
                if normalization == "row" and np.isfinite(log_det):
                    A = matrix(F, G, cell.feature_map, mask, "none")
                    sums = log_row_sums(A)  # infinite where a row of doubles underflows
                    log_det = log_det - sums if np.isfinite(sums) else np.nan
                verdict = (rank.value, rank.lower, rank.upper, rank.certificate)
                yield (*cell.key, member, mask, normalization, *verdict, zeros, log_det)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--max-N-dense",
        type=int,
        required=True,
        help="largest N whose rank is taken from the N x N matrix (bidirectional softmax)",
    )
    parser.add_argument("--input", nargs="+", required=True, help="factors.npz of each cell")
    parser.add_argument(
        "--singular-values", nargs="+", required=True, help="singular_values.npz of each cell"
    )
    parser.add_argument("--output", nargs="+", required=True, help="a rank.csv for each cell")
    args = parser.parse_args()
    for factors, sigma, target in zip(args.input, args.singular_values, args.output, strict=True):
        values = load_arrays(sigma)["float64"]
        write_csv(target, HEADER, rows(load_cell(factors), values, args.max_N_dense))


if __name__ == "__main__":
    main()
