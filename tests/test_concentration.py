"""Cumulative shares against decompositions, closed forms and spectra that are known."""

import numpy as np
import pytest

from causalrank.concentration import (
    counted_index,
    counted_share,
    cumulative_share,
    gram_error,
    gram_singular_values,
    index_of_share,
)
from causalrank.inertia import Counts
from causalrank.mixing import matrix
from causalrank.spectrum import singular_values
from cell_files import LEVELS

EPS = np.finfo(float).eps
FRACTIONS = (1 / 64, 1 / 8, 1 / 4, 1 / 2, 1.0)


def head(N: int, mask: str, feature_map: str = "softmax") -> np.ndarray:
    q, k = np.random.default_rng(N).standard_normal((2, N, 8)) * 1.5
    if feature_map != "softmax":
        q, k = np.exp(q), np.exp(k)
    return matrix(q, k, feature_map, mask, "row")


@pytest.mark.parametrize("mask", ["bidirectional", "causal"])
@pytest.mark.parametrize("feature_map", ["softmax", "exp"])
@pytest.mark.parametrize("N", [1, 2, 30, 200])
def test_singular_values_of_the_gram_matrix_are_lapacks(N, feature_map, mask):
    A = head(N, mask, feature_map)
    sigma, expected = gram_singular_values(A), singular_values(A)
    delta = N * EPS * expected[0] ** 2
    # |sigma - expected| (sigma + expected) <= delta, and LAPACK itself errs by N eps sigma_1.
    allowed = np.minimum(np.sqrt(delta), delta / np.maximum(expected, 1e-300))
    assert (np.abs(sigma - expected) <= allowed + N * EPS * expected[0]).all()
    assert (np.diff(sigma) <= 0).all() and len(sigma) == N
    for fraction in FRACTIONS:
        share = cumulative_share(expected, fraction)
        assert abs(cumulative_share(sigma, fraction) - share) <= gram_error(expected) + 4 * N * EPS


def test_the_error_of_a_share_is_small_where_it_is_used():
    """At N = 512 the worst spectrum, one large value and zeros, allows 2 N sqrt(N eps)."""
    one = np.array([1.0] + [0.0] * 511)
    assert gram_error(one) == pytest.approx(2 * 511 * np.sqrt(512 * EPS) + 2 * 512 * EPS)
    assert gram_error(one) < 4e-4
    assert gram_error(np.ones(512)) == pytest.approx(2 * 512 * EPS)


@pytest.mark.parametrize(("N", "fraction", "j"), [(512, 0.25, 128), (3, 0.25, 1), (9, 0.5, 4)])
def test_shares_of_equal_and_of_geometric_values(N, fraction, j):
    assert cumulative_share(np.ones(N), fraction) == pytest.approx(j / N, rel=N * EPS)
    ratio = 0.9
    geometric = ratio ** np.arange(N)
    expected = (1 - ratio**j) / (1 - ratio**N)
    assert cumulative_share(geometric, fraction) == pytest.approx(expected, rel=4 * N * EPS)


@pytest.mark.parametrize("share", [0.5, 0.9, 1.0])
def test_index_of_share_by_search(share):
    sigma = np.array([8.0, 4.0, 2.0, 1.0, 1.0])
    expected = next(j for j in range(1, 6) if sigma[:j].sum() >= share * 16)
    assert index_of_share(sigma, share) == expected
    assert index_of_share(np.ones(10), 0.9) == 9
    assert index_of_share(np.array([1.0, 0.0]), share) == 1


@pytest.mark.parametrize("kind", ["geometric", "equal", "low rank", "softmax", "causal exp"])
def test_counts_enclose_what_all_values_say(kind):
    sigma = {
        "geometric": 0.97 ** np.arange(300),
        "equal": np.ones(40),
        "low rank": np.concatenate([np.linspace(1, 0.2, 6), np.zeros(50)]),
        "softmax": singular_values(head(120, "bidirectional")),
        "causal exp": singular_values(head(120, "causal", "exp")),
    }[kind]
    relative = sigma / sigma[0]
    counts = Counts(LEVELS, (relative[:, None] > LEVELS).sum(axis=0), len(sigma))
    for fraction in FRACTIONS:
        low, high = counted_share(counts, fraction)
        truth = cumulative_share(sigma, fraction)
        assert low - 1e-12 <= truth <= high + 1e-12
        # Eight levels a decade: odds of a share are known within that ratio on either side.
        if fraction < 1 and kind == "geometric":
            odds = [x / (1 - x) for x in (low, high)]
            assert odds[1] / odds[0] <= 10 ** (2 / 8) * 1.01
    for share in (0.5, 0.9):
        low, high = counted_index(counts, share)
        assert low <= index_of_share(sigma, share) <= high
