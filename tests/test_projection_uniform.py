"""Projections of all columns at once: null spaces, orthogonal R, and the closed form."""

import math

import numpy as np
import pytest

from causalrank.projection_uniform import uniform_errors
from test_projection import softmax_of


def test_an_orthogonal_square_projection_errs_nowhere():
    P = softmax_of(9)
    R = np.linalg.qr(np.random.default_rng(0).standard_normal((9, 9)))[0]
    errors = uniform_errors(P, np.eye(9), P, R)
    assert max(errors.worst_relative, errors.worst_entry, errors.frobenius) < 1e-13


def test_a_column_of_the_null_space_is_lost():
    P, R = softmax_of(9), np.random.default_rng(0).standard_normal((4, 9)) / 2
    lost = np.linalg.svd(R)[2][4:].T
    errors = uniform_errors(P, lost, P @ lost, R)
    assert errors.worst_relative == pytest.approx(1.0, abs=1e-12)
    assert errors.frobenius == pytest.approx(1.0, abs=1e-12)


def test_errors_are_the_largest_of_loops():
    P, R = softmax_of(7), np.random.default_rng(1).standard_normal((3, 7))
    W = np.random.default_rng(2).uniform(-1, 2, (7, 2))
    relative, entries, squares = [], [], []
    for w in W.T:
        error = P @ R.T @ R @ w - P @ w
        squares.append(error @ error)
        relative.append(np.linalg.norm(error) / np.linalg.norm(P @ w))
        entries += [
            abs(e) / (np.linalg.norm(x) * np.linalg.norm(w)) for e, x in zip(error, P, strict=True)
        ]
    errors = uniform_errors(P, W, P @ W, R)
    assert errors.worst_relative == pytest.approx(max(relative), rel=1e-12)
    assert errors.worst_entry == pytest.approx(max(entries), rel=1e-12)
    expected = math.sqrt(sum(squares)) / np.linalg.norm(P @ W)
    assert errors.frobenius == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("k", [5, 20])
def test_mean_square_over_the_identity_is_n_plus_1_over_k(k):
    n, draws = 16, 1000
    P, generator = softmax_of(n), np.random.default_rng(k)
    squares = np.array(
        [
            uniform_errors(
                P, np.eye(n), P, generator.standard_normal((k, n)) / math.sqrt(k)
            ).frobenius
            ** 2
            for _ in range(draws)
        ]
    )
    assert abs(squares.mean() - (n + 1) / k) <= 4 * squares.std() / math.sqrt(draws)
