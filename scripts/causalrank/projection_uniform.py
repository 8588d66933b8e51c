"""A Gaussian projection of all columns at once, for which `projection` has one column at a time.

R^T R, R being k x n of independent N(0, 1/k) entries, has rank k, so for k < rank P some w with
P w != 0 is mapped to zero: no statement relative to ||P w|| holds for every w at once. Over the
columns of the identity `projection`'s mean square sums to

    E ||P R^T R - P||_F^2 = ||P||_F^2 (n + 1) / k:

with k <= n, zero is nearer to P than P R^T R is. Entries obey the union over rows and columns:
|x R^T R w - x.w| <= eps |x| |w| for n rows and c columns but for a probability of
2 n c exp(-(eps^2 - eps^3) k / 4), which says nothing at Linformer's k = 5 ln n / (eps^2 - eps^3)
when c > n^(1/4) / 2, and needs 9 ln n in the place of 5 ln n when c = n.
"""

from dataclasses import dataclass

import numpy as np

from .projection import row_failure_bound


@dataclass(frozen=True)
class Uniform:
    """Errors of P R^T R W - P W over all columns of W at once, for one R."""

    worst_relative: float  # the largest over columns of ||P R^T R w - P w|| / ||P w||
    worst_entry: float  # the largest over rows and columns of |x R^T R w - x.w| / (|x| |w|)
    frobenius: float  # ||P R^T R W - P W||_F / ||P W||_F


def uniform_errors(P: np.ndarray, W: np.ndarray, PW: np.ndarray, R: np.ndarray) -> Uniform:
    """For P (n, n), W (n, columns), PW = P W and R (k, n), whose entries are N(0, 1/k)."""
    error = np.linalg.multi_dot([P, R.T, R, W]) - PW
    lengths, targets = np.linalg.norm(error, axis=0), np.linalg.norm(PW, axis=0)
    scale = np.outer(np.linalg.norm(P, axis=1), np.linalg.norm(W, axis=0))
    return Uniform(
        worst_relative=float((lengths / targets).max()),
        worst_entry=float(np.abs(error / scale).max()),
        frobenius=float(np.linalg.norm(lengths) / np.linalg.norm(targets)),
    )


def row_column_bound(n: int, columns: int, k: int, epsilon: float) -> float:
    """What the probability of `worst_entry` > epsilon is at most, by the union of them all."""
    return min(1.0, n * columns * row_failure_bound(k, epsilon))


def predicted_frobenius(P: np.ndarray, W: np.ndarray, PW: np.ndarray, k: int) -> float:
    """The root mean square of `frobenius`, in closed form."""
    squares = (np.linalg.norm(P) * np.linalg.norm(W)) ** 2 + np.linalg.norm(PW) ** 2
    return float(np.sqrt(squares / k) / np.linalg.norm(PW))
