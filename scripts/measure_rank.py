"""Measure the exact ranks of a cell's mixing matrices and of their blocks, and log |det A|."""

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

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
    off_diagonal_ranks,
    random_prime,
    splits,
)
from cell_batch import CellStep
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
BLOCK_HEADER = (
    *MATRIX_KEYS,
    "split",
    *("below_rank", "below_rank_lower", "below_rank_upper", "below_certificate"),
    *("above_rank", "above_rank_lower", "above_rank_upper", "above_certificate"),
    "exact_rank",
)
MASKED = ExactRank(0, 0, 0, "masked")


def prime(cell: Cell, member: int) -> int:
    seed = seed_of("prime", *cell.key, member)
    return random_prime(np.random.Generator(np.random.PCG64(seed)))


def of_rounded(rank: ExactRank) -> ExactRank:
    return replace(rank, certificate=f"{rank.certificate} (rounded exp)")


def exact_rank(cell: Cell, member: int, mask: str, max_N_dense: int) -> ExactRank:
    """The rank of a member under a mask: row normalization does not change it.

    exp makes softmax no rational matrix. Causally it is triangular with a positive diagonal, over
    the reals; bidirectionally what can be ranked is the matrix of rounded exponentials.
    """
    p, F, G = prime(cell, member), cell.F[member], cell.G[member]
    if cell.feature_map != "softmax":
        return (causal_rank if mask == "causal" else bidirectional_rank)(F, G, p)
    if mask == "causal":
        return ExactRank(cell.N, cell.N, cell.N, "triangular (real exp)")
    if max_N_dense < cell.N:
        return ExactRank(None, None, cell.N, "")
    return of_rounded(dense_rank(matrix(F, G, "softmax", mask, "none"), p))


def block_ranks(cell: Cell, member: int, max_N_dense: int) -> dict[int, tuple[ExactRank, ...]]:
    """By split i, the ranks of A[i:, :i] and A[:i, i:] of a member without a mask.

    Softmax: of the rounded exponentials.
    """
    p, F, G = prime(cell, member), cell.F[member], cell.G[member]
    N = cell.N
    if cell.feature_map != "softmax":
        return {i: off_diagonal_ranks(F, G, i, p) for i in splits(N)}
    if max_N_dense < N:
        return {i: (ExactRank(None, None, min(i, N - i), ""),) * 2 for i in splits(N)}
    A = matrix(F, G, "softmax", "bidirectional", "none")
    blocks = {i: (A[i:, :i], A[:i, i:]) for i in splits(N)}
    return {i: tuple(of_rounded(dense_rank(B, p)) for B in both) for i, both in blocks.items()}


def log_abs_det(cell: Cell, member: int, mask: str, rank: ExactRank, sigma: np.ndarray) -> float:
    """log |det A| of the unnormalized matrix, NaN where it cannot be told."""
    F, G = cell.F[member], cell.G[member]
    if rank.value is not None and rank.value < cell.N:
        return -np.inf
    if mask == "causal" and cell.feature_map == "softmax":
        return causal_softmax_log_det(F, G)
    if mask == "causal":
        return causal_log_det(F, G, zero_diagonal(F, G))
    if np.isnan(sigma).any():
        return float("nan")
    return dense_log_det(matrix(F, G, cell.feature_map, mask, "none"), sigma)


def exact_ranks(cell: Cell, max_N_dense: int) -> dict[tuple[int, str], ExactRank]:
    """The rank of every member under every mask."""
    ranks = {}
    for member in range(len(cell.F)):
        progress(cell, member)
        for mask in MASKS:
            ranks[member, mask] = exact_rank(cell, member, mask, max_N_dense)
    return ranks


def rank_rows(cell: Cell, ranks: dict, sigma: np.ndarray) -> Iterator[tuple]:
    """Rows of rank.csv, from the exact rank by (member, mask)."""
    for member, (F, G) in enumerate(zip(cell.F, cell.G, strict=True)):
        zeros = 0 if cell.feature_map == "softmax" else int(zero_diagonal(F, G).sum())
        for place, mask in enumerate(MASKS):
            rank = ranks[member, mask]
            log_det = log_abs_det(cell, member, mask, rank, sigma[member, place, 0])
            for normalization in NORMALIZATIONS:
                if normalization == "row" and np.isfinite(log_det):
                    sums = log_row_sums(F, G, cell.feature_map, mask)
                    log_det = log_det - sums if np.isfinite(sums) else np.nan
                verdict = (rank.value, rank.lower, rank.upper, rank.certificate)
                yield (*cell.key, member, mask, normalization, *verdict, zeros, log_det)


def block_rows(cell: Cell, ranks: dict, max_N_dense: int) -> Iterator[tuple]:
    """Rows of block_rank.csv; N = 1 has no block, and rows of empty fields."""
    for member in range(len(cell.F)):
        blocks = block_ranks(cell, member, max_N_dense)
        for mask in MASKS:
            exact = ranks[member, mask].value
            rows = [
                (i, *vars(below).values(), *vars(MASKED if mask == "causal" else above).values())
                for i, (below, above) in blocks.items()
            ]
            for normalization in NORMALIZATIONS:
                for row in rows or [(None,) * 9]:
                    yield (*cell.key, member, mask, normalization, *row, exact)


STEP = CellStep(
    {"--input": "factors.npz", "--singular-values": "singular_values.npz"},
    {"--output": "rank.csv", "--block-rank": "block_rank.csv"},
)


def measure(args: argparse.Namespace, factors: Path, values: Path, rank: Path, block: Path) -> None:
    cell, sigma = load_cell(factors), load_arrays(values)["float64"]
    ranks = exact_ranks(cell, args.max_N_dense)
    write_csv(rank, HEADER, rank_rows(cell, ranks, sigma))
    write_csv(block, BLOCK_HEADER, block_rows(cell, ranks, args.max_N_dense))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--max-N-dense",
        type=int,
        required=True,
        help="largest N whose rank is taken from the N x N matrix (bidirectional softmax)",
    )
    STEP.run(parser, measure)


if __name__ == "__main__":
    main()
