r"""Linformer's theorem 1: what a Gaussian projection does to one column of the values.

Wang et al. 2020 state, for a softmax matrix P of n rows and any column w of the values, that
||P R^T R w - P w|| <= eps ||P w|| with probability 1 - o(1), for R of k x n independent
N(0, 1/k) entries and k = 5 ln n / (eps^2 - eps^3). (Their wording, "there exists" a matrix of
low rank for each w, is met by the rank one P w w^T / |w|^2; the proof is of P R^T R.) The proof
takes |x R^T R w - x.w| <= eps |x.w| with probability 1 - 2 exp(-(eps^2 - eps^3) k / 4) for a
row x from the lemma of Johnson and Lindenstrauss, and a union over rows. That lemma is not so.
What is true:

**One row.** For unit x and w with x.w = c, k x R^T R w is a sum of k independent products a b of
standard normal numbers of correlation c, that is ((1 + c) u^2 - (1 - c) v^2) / 2 with u, v
independent. So with 0 <= t < 1 / (1 + |c|),

    ln E exp(t (a b - c)) = -(ln(1 - (1 + c) t) + (1 + c) t)/2 - (ln(1 + (1 - c) t) - (1 - c) t)/2
                         <= (1 + c^2) t^2 / (2 (1 - (1 + |c|) t)),

by -ln(1 - s) - s <= s^2 / (2 (1 - s)) and s - ln(1 + s) <= s^2 / 2; the same holds of -a b with
-c. By Bernstein's argument (Boucheron, Lugosi and Massart 2013, section 2.4)

    Pr(|x R^T R w - x.w| > eps |x| |w|) <= 2 exp(-k eps^2 / (2 (1 + c^2) + 2 (1 + |c|) eps)),

and c^2 <= 1 and (1 - eps)(1 + eps) <= 1 give 2 exp(-(eps^2 - eps^3) k / 4): Linformer's number,
with eps |x| |w| in the place of eps |x.w|.

**Every row.** By the union, all n rows are within eps |x_i| |w| but for a probability of
2 n exp(-(eps^2 - eps^3) k / 4), which is 2 n^(-1/4) at the theorem's k.

**The norm.** The product a b has the variance 1 + c^2. Summed over rows,

    E ||P R^T R w - P w||^2 = (||P||_F^2 |w|^2 + ||P w||^2) / k,

exactly, so that ||P R^T R w - P w|| <= eps ||P||_F |w| fails with a probability of at most
2 / (k eps^2), whatever n is: that form needs no logarithm. Relatively to ||P w|| the mean square
is (kappa + 1) / k with the `amplification` kappa = ||P||_F^2 |w|^2 / ||P w||^2. It is at least the
stable rank of P, and the theorem's form holds when kappa stays well below k eps^2. For a softmax of
random scores of unit variance kappa tends to e E w^2 / (E w)^2 for independent entries of a mean
E w that is not zero, whatever n is; for w less its mean it grows like e n / (e - 1), and for one
token's w like n.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np


def theorem_k(n: int, epsilon: float) -> int:
    """The k of theorem 1 for n tokens, rounded up; it may exceed n. For epsilon in (0, 1)."""
    return math.ceil(5 * math.log(n) / (epsilon**2 - epsilon**3))


def row_failure_bound(k: int, epsilon: float) -> float:
    """The bound of Pr(|x R^T R w - x.w| > eps |x| |w|) for every pair x, w (above)."""
    return min(1.0, 2 * math.exp(-(epsilon**2 - epsilon**3) * k / 4))


@dataclass(frozen=True)
class Column:
    """What the error at one column w needs of P, in units of |w|: n rows, m draws.

    image: P w, shape (n,). noise: P h for m standard normal vectors h orthogonal to w, (n, m).
    row_norms: |x_i|, shape (n,).
    """

    image: np.ndarray
    noise: np.ndarray
    row_norms: np.ndarray

    @cached_property
    def unit_noise(self) -> np.ndarray:
        """The noise over the norms of P's rows, shape (n, m)."""
        return self.noise / self.row_norms[:, None]

    @cached_property
    def noise_squares(self) -> tuple[np.ndarray, np.ndarray]:
        """Of each draw, ||P h||^2 and (P h) . (P w), shape (m,) both."""
        return np.einsum("ij,ij->j", self.noise, self.noise), self.image @ self.noise

    @property
    def amplification(self) -> float:
        """kappa = ||P||_F^2 |w|^2 / ||P w||^2."""
        return float(self.row_norms @ self.row_norms / (self.image @ self.image))


