"""Landmarks where they are exact, and an inverse by its residual."""

import math

import numpy as np
import pytest

from causalrank.landmarks import (
    balanced_exponentials,
    iterated_inverse,
    landmark_factors,
    segment_means,
    without_lost_rows,
)

EPS = np.finfo(float).eps


@pytest.mark.parametrize(("N", "m"), [(6, 3), (7, 3), (5, 5), (5, 1)])
def test_segment_means(N, m):
    X = np.random.default_rng(N).standard_normal((N, 2))
    parts = [X[N * i // m : N * (i + 1) // m] for i in range(m)]
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
    means = [[math.fsum(part[:, c]) / len(part) for c in range(2)] for part in parts]
    np.testing.assert_allclose(segment_means(X, m), means, rtol=0, atol=N * EPS * np.abs(X).max())


def test_landmarks_give_back_a_kernel_of_their_rank():
    """K of rank 3 with landmarks whose 4 x 4 kernel has rank 3: K C^+ R = K."""
    F, G = np.random.default_rng(2).standard_normal((2, 12, 3))
    f, g = segment_means(F, 4), segment_means(G, 4)
    between = f @ g.T
    L, R = landmark_factors(F @ g.T, between, f @ G.T)
    sigma = np.linalg.svd(between, compute_uv=False)
    # The pseudoinverse has condition sigma_1 / sigma_3, and the products lengths of some dozen.
    slack = 12 * 12 * EPS * sigma[0] / sigma[2] * np.abs(F @ G.T).max()
    np.testing.assert_allclose(L @ R.T, F @ G.T, rtol=0, atol=slack)


def test_landmarks_at_every_token_give_back_any_kernel():
    q, k = np.random.default_rng(3).standard_normal((2, 6, 2))
    K = np.exp(q @ k.T)
    L, R = landmark_factors(K, K, K)
    sigma = np.linalg.svd(K, compute_uv=False)
    np.testing.assert_allclose(L @ R.T, K, rtol=0, atol=36 * EPS * sigma[0] / sigma[-1] * K.max())


def test_landmarks_do_not_lose_rows_and_columns_of_small_scores():
    """exp(S) = diag(a) C diag(b) with a and b from exp(-60) to 1 and a well-conditioned C.

    The kernel itself has singular values far below m eps of its largest.
    """
    m = 6
    generator = np.random.default_rng(8)
    C = np.eye(m) + generator.uniform(0.05, 0.15, (m, m))
    rows, columns = (-60.0 * generator.permutation(m) / (m - 1) for _ in range(2))
    S = np.log(C) + rows[:, None] + columns
    factors = balanced_exponentials(S, S, S)
    for axis in (0, 1):
        np.testing.assert_array_equal(factors[1].max(axis=axis), 1.0)
    L, R = landmark_factors(*factors)
    # Exponents below 120 + 3 err by eps times that, all entries by as much, relatively; rows of the
    # result in the norm of the row, since what is left of b after the rows' maxima is at most one.
    slack = 2 * m * 123 * EPS * np.linalg.cond(factors[1])
    scale = np.exp(S.max(axis=1, keepdims=True))
    np.testing.assert_allclose(L @ R.T / scale, np.exp(S) / scale, rtol=0, atol=slack)
    with pytest.raises(OverflowError, match="landmarks"):
        balanced_exponentials(S + 800.0, S, S)


def test_rows_that_are_rounding_alone_are_empty():
    """1/10 + 2/10 - 3/10 is 5.6e-17 in doubles."""
    L = np.array([[0.1, 0.2, -0.3], [0.1, 0.2, 0.3], [0.0, 0.0, 0.0], [1e-10, 0.0, 0.0]])
    R = np.eye(3)
    assert (L[0] @ R.T).sum() != 0.0
    found = without_lost_rows(L, R)
    np.testing.assert_array_equal(found, L * np.array([[0.0], [1.0], [1.0], [1.0]]))


@pytest.mark.parametrize("steps", [0, 1, 4, 9])
def test_iterated_inverse_by_its_residual(steps):
    """Of a symmetric P with eigenvalue s, the residual r = 1 - s z becomes r^3 (3 + r) / 4."""
    values = np.array([1.0, 0.5, 0.1, 0.01])
    Q = np.linalg.qr(np.random.default_rng(6).standard_normal((4, 4)))[0]
    P = Q * values @ Q.T
    residual = 1 - values**2 / np.abs(P).sum(axis=0).max() ** 2
    for _ in range(steps):
        residual = residual**3 * (3 + residual) / 4
    expected = Q * ((1 - residual) / values) @ Q.T
    # A step rounds products of entries up to 1 / 0.01 some dozen times, and passes errors on.
    np.testing.assert_allclose(
        iterated_inverse(P, steps), expected, rtol=0, atol=1e3 * EPS / values[-1]
    )
