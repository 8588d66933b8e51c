"""How many singular values exceed a level: exactly, by the inertia of a structured matrix.

[[-tau I, A^T], [A, -tau I]] has the eigenvalues -tau +- sigma_i, so as many positive ones as A has
singular values above tau, and by Sylvester's law of inertia they can be counted on the pivots of a
symmetric elimination (spectrum slicing, Parlett 1980, section 3.3). For A = tril(F G^T),
eliminating x and y of all tokens before a chunk changes what is left only by -F P F^T, with P of
shape (D, D). With the chunk's rows of F and G and its block T,

    S = T T^T / tau - tau I - F P F^T,    C = G^T T^T / tau - P F^T,
    P <- P - G^T G / tau + C S^-1 C^T,

and it is the positive eigenvalues of all S that count: O(N D^2) a level. A count is exact for a
level that rounding has moved by about eps sigma_max^2 / tau; levels near sqrt(eps) sigma_max,
1.5e-8 of it, say nothing.
"""

from dataclasses import dataclass

import numpy as np

from .estimate import Estimate
from .semiseparable import Chunk, Semiseparable

CHUNK = 32
EPSILON = np.finfo(float).eps
SHIFT = 16 * EPSILON
"""By how much of sigma_max^2 / tau rounding is taken to move a level tau."""
NUDGE = 1e-8
"""By how much of itself a level is moved that meets a singular value of a leading block."""


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
    from scipy.linalg.lapack import dsysv

    TT, GT, GG = products
    PF = P @ F.T
    S = TT / tau
    S -= F @ PF
    S.ravel()[:: len(S) + 1] -= tau
    C = GT / tau
    C -= PF
    pivots, places, solution, singular = dsysv(S.T, C.T, lower=1)
    if singular:  # tau is a singular value of what came so far: move it, so that digits are left
        S.ravel()[:: len(S) + 1] -= NUDGE * tau
        pivots, places, solution, _ = dsysv(S.T, C.T, lower=1)
    P += C @ solution
    P -= GG / tau
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
        """Lower and upper ends, and how many lie between; the largest has a bin of its own.

        Ends are moved outward by what rounding may have moved the level.
        """
        shift = SHIFT / self.levels + NUDGE * self.levels
        upper = np.concatenate([[1.0, 1.0], np.minimum(self.levels + shift, 1.0)])
        lower = np.concatenate([[1.0], self.levels - shift, [0.0]])
        numbers = np.diff(np.concatenate([[0, 1], self.counts, [self.N]]))
        return lower, upper, numbers


def nuclear_norm(counts: Counts) -> Estimate:
    """The sum of the singular values over the largest one, and the half-width of its bounds."""
    lower, upper, numbers = counts.bins()
    low, high = float(numbers @ lower), float(numbers @ upper)
    return Estimate((low + high) / 2, (high - low) / 2)


def effective_rank(counts: Counts) -> Estimate:
    """exp of the entropy H of sigma / sum sigma, and its largest distance from its bounds.

    H = log X - Y / X with X = sum sigma and Y = sum sigma log sigma rises with sigma_i as long as
    sigma_i < L = exp(Y / X). So it is largest with all singular values as near to L as their bins
    allow, and smallest with all as far from it as they allow, and in both cases some bin holds L.
    For every bin that may: the largest has that bin's values at L, which is exp(Y' / X') of the
    others. The smallest has some of them at either end, t at the upper one b and the others at the
    lower one a: there dH/dt = 0 where log L = (b log b - a log a) / (b - a) - 1, which is linear in
    t; t need not be whole, so that this is a bound.
    """
    lower, upper, numbers = counts.bins()
    entropies = []
    for k in np.flatnonzero(numbers):
        others = np.arange(len(numbers)) != k
        above = np.arange(len(numbers)) < k
        m, a, b = numbers[k], lower[k], upper[k]
        sigma = np.where(above, lower, upper)[others]
        X, Y = _sums(sigma, numbers[others])
        level = np.clip(np.exp(Y / X), a, b) if X > 0 else b
        entropies.append(_entropy(X + m * level, Y + m * _xlogx(level)))
        sigma = np.where(above, upper, lower)[others]
        X, Y = _sums(sigma, numbers[others])
        X, Y = X + m * a, Y + m * _xlogx(a)
        t = 0.0
        if b > a:
            log_level = (_xlogx(b) - _xlogx(a)) / (b - a) - 1.0
            t = np.clip((log_level * X - Y) / (b - a), 0.0, m)
        X, Y = X + t * (b - a), Y + t * (_xlogx(b) - _xlogx(a))
        if X > 0:
            entropies.append(_entropy(X, Y))
    center = np.sqrt(np.maximum(lower, upper[-1] / 4) * upper)
    value = np.exp(_entropy(*_sums(center, numbers)))
    low, high = np.exp(min(entropies)), np.exp(max(entropies))
    return Estimate(float(value), float(max(high - value, value - low)))


def _sums(sigma: np.ndarray, numbers: np.ndarray) -> tuple[float, float]:
    return float(numbers @ sigma), float(numbers @ _xlogx(sigma))


def _xlogx(x):
    return x * np.log(np.where(x > 0, x, 1.0))


def _entropy(X: float, Y: float) -> float:
    return float(np.log(X) - Y / X)
