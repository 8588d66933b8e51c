"""Landmarks: an attention head through means of its tokens, by Nystrom's method, in two forms."""

import numpy as np

from .head import Head
from .mixing import softmax

INVERSE_STEPS = 6
"""Of Nystromformer, as its authors' program has them."""


def segment_means(X: np.ndarray, m: int) -> np.ndarray:
    """Means of m segments of consecutive rows of X, shape (m, d); sizes differ by at most one."""
    starts = np.arange(m + 1) * len(X) // m
    return np.add.reduceat(X, starts[:-1]) / np.diff(starts)[:, None]


def balanced_exponentials(
    to_landmarks: np.ndarray, between: np.ndarray, from_landmarks: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """exp of the scores of `landmark_factors`, of the same shapes, balanced.

    The middle one is exp(-r_i) exp(S_ij) exp(-c_j), each row's and each column's largest entry
    being one, and the others make up for it, so that the product is that of the exponentials, but
    the cutoff of the inverse removes no row or column only because its scores are small. Raises
    OverflowError where what makes up for it leaves float64.
    """
    rows = between.max(axis=1, keepdims=True)
    columns = (between - rows).max(axis=0)
    with np.errstate(over="ignore"):
        left, right = np.exp(to_landmarks - columns), np.exp(from_landmarks - rows)
    if not (np.isfinite(left).all() and np.isfinite(right).all()):
        raise OverflowError("the kernel at the landmarks overflows float64")
    return left, np.exp(between - rows - columns), right


def without_lost_rows(L: np.ndarray, R: np.ndarray) -> np.ndarray:
    """L, shape (N, m), with zeros for each row of L R^T whose sum may be rounding alone.

    That is where it is at most N eps times the row's sum in |L| |R|^T: divided by it, the row would
    be as large as any other.
    """
    sums, sizes = L @ R.sum(axis=0), np.abs(L) @ np.abs(R).sum(axis=0)
    lost = np.abs(sums) <= len(R) * np.finfo(float).eps * sizes
    return np.where(lost[:, None], 0.0, L)


def landmark_factors(
    to_landmarks: np.ndarray, between: np.ndarray, from_landmarks: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Factors, shape (N, m) each, of K(q, k~) K(q~, k~)^+ K(q~, k) (Williams and Seeger 2001).

    The three arguments are those matrices of a kernel K, of shape (N, m), (m, m) and (m, N), where
    q~, k~ are landmarks. They make an approximation that can be normalized afterwards or not.
    Singular values of the middle one below m eps of its largest count as zeros. That is no
    regularization: an inverse with a higher cutoff errs less on kernels with many small ones.
    """
    cutoff = len(between) * np.finfo(float).eps
    return to_landmarks @ np.linalg.pinv(between, rcond=cutoff), from_landmarks.T


def iterated_inverse(P: np.ndarray, steps: int) -> np.ndarray:
    """An approximation of P's inverse, shape (m, m), by `steps` of Xiong et al. 2021, section 3.

    Z <- Z (13 I - P Z (15 I - P Z (7 I - P Z))) / 4 from Z = P^T / (||P||_1 ||P||_inf). Errors
    I - P Z shrink by the third power at the end, but directions of small singular values take many
    steps to come up: few steps are a regularization, and part of the method.
    """
    size = np.abs(P)
    Z = P.T / (size.sum(axis=0).max() * size.sum(axis=1).max())
    one = np.eye(len(P))
    for _ in range(steps):
        PZ = P @ Z
        Z = Z @ (13 * one - PZ @ (15 * one - PZ @ (7 * one - PZ))) / 4
    return Z


def nystrom_factors(head: Head, m: int) -> tuple[np.ndarray, np.ndarray]:
    """Factors, shape (N, m) each, of the head's kernel by m landmarks, means of segments.

    Of a row-normalized head, rows whose sum is lost in rounding are empty.
    """
    f, g = (segment_means(X, m) for X in (head.F, head.G))
    products = (head.F @ g.T, f @ g.T, f @ head.G.T)
    if head.feature_map == "softmax":
        products = balanced_exponentials(*(S / np.sqrt(f.shape[1]) for S in products))
    L, R = landmark_factors(*products)
    return (without_lost_rows(L, R) if head.normalization == "row" else L), R


def nystromformer_factors(head: Head, m: int) -> tuple[np.ndarray, np.ndarray]:
    """Factors, shape (N, m) each, by m landmarks of three row softmaxes, and few steps of inverse.

    Xiong et al. 2021, without the convolution of values that their layers add.
    """
    f, g = (segment_means(X, m) for X in (head.F, head.G))
    rows = ((head.F, g), (f, g), (f, head.G))
    left, middle, right = (softmax(q, k, "bidirectional", "row") for q, k in rows)
    return left @ iterated_inverse(middle, INVERSE_STEPS), right.T
