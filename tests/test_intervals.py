"""Intervals against scipy, against exact expectations, and by coverage."""

import numpy as np
import pytest
from scipy import stats

from causalrank.intervals import crossed_mean, mean_over_seeds


def test_mean_over_seeds_is_students_interval():
    values = np.array([1.0, 4.0, 2.0, 7.0, 3.0])
    found = mean_over_seeds(values)
    low, high = stats.t.interval(0.95, 4, loc=values.mean(), scale=stats.sem(values))
    assert found.value - found.error == pytest.approx(low, rel=1e-12)
    assert found.value + found.error == pytest.approx(high, rel=1e-12)
    single = mean_over_seeds(np.array([2.0]))
    assert single.value == 2.0 and np.isnan(single.error)


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
