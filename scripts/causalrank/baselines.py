"""Causal matrices that know less, beside which measured ones are read: all ones, and shuffled."""

from contextlib import suppress

import numpy as np

from .inertia import Counts, counts_above, effective_rank
from .krylov import largest_singular_values
from .semiseparable import Semiseparable
from .spectrum import RESOLVED, singular_values, summarize

Ranks = tuple[float | None, float | None]
"""Stable and effective rank; None if not computed."""


def all_ones_singular_values(N: int) -> np.ndarray:
    """The singular values of tril(1 1^T), shape (N,), largest first.

    1 / (2 sin((2 j - 1) pi / (4 N + 2))): the inverse is a bidiagonal difference matrix B, and
    B^T B is the second difference with one Neumann and one Dirichlet end (Strang 1999).
    """
    j = np.arange(1, N + 1)
    return 1.0 / (2.0 * np.sin((2 * j - 1) * np.pi / (4 * N + 2)))


def all_ones_stable_rank(N: int) -> float:
    """N (N + 1) / 2, the squared Frobenius norm, over sigma_1^2; tends to pi^2 / 8."""
    return N * (N + 1) / 2 / float(all_ones_singular_values(N)[0]) ** 2


def all_ones_condition_number(N: int) -> float:
    """sigma_1 / sigma_N, close to 4 N / pi."""
    sigma = all_ones_singular_values(N)
    return float(sigma[0] / sigma[-1])


def cesaro_squared_frobenius_norm(N: int) -> float:
    """The squared Frobenius norm of row-normalized tril(1 1^T): row i has i entries 1 / i."""
    return float((1.0 / np.arange(1, N + 1)).sum())


def shuffled(
    F: np.ndarray, G: np.ndarray, generator: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """The rows of F and those of G, shape (N, D) each, in a random order of their own.

    What is left is the same queries and keys, without their places in the text or each other.
    Without a mask the singular values stay, since permutations are orthogonal.
    """
    return F[generator.permutation(len(F))], G[generator.permutation(len(G))]


def dense_ranks(A: np.ndarray) -> Ranks:
    """Those of A, shape (N, N), from all its singular values."""
    spectrum = summarize(singular_values(A))
    return spectrum.stable_rank, spectrum.effective_rank


def structured_ranks(
    A: Semiseparable, generator: np.random.Generator, levels: np.ndarray | None
) -> Ranks:
    """Those of A; the effective rank from counts above `levels`, shares of sigma_max, if given."""
    start = generator.standard_normal(A.N)
    leading = largest_singular_values(A.product, A.transposed_product, start)
    if leading.values[0] == 0.0 or not leading.residuals[0] <= RESOLVED:
        return None, None
    stable = A.squared_frobenius_norm().over_power(2 * leading.exponent) / leading.values[0] ** 2
    effective = None
    if levels is not None:
        with suppress(OverflowError):
            numbers = counts_above(A, levels * leading.values[0], leading.exponent)
            effective = effective_rank(Counts(levels, numbers, A.N)).value
    return float(stable), effective
