"""Truncation by singular values, projections by their mean."""

import math

import numpy as np

from causalrank.low_rank import (
    gaussian_projection,
    leading_right_vectors,
    linformer_factors,
    projection,
    right_vectors_of_product,
    truncation,
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
