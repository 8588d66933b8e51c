"""Errors of Gaussian projections: against literal projections, quadrature and exact tails."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from causalrank.intervals import clopper_pearson
from causalrank.mixing import softmax
from causalrank.projection import (
    columns,
    draw_errors,
    failure_bounds,
    predicted_errors,
    row_failure_bound,
    smallest_k,
    theorem_k,
)
from causalrank.spectrum import singular_values, summarize


def softmax_of(n: int, seed: int = 0) -> np.ndarray:
    q, k = np.random.default_rng(seed).standard_normal((2, n, 16))
    return softmax(q, k, "bidirectional", "row")


def column_of(P: np.ndarray, w: np.ndarray, draws: int = 1, seed: int = 1):
    H = np.random.default_rng(seed).standard_normal((len(P), draws))
    (column,) = columns([P], w[:, None], H)
    return column


def literal(P: np.ndarray, w: np.ndarray, k: int, draws: int, seed: int) -> np.ndarray:
    """The three errors, shape (3, draws), from R itself."""
    generator = np.random.default_rng(seed)
    truth, norms = P @ w, np.linalg.norm(P, axis=1)
    found = []
    for _ in range(draws):
        R = generator.standard_normal((k, len(w))) / math.sqrt(k)
        error = P @ (R.T @ (R @ w)) - truth
        length, scale = np.linalg.norm(error), np.linalg.norm(w)
        found.append(
            [
                length / np.linalg.norm(truth),
                length / (np.linalg.norm(P) * scale),
                np.abs(error / (norms * scale)).max(),
            ]
        )
    return np.array(found).T


@pytest.mark.parametrize(
    ("n", "epsilon", "k"), [(512, 0.5, 250), (128, 0.5, 195), (4096, 0.25, 888)]
)
def test_theorem_k(n, epsilon, k):
    assert theorem_k(n, epsilon) == k


@pytest.mark.parametrize("k", [1, 5, 40, 300])
@pytest.mark.parametrize("epsilon", [0.1, 0.25, 0.5, 0.9])
def test_row_bound_holds_where_the_tail_is_exact(k, epsilon):
    """x = w: |x R^T R w - 1| = |chi^2_k / k - 1|. And x = -w has the same."""
    tail = stats.chi2(k).sf(k * (1 + epsilon)) + stats.chi2(k).cdf(k * (1 - epsilon))
    assert tail <= row_failure_bound(k, epsilon)


@pytest.mark.parametrize("cosine", [0.0, 0.3, -0.8])
@pytest.mark.parametrize(("k", "epsilon"), [(20, 0.5), (200, 0.25)])
def test_row_bound_and_bernstein_hold_for_every_angle(cosine, k, epsilon):
    generator = np.random.default_rng(k)
    a, b = generator.standard_normal((2, 20_000, k))
    products = (a * (cosine * a + math.sqrt(1 - cosine**2) * b)).mean(axis=1)
    failures = int((np.abs(products - cosine) > epsilon).sum())
    exponent = k * epsilon**2 / (2 * (1 + cosine**2) + 2 * (1 + abs(cosine)) * epsilon)
    bernstein = 2 * math.exp(-exponent)
    assert clopper_pearson(failures, len(products))[0] <= bernstein
    assert bernstein <= row_failure_bound(k, epsilon)


def test_mean_square_error_by_quadrature():
    """Five nodes of Gauss and Hermite are exact for polynomials of degree nine; this has four."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(5)
    weights = weights / weights.sum()
    P = np.array([[0.7, 0.3, 0.0], [0.2, 0.2, 0.6], [0.1, 0.8, 0.1]])
    w = np.array([1.0, -2.0, 0.5])
    places = itertools.product(range(5), repeat=3)
    total = 0.0
    for place in places:
        R = nodes[list(place)][None, :]
        error = P @ (R.T @ (R @ w)) - P @ w
        total += weights[list(place)].prod() * error @ error
    column = column_of(P, w)
    relative, norm = predicted_errors(column, 1)
    assert (relative * np.linalg.norm(P @ w)) ** 2 == pytest.approx(total, rel=1e-12)
    scale = np.linalg.norm(P) * np.linalg.norm(w)
    assert (norm * scale) ** 2 == pytest.approx(total, rel=1e-12)


