"""Low-rank approximations of a mixing matrix: truncation, landmarks, random projections."""

import numpy as np


def leading_right_vectors(A: np.ndarray, r: int) -> np.ndarray:
    """The first min(r, N) right singular vectors of A, shape (N, min(r, N)), A of shape (N, N).

    Eigenvectors of A^T A, at half the cost of a singular value decomposition: they maximize
    tr(V^T A^T A V) but for 2 r times the eigenvalues' error N eps sigma_1^2.
    """
    from scipy.linalg import eigh

    scaled = np.ldexp(A, -int(np.frexp(np.abs(A).max())[1]))
    wanted = [max(0, len(A) - r), len(A) - 1]
    return eigh(scaled.T @ scaled, subset_by_index=wanted)[1][:, ::-1]


def right_vectors_of_product(F: np.ndarray, G: np.ndarray) -> np.ndarray:
    """All D right singular vectors of F G^T, shape (N, D), for F and G of shape (N, D), D < N.

    With F = Q R and G = P S, those of the D x D matrix R S^T, times P: backward stable.
    """
    R = np.linalg.qr(F, mode="r")
    P, S = np.linalg.qr(G)
    return P @ np.linalg.svd(R @ S.T)[2].T


def truncation(A: np.ndarray, r: int, vectors: np.ndarray) -> np.ndarray:
    """A V_r V_r^T, shape (N, N), V_r being the first r of A's right singular `vectors`.

    The best approximation of that rank (Eckart and Young 1936); the square of its distance in the
    Frobenius norm can exceed the best one by the error that `leading_right_vectors` states. A rank
    of N or more gives A but for rounding. It does not keep a mask's zeros: no causal
    method.
    """
    V = vectors[:, :r]
    return (A @ V) @ V.T


def segment_means(X: np.ndarray, m: int) -> np.ndarray:
    """Means of m segments of consecutive rows of X, shape (m, d); sizes differ by at most one."""
    starts = np.arange(m + 1) * len(X) // m
    return np.add.reduceat(X, starts[:-1]) / np.diff(starts)[:, None]


def balanced_exponentials(
    to_landmarks: np.ndarray, between: np.ndarray, from_landmarks: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """exp of the scores of `nystrom_factors`, of the same shapes, balanced.

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


def nystrom_factors(
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


def gaussian_projection(k: int, N: int, generator: np.random.Generator) -> np.ndarray:
    """R of shape (k, N) with independent N(0, 1/k) entries, so that R^T R is I in the mean."""
    return generator.standard_normal((k, N)) / np.sqrt(k)


def projection(A: np.ndarray, k: int, generator: np.random.Generator) -> np.ndarray:
    """A R^T R, R Gaussian of shape (k, N): the form of Theorem 1 of Wang et al. 2020 (Linformer).

    Shape (N, N), of rank k at most; unbiased, as E R^T R = I.
    """
    R = gaussian_projection(k, len(A), generator)
    return (A @ R.T) @ R


def linformer_factors(
    q: np.ndarray, k: np.ndarray, size: int, generator: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """softmax(q (E k)^T / sqrt(d)), shape (N, size), and F, shape (size, N), A_hat's factors.

    E and F are independent Gaussian projections, of the form of Wang et al. 2020, equation 7, where
    they are learned. `size` is their k, and does not depend on N. No such draw approximates
    attention: F has the mean zero, and so A_hat, which tends to zero as k grows. Nor does one R for
    both: the weighted mean of R's rows tends to the scores over k. Theorem 2 of the paper has
    E = delta R and F = exp(-delta) R; as delta vanishes, so do the projected scores, and every row
    of A_hat is the mean of R's.
    """
    E, F = (gaussian_projection(size, len(k), generator) for _ in range(2))
    S = q @ (E @ k).T / np.sqrt(q.shape[1])
    P = np.exp(S - S.max(axis=1, keepdims=True))
    return P / P.sum(axis=1, keepdims=True), F
