"""Low-rank approximations of a mixing matrix: truncation and random projections."""

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
