"""Singular values, and what is read off them."""

import math
from dataclasses import dataclass, replace

import numpy as np

RESOLVED = 1e-3
"""The relative error of an end of a spectrum above which it is taken as unknown."""


def singular_values(A: np.ndarray) -> np.ndarray:
    """The singular values of A, shape (N,), largest first (LAPACK's gesdd, values only)."""
    return np.linalg.svd(A, compute_uv=False)


def factored_singular_values(F: np.ndarray, G: np.ndarray) -> np.ndarray:
    """The singular values of F G^T, shape (N,), for F and G of shape (N, D) with D < N.

    With F = Q R and G = P T, F G^T = Q (R T^T) P^T has the singular values of the D x D matrix
    R T^T, and N - D zeros. Costs O(N D^2) where the dense way costs O(N^3).
    """
    R, T = np.linalg.qr(F, mode="r"), np.linalg.qr(G, mode="r")
    values = np.linalg.svd(R @ T.T, compute_uv=False)
    return np.concatenate([values, np.zeros(len(F) - len(values))])


@dataclass(frozen=True)
class Spectrum:
    """What a spectrum says; None where the method cannot tell.

    A singular matrix has sigma_min = 0 and an infinite log10_condition. `*_error` are half-widths
    of intervals of what is estimated from a sample, None for what is computed.
    """

    sigma_max: float | None
    sigma_min: float | None
    log10_condition: float | None
    frobenius_norm: float | None
    stable_rank: float | None
    effective_rank: float | None
    effective_rank_error: float | None
    nuclear_norm: float | None
    nuclear_norm_error: float | None
    cumulative_at_quarter: float | None


NOTHING = Spectrum(*[None] * 10)


def summarize(sigma: np.ndarray) -> Spectrum:
    """Read the table's quantities off singular values of shape (N,), largest first.

    Weyl's inequality bounds the error of a computed singular value by about N eps sigma_max, so
    a sigma_min below that is noise: it and the condition number are None. For the zero matrix
    every ratio is None.

    stable rank = ||A||_F^2 / ||A||_2^2; effective rank = exp(-sum p log p) with
    p = sigma / sum(sigma) (Roy and Vetterli 2007); cumulative_at_quarter is the sum of the
    first floor(N / 4) singular values over the sum of all (Linformer, figure 1: the 128th of 512;
    for N below 4, the first one).
    """
    N = len(sigma)
    largest, nuclear = float(sigma[0]), float(sigma.sum())
    if largest == 0.0:
        return replace(NOTHING, sigma_max=0.0, sigma_min=0.0, frobenius_norm=0.0, nuclear_norm=0.0)
    relative = sigma / largest
    resolved = relative[-1] > N * np.finfo(float).eps
    stable = float(relative @ relative)
    p = sigma / nuclear
    p = p[p > 0]
    return replace(
        NOTHING,
        sigma_max=largest,
        sigma_min=float(sigma[-1]) if resolved else None,
        log10_condition=abs(math.log10(relative[-1])) if resolved else None,
        frobenius_norm=largest * math.sqrt(stable),
        stable_rank=stable,
        effective_rank=float(np.exp(-(p @ np.log(p)))),
        nuclear_norm=nuclear,
        cumulative_at_quarter=float(sigma[: max(1, N // 4)].sum()) / nuclear,
    )


def numerical_rank(sigma: np.ndarray, tolerance: float | np.ndarray) -> np.ndarray:
    """The number of singular values above tolerance * sigma_max, for each tolerance."""
    return np.count_nonzero(sigma > np.multiply.outer(tolerance, sigma[:1]), axis=-1)


def numpy_tolerance(N: int, epsilon: float) -> float | None:
    """The relative tolerance N eps of numpy.linalg.matrix_rank, eps that of the precision.

    None where N eps >= 1: the rule then leaves nothing to count, whatever the matrix.
    """
    tolerance = N * epsilon
    return tolerance if tolerance < 1.0 else None


def decay_indices(N: int) -> np.ndarray:
    """At most 128 indices from 1 to N, dense at both ends: there singular values fall steeply."""
    from_the_first = np.rint(np.geomspace(1, N, min(N, 64))).astype(int)
    return np.union1d(from_the_first, N + 1 - from_the_first)
