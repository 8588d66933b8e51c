"""Log-odds: scores recovered up to a constant a row, and their rank."""

import numpy as np
import pytest

from causalrank.log_odds import log_odds, log_odds_error, supported_block
from causalrank.mixing import softmax

EPS = np.finfo(float).eps


@pytest.mark.parametrize("mask", ["bidirectional", "causal"])
def test_log_odds_are_differences_of_scores(mask):
    q, k = np.random.default_rng(0).standard_normal((2, 9, 3))
    S, A = q @ k.T / np.sqrt(3), softmax(q, k, mask, "row")
    L = log_odds(A)
    allowed = np.tri(9, dtype=bool) if mask == "causal" else np.ones((9, 9), bool)
    np.testing.assert_array_equal(np.isfinite(L), allowed)
    # Each entry of A is right to 8 eps relatively, so its logarithm is absolutely, and scores
    # below 10 to 4 eps relatively.
    slack = 2 * (8 + 4 * 10) * EPS
    np.testing.assert_allclose(L[allowed], (S - S[:, [0]])[allowed], rtol=0, atol=slack)
    assert 0 <= log_odds_error(A, S) <= slack


def test_error_is_that_of_a_wrong_score():
    q, k = np.random.default_rng(0).standard_normal((2, 6, 2))
    S, A = q @ k.T / np.sqrt(2), softmax(q, k, "causal", "row")
    S[4, 2] += 0.25
    assert log_odds_error(A, S) == pytest.approx(0.25, abs=100 * EPS)
    S[2, 4] += 7.0  # above the diagonal: not on the support
    assert log_odds_error(A, S) == pytest.approx(0.25, abs=100 * EPS)


def test_constants_of_rows_are_forgotten():
    S = np.array([[1.0, 2.0], [3.0, 5.0]])
    for shift in (0.0, 40.0):
        E = np.exp(S + np.array([[shift], [-shift]]))
        L = log_odds(E / E.sum(axis=1, keepdims=True))
        np.testing.assert_allclose(L, [[0, 1], [0, 2]], rtol=0, atol=4 * 50 * EPS)


def test_rank_is_that_of_the_scores_or_one_less():
    """Integer scores: with a constant row space the reference takes the one direction away."""
    generator = np.random.default_rng(1)
    for u, rank in ((generator.integers(-3, 4, (7, 2)), 2), (np.ones((7, 1)), 0)):
        S = u @ (np.ones((1, 7)) if rank == 0 else generator.integers(-3, 4, (2, 7)))
        E = np.exp(S.astype(float))
        L = log_odds(E / E.sum(axis=1, keepdims=True))
        assert np.linalg.matrix_rank(L, tol=1e-9) == rank
        assert rank in (np.linalg.matrix_rank(S), np.linalg.matrix_rank(S) - 1)


def test_what_underflows_has_no_log_odds():
    L = log_odds(np.array([[0.5, 0.5, 0.0], [0.0, 1.0, 0.0]]))
    np.testing.assert_array_equal(L, [[0, 0, np.nan], [np.nan] * 3])


@pytest.mark.parametrize("N", [2, 5, 8])
def test_the_supported_block_is_supported(N):
    A = np.tri(N) / np.arange(1, N + 1)[:, None]
    block = supported_block(A, "causal")
    assert (block > 0).all() and block.shape == (N - N // 2, N // 2 + 1)
    assert supported_block(A, "bidirectional") is A
