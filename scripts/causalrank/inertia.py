"""How many singular values exceed a level: exactly, by the inertia of a structured matrix.

[[-tau I, A^T], [A, -tau I]] has the eigenvalues -tau +- sigma_i, so as many positive ones as A has
singular values above tau, and by Sylvester's law of inertia they can be counted on the pivots of a
symmetric elimination (spectrum slicing, Parlett 1980, section 3.3). For A = tril(F G^T),
eliminating x and y of all tokens before a chunk changes what is left only by -F P F^T, with P of
shape (D, D). With the chunk's rows of F and G and its block T,

    S = T T^T / tau - tau I - F P F^T,    C = G^T T^T / tau - P F^T,
    P <- P - G^T G / tau + C S^-1 C^T,

and it is the positive eigenvalues of all S that count: O(N D^2) a level. Rounding moves a level by
about eps sigma_max^2 / tau, so levels near sqrt(eps) sigma_max = 1.5e-8 sigma_max say nothing.
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dsysv

from .estimate import Estimate
from .semiseparable import Chunk, Semiseparable

CHUNK = 32


def counts_above(A: Semiseparable, levels: np.ndarray, exponent: int) -> np.ndarray:
    """How many singular values of A exceed levels * 2^exponent: integers of shape (levels,).

    `levels` has shape (levels,). Raises OverflowError for factors whose rows differ so much in
    size that no double holds P.
    """
    D = A.F.shape[1]
    P = np.zeros((len(levels), D, D))
    counts = np.zeros(len(levels), dtype=np.int64)
    unit = None
    with np.errstate(over="ignore", invalid="ignore"):  # what it comes to is seen in P
        for chunk in A.chunks(CHUNK):
            unit = chunk.g_shift if unit is None else unit
            F = np.ldexp(chunk.F, chunk.f_shift + unit - exponent)
            G = np.ldexp(chunk.G, chunk.g_shift - unit)
            T = np.tril(F @ G.T)
            products = T @ T.T, G.T @ T.T, G.T @ G
            for k, tau in enumerate(levels):
                counts[k] += _eliminate(F, products, tau, P[k], chunk)
    if not np.isfinite(P).all():
        raise OverflowError("the rows of the factors differ too much in size to count")
    return counts


def _eliminate(
    F: np.ndarray, products: tuple[np.ndarray, ...], tau: float, P: np.ndarray, chunk: Chunk
) -> int:
    """Move P, shape (D, D), past a chunk in place; the number of positive eigenvalues of S."""
    if chunk.enter is not None:
        P *= chunk.enter[:, None] * chunk.enter
    TT, GT, GG = products
    PF = P @ F.T
    S = TT / tau - F @ PF
    S.ravel()[:: len(S) + 1] -= tau
    C = GT / tau - PF
    pivots, places, solution, _ = dsysv(S.T, C.T, lower=1)
    P += C @ solution
    P -= GG / tau
    P[:] = (P + P.T) / 2
    if chunk.leave is not None:
        P *= chunk.leave[:, None] * chunk.leave
    single = places > 0  # the others are pivots of two, with an eigenvalue of either sign
    return np.count_nonzero(pivots.diagonal()[single] > 0) + np.count_nonzero(~single) // 2


@dataclass(frozen=True)
class Counts:
    """Of N singular values over the largest: how many exceed each level; both of shape (levels,).

    Levels fall from below one. Between two of them a singular value may be anywhere, and below the
    last: sums over them have bounds, not guesses of a sample.
    """

    levels: np.ndarray
    counts: np.ndarray
    N: int

    def bins(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Lower and upper ends, and how many lie between; the largest has a bin of its own."""
        upper = np.concatenate([[1.0, 1.0], self.levels])
        lower = np.concatenate([[1.0], self.levels, [0.0]])
        numbers = np.diff(np.concatenate([[0, 1], self.counts, [self.N]]))
        return lower, upper, numbers


def nuclear_norm(counts: Counts) -> Estimate:
    """The sum of the singular values over the largest one, and the half-width of its bounds."""
    lower, upper, numbers = counts.bins()
    low, high = float(numbers @ lower), float(numbers @ upper)
    return Estimate((low + high) / 2, (high - low) / 2)


def effective_rank(counts: Counts) -> Estimate:
    """exp of the entropy of sigma / sum sigma, and its largest distance from its bounds.

    The entropy H rises with sigma_i as long as sigma_i < e^-H sum sigma. So it is largest when all
    singular values are as near as their bins allow to some common level, and smallest when they
    are as far from it: both are sought among the bins' ends as that level.
    """
    lower, upper, numbers = counts.bins()
    values = []
    for far, near in ((lower, upper), (upper, lower)):
        for level in upper:
            values.append(_entropy(np.where(upper <= level, near, far), numbers))
    center = np.sqrt(np.maximum(lower, upper[-1] / 4) * upper)
    value = np.exp(_entropy(center, numbers))
    low, high = np.exp(min(values)), np.exp(max(values))
    return Estimate(float(value), float(max(high - value, value - low)))


def _entropy(sigma: np.ndarray, numbers: np.ndarray) -> float:
    p = sigma / (numbers @ sigma)
    return -float(numbers @ (p * np.log(np.where(p > 0, p, 1.0))))
