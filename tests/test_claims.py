"""Statistics of claims against scipy and numpy, and every relation on both sides of its edge."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from causalrank.claims import judge, measure, prediction_interval, ranks, trend

VALUES = np.array([3.0, -7.0, 0.0, 2.0])


@given(st.lists(st.integers(-4, 4), min_size=1, max_size=20))
def test_ranks_against_scipy(x):
    np.testing.assert_array_equal(ranks(np.array(x)) + 1, stats.rankdata(x))


@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(0, 6)), min_size=2, max_size=30))
def test_trend_is_spearman_of_the_level_means(pairs):
    levels = sorted({level for _, level in pairs})
    groups = [[value for value, at in pairs if at == level] for level in levels]
    means = [float(Fraction(sum(group), len(group))) for group in groups]
    got = trend(np.array([p[0] for p in pairs], float), np.array([p[1] for p in pairs]))
    if len(set(means)) < 2:
        assert np.isnan(got)
    else:
        # Half-integers are exact; sums of n products, a root and a quotient, on both sides.
        tolerance = 2 * (len(levels) + 4) * np.finfo(float).eps
        assert got == pytest.approx(stats.spearmanr(levels, means).statistic, abs=tolerance)


@pytest.mark.parametrize(
    ("statistic", "expected"),
    [
        ("mean", -0.5),
        ("median", 1.0),
        ("min", -7.0),
        ("max", 3.0),
        ("max_abs", 7.0),
        ("share_nonzero", 0.75),
    ],
)
def test_statistic(statistic, expected):
    assert measure(VALUES, statistic) == expected
    assert np.isnan(measure(np.array([1.0, np.nan]), statistic))
    assert np.isnan(measure(np.empty(0), statistic))


def test_trend_is_a_statistic():
    rising = measure(np.array([1.0, 3.0, 2.0, 9.0]), "trend", np.array([0, 1, 1, 2]))
    assert rising == pytest.approx(1.0)
    assert np.isnan(measure(np.array([1.0, np.nan]), "trend", np.array([0, 1])))
    assert np.isnan(measure(np.array([1.0, 2.0]), "trend", np.array([0, 0])))


@pytest.mark.parametrize(
    ("relation", "measured", "expected", "verdict"),
    [
        ("equal", 2.5, 2.0, "holds"),
        ("equal", 1.5, 2.0, "holds"),
        ("equal", 2.75, 2.0, "fails"),
        ("equal", 1.25, 2.0, "fails"),
        ("at_least", 1.5, 2.0, "holds"),
        ("at_least", 99.0, 2.0, "holds"),
        ("at_least", 1.25, 2.0, "fails"),
        ("at_most", 2.5, 2.0, "holds"),
        ("at_most", -99.0, 2.0, "holds"),
        ("at_most", 2.75, 2.0, "fails"),
    ],
)
def test_judge(relation, measured, expected, verdict):
    assert judge(measured, expected, 0.5, relation, VALUES) == verdict


@pytest.mark.parametrize("side", [0, 1])
def test_one_more_member_at_the_edges_of_the_interval(side):
    edge = prediction_interval(VALUES)[side]
    outwards = 0.5 * (2 * side - 1)
    for beyond, verdict in ((0.99, "holds"), (1.01, "fails"), (-1.0, "holds")):
        expected = edge + beyond * outwards
        assert judge(-0.5, expected, 0.5, "one_more_member", VALUES) == verdict


def test_one_member_has_no_spread():
    assert judge(1.0, 1.0, 0.5, "one_more_member", np.array([1.0])) == "undetermined"


@pytest.mark.parametrize("n", [2, 5, 20])
def test_prediction_interval_against_scipy(n):
    x = np.random.default_rng(n).normal(3.0, 2.0, n)
    spread = stats.sem(x) * np.sqrt(n + 1)
    expected = stats.t.interval(0.95, n - 1, loc=x.mean(), scale=spread)
    np.testing.assert_allclose(prediction_interval(x), expected, rtol=1e-9)  # scipy's quantiles


@pytest.mark.parametrize("n", [2, 5])
def test_one_more_draw_falls_into_the_interval_19_times_of_20(n):
    draws = np.random.default_rng(0).standard_normal((4000, n + 1))
    bounds = np.array([prediction_interval(x) for x in draws[:, :n]])
    inside = (bounds[:, 0] <= draws[:, n]) & (draws[:, n] <= bounds[:, 1])
    assert abs(inside.mean() - 0.95) < 5 * np.sqrt(0.95 * 0.05 / 4000)


@pytest.mark.parametrize("relation", ["equal", "at_least", "at_most", "one_more_member"])
def test_nothing_measured_is_undetermined(relation):
    assert judge(float("nan"), 0.0, 1.0, relation, np.empty(0)) == "undetermined"


@pytest.mark.parametrize(
    ("relation", "verdict"), [("equal", "fails"), ("at_least", "fails"), ("at_most", "holds")]
)
def test_minus_infinity_is_a_value(relation, verdict):
    """log |det| of a singular matrix."""
    assert judge(-np.inf, 0.0, 1.0, relation, np.array([-np.inf])) == verdict