@pytest.mark.parametrize("kind", ["uniform", "mean zero", "one hot"])
@pytest.mark.parametrize("k", [2, 9])
def test_draws_have_the_law_of_literal_projections(kind, k):
    n, draws = 12, 3000
    w = np.random.default_rng(5).uniform(0, 1, n)
    w = {"uniform": w, "mean zero": w - w.mean(), "one hot": np.eye(n)[3]}[kind]
    P = softmax_of(n)
    found = draw_errors(column_of(P, w, draws), k, np.random.default_rng(3))
    expected = literal(P, w, k, draws, 4)
    for mine, theirs in zip((found.relative, found.norm, found.rows), expected, strict=True):
        assert stats.ks_2samp(mine, theirs).pvalue > 1e-3
    for mine, predicted in zip(
        (found.relative, found.norm), predicted_errors(column_of(P, w), k), strict=True
    ):
        squares = mine**2
        assert abs(squares.mean() - predicted**2) <= 4 * squares.std() / math.sqrt(draws)


def test_columns_do_not_depend_on_blocks_or_on_the_length_of_w():
    P, W = softmax_of(10), np.random.default_rng(2).standard_normal((10, 2))
    H = np.random.default_rng(1).standard_normal((10, 4))
    whole, blocks = columns([P], W, H), columns([P[:3], P[3:]], 7 * W, H)
    for j, (one, other) in enumerate(zip(whole, blocks, strict=True)):
        unit = W[:, j] / np.linalg.norm(W[:, j])
        np.testing.assert_allclose(one.image, P @ unit, atol=1e-14)
        np.testing.assert_allclose(one.noise, P @ (H - np.outer(unit, unit @ H)), atol=1e-13)
        for name in ("image", "noise", "row_norms"):
            np.testing.assert_allclose(getattr(one, name), getattr(other, name), atol=1e-13)


def test_amplification_is_at_least_the_stable_rank_and_reaches_it():
    P = softmax_of(30)
    stable_rank = summarize(singular_values(P)).stable_rank
    for seed in range(5):
        w = np.random.default_rng(seed).standard_normal(30)
        assert column_of(P, w).amplification >= stable_rank
    leading = np.linalg.svd(P)[2][0]
    assert column_of(P, leading).amplification == pytest.approx(stable_rank, rel=1e-12)
    # Rows sum to one, so that P 1 = 1 and kappa = ||P||_F^2.
    assert column_of(P, np.ones(30)).amplification == pytest.approx(np.linalg.norm(P) ** 2)


@pytest.mark.parametrize(("k", "epsilon"), [(8, 0.5), (60, 0.5), (200, 0.25)])
def test_failures_stay_below_their_bounds(k, epsilon):
    P, draws = softmax_of(24), 2000
    column = column_of(P, np.random.default_rng(0).uniform(0, 1, 24), draws)
    errors = draw_errors(column, k, np.random.default_rng(1))
    bounds = failure_bounds(column, k, epsilon)
    relative, norm = predicted_errors(column, k)
    assert bounds[:2] == (min(1, (relative / epsilon) ** 2), min(1, (norm / epsilon) ** 2))
    assert bounds[2] == min(1.0, 48 * math.exp(-(epsilon**2 - epsilon**3) * k / 4))
    for values, bound in zip((errors.relative, errors.norm, errors.rows), bounds, strict=True):
        assert clopper_pearson(int((values > epsilon).sum()), draws)[0] <= bound


@pytest.mark.parametrize("length", [1, 2, 7, 8])
def test_smallest_k_is_the_first_below_of_falling_frequencies(length):
    ladder = [2**i for i in range(length)]
    for place, expected in enumerate([*ladder, None]):
        frequencies = dict(zip(ladder, [0.05] * place + [0.04] * length, strict=False))
        assert smallest_k(ladder, frequencies.__getitem__, 0.05) == expected


def test_smallest_k_is_enough_and_the_one_before_it_is_not_where_frequencies_waver():
    frequencies = dict(zip([2, 4, 8, 16, 32], [0.9, 0.04, 0.06, 0.01, 0.0], strict=True))
    found = smallest_k(list(frequencies), frequencies.__getitem__, 0.05)
    assert frequencies[found] < 0.05 <= frequencies[found // 2]
