"""Statistics of claims against scipy and numpy, and every relation on both sides of its edge."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from causalrank.claims import judge, measure, ranks, trend

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
        ("within_members", 0.0, 3.5, "holds"),
        ("within_members", 0.0, 3.75, "fails"),
        ("within_members", 0.0, -7.5, "holds"),
        ("within_members", 0.0, -7.75, "fails"),
    ],
)
def test_judge(relation, measured, expected, verdict):
    assert judge(measured, expected, 0.5, relation, VALUES) == verdict


@pytest.mark.parametrize("relation", ["equal", "at_least", "at_most", "within_members"])
def test_nothing_measured_is_undetermined(relation):
    assert judge(float("nan"), 0.0, 1.0, relation, np.empty(0)) == "undetermined"


@pytest.mark.parametrize(
    ("relation", "verdict"), [("equal", "fails"), ("at_least", "fails"), ("at_most", "holds")]
)
def test_minus_infinity_is_a_value(relation, verdict):
    """log |det| of a singular matrix."""
    assert judge(-np.inf, 0.0, 1.0, relation, np.array([-np.inf])) == verdict
