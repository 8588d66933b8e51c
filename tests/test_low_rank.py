"""Truncation by singular values, landmarks where they are exact, projections by their mean."""

import math

import numpy as np
import pytest

from causalrank.low_rank import (
    balanced_exponentials,
    gaussian_projection,
    iterated_inverse,
    leading_right_vectors,
    linformer_factors,
    nystrom_factors,
    projection,
    right_vectors_of_product,
    segment_means,
    truncation,
    without_lost_rows,
)

EPS = np.finfo(float).eps


def test_truncations_err_by_the_next_singular_value():
    A = np.random.default_rng(0).standard_normal((7, 7))
    sigma = np.append(np.linalg.svd(A, compute_uv=False), [0.0, 0.0])
    vectors = leading_right_vectors(A, 8)
    for r in (0, 1, 4, 7, 8):
        A_hat = truncation(A, r, vectors)
        # Products are backward stable: N^2 eps sigma_1. No matrix of rank r is nearer than the next
        # singular value, and the square of the distance exceeds its square by 2 r N eps sigma_1^2.
        rounding = 49 * EPS * sigma[0]
        distance = np.linalg.norm(A - A_hat, 2)
        assert distance >= sigma[r] - rounding
        best = np.sqrt((sigma[r:] ** 2).sum())
        excess = 2 * r * 7 * EPS * sigma[0] ** 2 if r < 7 else 0.0
        assert np.linalg.norm(A - A_hat) <= np.sqrt(best**2 + excess) + rounding
        assert np.count_nonzero(np.linalg.svd(A_hat, compute_uv=False) > rounding) == min(r, 7)


def test_vectors_of_a_product_are_those_of_the_matrix():
    F, G = np.random.default_rng(1).standard_normal((2, 20, 4))
    A = F @ G.T
    sigma = np.linalg.svd(A, compute_uv=False)
    vectors = right_vectors_of_product(F, G)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(4), atol=100 * EPS)
    for r in range(5):
        distance = np.linalg.norm(A - truncation(A, r, vectors))
        best = np.sqrt((sigma[r:] ** 2).sum())
        assert distance <= best + 400 * EPS * sigma[0]


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
    L, R = nystrom_factors(F @ g.T, between, f @ G.T)
    sigma = np.linalg.svd(between, compute_uv=False)
    # The pseudoinverse has condition sigma_1 / sigma_3, and the products lengths of some dozen.
    slack = 12 * 12 * EPS * sigma[0] / sigma[2] * np.abs(F @ G.T).max()
    np.testing.assert_allclose(L @ R.T, F @ G.T, rtol=0, atol=slack)


def test_landmarks_at_every_token_give_back_any_kernel():
    q, k = np.random.default_rng(3).standard_normal((2, 6, 2))
    K = np.exp(q @ k.T)
    L, R = nystrom_factors(K, K, K)
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
    L, R = nystrom_factors(*factors)
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


def test_projections_are_unbiased_with_entries_of_variance_one_over_k():
    N, k, draws = 4, 3, 4000
    generator = np.random.default_rng(4)
    A = generator.standard_normal((N, N))
    mean = np.mean([projection(A, k, generator) for _ in range(draws)], axis=0)
    # Var (a R^T R)_j = (|a|^2 + a_j^2) / k, which is at most 2 |a|^2 / k.
    error = 5 * np.sqrt(2 * (A * A).sum(axis=1) / (k * draws))
    assert (np.abs(mean - A) < error[:, None]).all()
    R = gaussian_projection(k, 5000, generator)
    assert abs((R * R).mean() * k - 1) < 5 * np.sqrt(2 / R.size)


def test_projections_have_rank_k():
    A_hat = projection(np.eye(8), 3, np.random.default_rng(5))
    sigma = np.linalg.svd(A_hat, compute_uv=False)
    assert sigma[2] > 1e-3 and sigma[3] <= 64 * EPS * sigma[0]


def test_linformer_by_loops():
    generator = np.random.default_rng(6)
    q, k, v = generator.standard_normal((3, 5, 2))
    P, F = linformer_factors(q, k, 3, np.random.default_rng(7))
    drawn = np.random.default_rng(7)
    E_drawn, F_drawn = (drawn.standard_normal((3, 5)) / math.sqrt(3) for _ in range(2))
    np.testing.assert_array_equal(F, F_drawn)
    for i in range(5):
        keys = [sum(E_drawn[a, j] * k[j] for j in range(5)) for a in range(3)]
        weights = [math.exp(q[i] @ key / math.sqrt(2)) for key in keys]
        values = [sum(F_drawn[a, j] * v[j] for j in range(5)) for a in range(3)]
        output = sum(w * x for w, x in zip(weights, values, strict=True)) / math.fsum(weights)
        # Of weights below exp(10), whose exponents have an absolute error of some eps.
        np.testing.assert_allclose(P[i] @ (F @ v), output, rtol=0, atol=200 * EPS)


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