def columns(rows: Iterable[np.ndarray], W: np.ndarray, H: np.ndarray) -> list[Column]:
    """A `Column` for each column of W, shape (n, columns), from blocks of consecutive rows of P.

    H, shape (n, m), holds standard normal numbers; all columns share them.
    """
    units = W / np.linalg.norm(W, axis=0)
    parts = [(X @ units, X @ H, np.linalg.norm(X, axis=1)) for X in rows]
    images, noise, norms = (np.concatenate(part) for part in zip(*parts, strict=True))
    along = units.T @ H
    return [
        Column(images[:, j], noise - np.outer(images[:, j], along[j]), norms)
        for j in range(W.shape[1])
    ]


@dataclass(frozen=True)
class Errors:
    """Of each draw, shape (m,): the error over each of the three scales that a form may take."""

    relative: np.ndarray  # ||P R^T R w - P w|| / ||P w||
    norm: np.ndarray  # ||P R^T R w - P w|| / (||P||_F |w|)
    rows: np.ndarray  # the largest |x_i R^T R w - x_i.w| / (|x_i| |w|)


def draw_errors(column: Column, k: int, generator: np.random.Generator) -> Errors:
    """The errors of m projections to k dimensions, without forming any R.

    For a unit w, R w = g has |g|^2 = chi^2_k / k, and the part of R orthogonal to w does not
    depend on it: R^T R w = |g|^2 w + |g| h / sqrt(k) in law, h standard normal orthogonal to w.
    """
    square = generator.chisquare(k, column.noise.shape[1]) / k
    across, along = np.sqrt(square / k), square - 1
    error = column.unit_noise * across
    error += np.outer(column.image / column.row_norms, along)
    squares, products = column.noise_squares
    image = column.image @ column.image
    norms = across * (across * squares + 2 * along * products) + along**2 * image
    norms = np.sqrt(np.maximum(norms, 0.0))
    return Errors(
        relative=norms / np.sqrt(image),
        norm=norms / np.linalg.norm(column.row_norms),
        rows=np.maximum(error.max(axis=0), -error.min(axis=0)),
    )


def predicted_errors(column: Column, k: int) -> tuple[float, float]:
    """Root mean squares of `Errors.relative` and `Errors.norm`, in closed form."""
    kappa = column.amplification
    return math.sqrt((kappa + 1) / k), math.sqrt((1 + 1 / kappa) / k)


def failure_bounds(column: Column, k: int, epsilon: float) -> tuple[float, float, float]:
    """What the probability is at most that each of `Errors` exceeds epsilon, in their order.

    Markov's inequality of the mean squares, and the union over rows.
    """
    squares = (error**2 for error in predicted_errors(column, k))
    markov = tuple(min(1.0, square / epsilon**2) for square in squares)
    return *markov, min(1.0, len(column.image) * row_failure_bound(k, epsilon))


def smallest_k(ladder: list[int], frequency: Callable[[int], float], allowed: float) -> int | None:
    """A k of a rising ladder at which less than `allowed` fail, and not at the one before it.

    By bisection: mean squares fall with k, so that there is one such k but for draws near
    `allowed`. None where the last k is not enough.
    """
    if frequency(ladder[-1]) >= allowed:
        return None
    low, high = -1, len(ladder) - 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if frequency(ladder[middle]) < allowed else (middle, high)
    return ladder[high]
