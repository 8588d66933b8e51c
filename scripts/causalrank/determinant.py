"""log |det A| of a mixing matrix: natural logarithm, minus infinity where A is singular."""

import numpy as np

from .mixing import scores

EPSILON = np.finfo(float).eps


def causal_log_det(F: np.ndarray, G: np.ndarray, zero_diagonal: np.ndarray) -> float:
    """log |det tril(F G^T)| = sum_i log |f_i . g_i|, for factors of shape (N, D).

    `zero_diagonal`, of shape (N,), says which f_i . g_i are exactly zero. Each sum is scaled by a
    power of two to its largest product, so that it neither underflows nor overflows. NaN where a
    sum cancels so far that its rounding error, D eps times the sum of moduli, exceeds a millionth.
    """
    if zero_diagonal.any():
        return -np.inf
    (f, f_exponent), (g, g_exponent) = np.frexp(F), np.frexp(G)
    products, exponents = f * g, f_exponent + g_exponent
    largest = np.where(products != 0, exponents, np.iinfo(exponents.dtype).min).max(axis=1)
    terms = np.ldexp(products, exponents - largest[:, None])
    dots, errors = np.abs(terms.sum(axis=1)), F.shape[1] * EPSILON * np.abs(terms).sum(axis=1)
    if (errors > 1e-6 * dots).any():
        return float("nan")
    return float(np.log(dots).sum() + np.log(2) * largest.sum())


def dense_log_det(A: np.ndarray, sigma: np.ndarray) -> float:
    """log |det A| by LU, for A of shape (N, N) with singular values `sigma`, largest first.

    NaN where sigma_min is below N eps sigma_max, since the determinant of such a matrix is made
    of rounding errors, and where the singular values are not known.
    """
    if not sigma[-1] > len(A) * EPSILON * sigma[0]:
        return float("nan")
    return float(np.linalg.slogdet(A)[1])


def causal_softmax_log_det(q: np.ndarray, k: np.ndarray) -> float:
    """log det of exp(S) under the causal mask: the trace of S."""
    return float(np.trace(scores(q, k)))


def log_row_sums(A: np.ndarray) -> float:
    """The sum of log |row sum|, which row normalization takes from log |det A|; shape (N, N).

    Minus infinity when a row is empty. Rows are scaled, so that their sums do not overflow.
    """
    largest = np.abs(A).max(axis=1)
    sums = (A / np.where(largest > 0, largest, 1.0)[:, None]).sum(axis=1)
    with np.errstate(divide="ignore"):
        return float((np.log(np.abs(sums)) + np.log(largest)).sum())
