"""Intervals against scipy's distributions."""

import numpy as np
import pytest
from scipy import stats

from causalrank.interval import clopper_pearson, mean_interval


@pytest.mark.parametrize("n", [2, 5, 50])
def test_mean_interval_is_students(n):
    values = np.random.default_rng(n).standard_normal((n, 3))
    mean, half = mean_interval(values)
    low, high = stats.t.interval(0.95, n - 1, loc=values.mean(axis=0), scale=stats.sem(values))
    np.testing.assert_allclose([mean - half, mean + half], [low, high], rtol=1e-10)


def test_one_value_has_no_interval():
    mean, half = mean_interval(np.array([[1.0, 2.0]]))
    assert mean.tolist() == [1.0, 2.0] and np.isnan(half).all()


@pytest.mark.parametrize("draws", [1, 7, 400])
def test_clopper_pearson_is_scipys(draws):
    for failures in {0, 1, draws // 3, draws - 1, draws}:
        expected = stats.binomtest(failures, draws).proportion_ci(0.95, method="exact")
        np.testing.assert_allclose(
            clopper_pearson(failures, draws), [expected.low, expected.high], rtol=1e-9, atol=1e-15
        )
