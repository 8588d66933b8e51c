"""Causal matrices in closed form, beside which measured ones are read."""

import numpy as np


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
