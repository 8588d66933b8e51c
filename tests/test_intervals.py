"""Intervals against scipy, against exact expectations, and by coverage."""

import numpy as np
import pytest
from scipy import stats

from causalrank.intervals import (
    clopper_pearson,
    crossed_mean,
    difference_interval,
    mean_interval,
)


@pytest.mark.parametrize("n", [2, 5, 50])
def test_mean_interval_is_students(n):
    values = np.random.default_rng(n).standard_normal((n, 3))
    mean, half = mean_interval(values)
    low, high = stats.t.interval(0.95, n - 1, loc=values.mean(axis=0), scale=stats.sem(values))
    np.testing.assert_allclose([mean - half, mean + half], [low, high], rtol=1e-10)


def test_one_value_has_no_interval():
    mean, half = mean_interval(np.array([[1.0, 2.0]]))
    assert mean.tolist() == [1.0, 2.0] and np.isnan(half).all()


@pytest.mark.parametrize(("first", "last"), [(2, 2), (5, 3), (40, 5)])
def test_difference_interval_is_welchs(first, last):
    generator = np.random.default_rng(first)
    a = generator.standard_normal((first, 3))
    b = 1 + 4 * generator.standard_normal((last, 3))
    mean, half = difference_interval(a, b)
    expected = stats.ttest_ind(b, a, equal_var=False).confidence_interval(0.95)
    np.testing.assert_allclose([mean - half, mean + half], expected, rtol=1e-9)


def test_a_difference_of_constants_is_sure_and_of_one_value_is_not():
    mean, half = difference_interval(np.ones((3, 2)), np.full((4, 2), 1.5))
    assert mean.tolist() == [0.5, 0.5] and half.tolist() == [0.0, 0.0]
    assert np.isnan(difference_interval(np.ones((1, 2)), np.ones((4, 2)))[1]).all()


@pytest.mark.parametrize("draws", [1, 7, 400])
def test_clopper_pearson_is_scipys(draws):
    for failures in {0, 1, draws // 3, draws - 1, draws}:
        expected = stats.binomtest(failures, draws).proportion_ci(0.95, method="exact")
        np.testing.assert_allclose(
            clopper_pearson(failures, draws), [expected.low, expected.high], rtol=1e-9, atol=1e-15
        )


def test_without_interaction_both_variances_add_up():
    rows, columns = np.array([0.0, 2.0, 4.0]), np.array([1.0, 5.0])
    found = crossed_mean(rows[:, None] + columns)
    assert found.value == 5.0
    variance = rows.var(ddof=1) / 3 + columns.var(ddof=1) / 2
    assert found.error == pytest.approx(stats.t.ppf(0.975, 1) * np.sqrt(variance), rel=1e-12)
    assert np.isnan(crossed_mean(np.ones((1, 4))).error)
    assert np.isnan(crossed_mean(np.ones((4, 1))).error)


def test_coverage_is_at_least_what_is_promised():
    """20,000 draws of seeds and tasks with effects of their own: the share of intervals that hold
    the mean is 95 % or more, within five standard deviations of a share."""
    generator = np.random.default_rng(0)
    draws, shape = 20_000, (5, 5)
    for deviations in ((1.0, 1.0, 1.0), (1.0, 0.0, 0.0), (0.0, 0.0, 1.0)):
        a, b, e = (s * generator.standard_normal((draws, *shape)) for s in deviations)
        y = a[:, :, :1] + b[:, :1, :] + e
        hit = [abs(m.value) <= m.error for m in map(crossed_mean, y)]
        assert np.mean(hit) > 0.95 - 5 * np.sqrt(0.95 * 0.05 / draws)
