"""The mixing matrix A of a head: N x N, what multiplies V."""

from itertools import product

import numpy as np

MASKS = ("bidirectional", "causal")
NORMALIZATIONS = ("none", "row")
ROWS = 1024


def factored(
    F: np.ndarray, G: np.ndarray, mask: str, normalization: str, first_row: int = 0
) -> np.ndarray:
    """A = F G^T or tril(F G^T), shape (N, N), for factors F and G of shape (N, D).

    F may be some consecutive rows of its own, from `first_row`; so are then those of A. With
    `normalization="row"` each row is divided by its sum; a row without any entry stays zero.
    Raises OverflowError when an entry or a row's sum leaves float64, and
    ZeroDivisionError when the entries of a row cancel, so that its normalization does not exist.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        A = F @ G.T
    if not np.isfinite(A).all():
        raise OverflowError("an entry of phi(q) phi(k)^T overflows float64")
    return from_kernel(A, mask, normalization, first_row)


def from_kernel(K: np.ndarray, mask: str, normalization: str, first_row: int = 0) -> np.ndarray:
    """Kernel values K, shape (N, N) or some of its rows, masked and then normalized.

    Raises what `divided_by_row_sums` raises.
    """
    A = np.tril(K, first_row) if mask == "causal" else K
    return divided_by_row_sums(A, first_row) if normalization == "row" else A


def divided_by_row_sums(A: np.ndarray, first_row: int = 0) -> np.ndarray:
    """A, shape (M, N), with each row divided by its sum; a row without any entry stays zero.

    `first_row` is the number of the first one, to be named. Raises OverflowError when a sum or a
    quotient leaves float64, and ZeroDivisionError when the entries of a row cancel.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        sums = A.sum(axis=1)
    if not np.isfinite(sums).all():
        raise OverflowError("the sum of a row overflows float64")
    empty = sums == 0.0
    if A[empty].any():
        row = first_row + int(np.flatnonzero(empty & A.any(axis=1))[0])
        raise ZeroDivisionError(f"the entries of row {row} sum to zero")
    with np.errstate(over="ignore"):
        A = A / np.where(empty, 1.0, sums)[:, None]
    if not np.isfinite(A).all():
        raise OverflowError("an entry divided by its row's sum overflows float64")
    return A


def normalized_factors(F: np.ndarray, G: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Factors, shape (N, D) each, of the row-normalized F G^T: f_i / sum_j f_i . g_j, and g_j.

    Rows of F and all of G are scaled to entries of at most one, which the division undoes, so
    that the sums neither overflow nor underflow.
    """
    f_scale = np.abs(F).max(axis=1, keepdims=True)
    g_scale = np.abs(G).max()
    F = F / np.where(f_scale == 0.0, 1.0, f_scale)
    G = G / (g_scale if g_scale else 1.0)
    sums = F @ G.sum(axis=0)
    return F / np.where(sums == 0.0, 1.0, sums)[:, None], G


def scores(q: np.ndarray, k: np.ndarray) -> np.ndarray:
    """The score matrix S = q k^T / sqrt(d) of softmax attention, shape (N, N)."""
    return q @ k.T / np.sqrt(q.shape[1])


def softmax(
    q: np.ndarray, k: np.ndarray, mask: str, normalization: str, first_row: int = 0
) -> np.ndarray:
    """A = exp(S), masked; with `normalization="row"`, softmax attention itself. Shape (N, N).

    q may be some consecutive rows of its own, from `first_row`; so are then those of A. The
    normalized rows are computed from scores less their largest, so they never overflow.
    Raises OverflowError when an unnormalized entry does.
    """
    S = scores(q, k)
    if mask == "causal":
        S = np.where(np.tri(*S.shape, first_row, dtype=bool), S, -np.inf)
    if normalization == "row":
        S -= S.max(axis=1, keepdims=True)
        A = np.exp(S, out=S)
        A /= A.sum(axis=1, keepdims=True)
        return A
    with np.errstate(over="ignore"):
        A = np.exp(S)
    if not np.isfinite(A).all():
        raise OverflowError(f"exp overflows float64 at the score {S.max():.6g}")
    return A


def matrix(
    F: np.ndarray,
    G: np.ndarray,
    feature_map: str,
    mask: str,
    normalization: str,
    first_row: int = 0,
) -> np.ndarray:
    """The mixing matrix of a cell's member, or some rows of it, from those of F.

    For `softmax`, F and G are q and k themselves.
    """
    build = softmax if feature_map == "softmax" else factored
    return build(F, G, mask, normalization, first_row)


def require_finite(F: np.ndarray, G: np.ndarray, feature_map: str) -> None:
    """Raise what forming one of the mixing matrices of F and G, shape (N, D), would raise.

    A cheap bound on the entries and on their row sums decides most cases; only where it does not,
    or where entries may cancel, are the matrices formed, ROWS rows at a time.
    """
    with np.errstate(over="ignore"):
        if feature_map == "softmax":
            norms = [np.sqrt((X * X).sum(axis=1).max()) for X in (F, G)]
            safe = norms[0] * norms[1] / np.sqrt(F.shape[1]) < np.log(np.finfo(float).max)
        else:
            reach = np.abs(F).max(axis=0) @ np.abs(G).max(axis=0)
            safe = np.isfinite(len(F) * reach) and min(F.min(), G.min()) >= 0
    if not safe:
        for a, mask, normalization in product(range(0, len(F), ROWS), MASKS, NORMALIZATIONS):
            matrix(F[a : a + ROWS], G, feature_map, mask, normalization, a)


def running_sum(F: np.ndarray, G: np.ndarray, v: np.ndarray, epsilon: float = 0.0) -> np.ndarray:
    """Causal linear attention in its recurrent form, shape (N, d_v).

    With S_i = sum_{j<=i} g_j v_j^T and Z_i = sum_{j<=i} g_j, row i of the output is
    f_i^T S_i / (f_i^T Z_i + epsilon) (Katharopoulos et al. 2020, equations 18 to 20). Memory
    is D x d_v: no N x N matrix is formed.
    """
    S = np.zeros((G.shape[1], v.shape[1]), dtype=np.result_type(F, G, v))
    Z = np.zeros(G.shape[1], dtype=S.dtype)
    output = np.empty((len(F), v.shape[1]), dtype=S.dtype)
    for i, (f, g) in enumerate(zip(F, G, strict=True)):
        S += np.outer(g, v[i])
        Z += g
        output[i] = f @ S / (f @ Z + epsilon)
    return output
