"""log |det A| of a mixing matrix: natural logarithm, minus infinity where A is singular."""

import numpy as np

from .mixing import factored, scores

EPSILON = np.finfo(float).eps
CHUNK = 256
"""Rows of factors that are summed at once."""
BLOCK = 2**20
"""Scores that are formed at once."""


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
    """log det of exp(S) under the causal mask: the trace of S = q k^T / sqrt(d), (N, d) each."""
    return float(np.einsum("ij,ij->", q, k) / np.sqrt(q.shape[1]))


def log_row_sums(F: np.ndarray, G: np.ndarray, feature_map: str, mask: str) -> float:
    """The sum of log |row sum| of the unnormalized mixing matrix, for factors of shape (N, D).

    It is what row normalization takes from log |det A|. Minus infinity when a row is empty. No
    N x N matrix is formed, except for bidirectional factors, which are singular where N > D.
    """
    if feature_map == "softmax":
        return softmax_log_row_sums(F, G, mask)
    if mask == "causal":
        return causal_log_row_sums(F, G)
    return dense_log_row_sums(factored(F, G, mask, "none"))


def dense_log_row_sums(A: np.ndarray) -> float:
    """`log_row_sums` of A, shape (N, N). Rows are scaled, so that their sums do not overflow."""
    largest = np.abs(A).max(axis=1)
    sums = (A / np.where(largest > 0, largest, 1.0)[:, None]).sum(axis=1)
    with np.errstate(divide="ignore"):
        return float((np.log(np.abs(sums)) + np.log(largest)).sum())


def softmax_log_row_sums(q: np.ndarray, k: np.ndarray, mask: str) -> float:
    """`log_row_sums` of exp(S), from blocks of rows of S; q and k have shape (N, d).

    The largest score of a row is taken out of its sum, which cannot overflow then.
    """
    N, total = len(q), 0.0
    height = max(1, BLOCK // N)
    for start in range(0, N, height):
        stop = min(start + height, N)
        S = scores(q[start:stop], k[:stop] if mask == "causal" else k)
        if mask == "causal":
            S[:, start:][np.triu_indices(stop - start, 1)] = -np.inf
        largest = S.max(axis=1)
        total += (np.log(np.exp(S - largest[:, None]).sum(axis=1)) + largest).sum()
    return float(total)


def causal_log_row_sums(F: np.ndarray, G: np.ndarray) -> float:
    """`log_row_sums` of tril(F G^T), as f_i . (g_1 + ... + g_i), in O(N D); F, G of shape (N, D).

    Rows of F and all of G are scaled by powers of two to entries below one. A sum errs by its
    roundings, eps times the sum of moduli each, and by what underflows: 2^-1075 for each entry of
    F and G and for each product. NaN where that exceeds a millionth of it.
    """
    N, D = F.shape
    f_exponent, g_exponent = np.frexp(np.abs(F).max(axis=1))[1], np.frexp(np.abs(G).max())[1]
    roundings, underflow = CHUNK + N // CHUNK + D + 2, 3 * N * D * 2.0**-1074
    before, moduli_before, seen = np.zeros(D), np.zeros(D), np.zeros(D, bool)
    total = np.log(2) * (f_exponent.sum() + N * float(g_exponent))
    for start in range(0, N, CHUNK):
        rows = slice(start, start + CHUNK)
        f, g = np.ldexp(F[rows], -f_exponent[rows, None]), np.ldexp(G[rows], -g_exponent)
        until = before + np.cumsum(g, axis=0)
        moduli_until = moduli_before + np.cumsum(np.abs(g), axis=0)
        seen_until = seen | np.logical_or.accumulate(G[rows] != 0)
        if not ((F[rows] != 0) & seen_until).any(axis=1).all():
            return -np.inf
        sums = np.abs((f * until).sum(axis=1))
        errors = roundings * EPSILON * (np.abs(f) * moduli_until).sum(axis=1) + underflow
        if (errors > 1e-6 * sums).any():
            return float("nan")
        total += np.log(sums).sum()
        before, moduli_before, seen = until[-1], moduli_until[-1], seen_until[-1]
    return float(total)
