"""Feature maps against high precision, and what they declare of their signs against reality."""

import mpmath
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from causalrank.feature_maps import FEATURE_MAPS

EPS = np.finfo(float).eps
REFERENCE = {
    "elu_plus_one": lambda x: x + 1 if x > 0 else mpmath.exp(x),
    "exp": mpmath.exp,
    "relu": lambda x: max(x, 0),
    "softplus": lambda x: mpmath.log1p(mpmath.exp(x)),
    "squared_relu": lambda x: max(x, 0) ** 2,
    "identity": lambda x: x,
}
names = pytest.mark.parametrize("name", FEATURE_MAPS)


def test_every_map_has_a_reference():
    assert set(REFERENCE) == set(FEATURE_MAPS)


@names
@given(x=st.floats(-740, 700))
@example(x=0.0)
@example(x=-0.0)
@example(x=5e-324)
@example(x=-1e-17)
@example(x=40.0)
def test_value(name, x):
    # exp and log1p within 1 ulp each, log1p's condition number at most 1, a sum of positive
    # terms: below 8 units of eps / 2, and of the smallest double where the value is subnormal.
    with mpmath.workdps(400):
        expected = float(REFERENCE[name](mpmath.mpf(x)))
    got = FEATURE_MAPS[name](np.array([x]))[0]
    np.testing.assert_allclose(got, expected, rtol=4 * EPS, atol=8 * 5e-324)


@pytest.mark.parametrize("name", ["elu_plus_one", "softplus"])
def test_derivative_is_continuous_at_zero(name):
    # The second derivative is at most 1, so difference quotients of step h err by at most h / 2.
    h = 2.0**-20
    below, zero, above = FEATURE_MAPS[name](np.array([-h, 0.0, h]))
    assert (above - zero) / h == pytest.approx((zero - below) / h, abs=h)


@names
@given(x=st.floats(-700, 700))
def test_signs_are_as_declared(name, x):
    phi = FEATURE_MAPS[name]
    value = phi(np.array([x]))[0]
    assert value >= 0 or not phi.nonnegative
    assert value > 0 or not phi.strictly_positive


@names
def test_signs_are_declared_where_they_are_known(name):
    phi = FEATURE_MAPS[name]
    value = phi(np.array([-1.0]))[0]
    assert phi.nonnegative == (value >= 0)
    assert phi.strictly_positive == (value > 0)


@names
def test_shape(name):
    phi = FEATURE_MAPS[name]
    assert phi(np.zeros((2, 3, 5))).shape == (2, 3, phi.feature_dim(5))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("name", "entries", "worst"),
    [
        ("exp", [1.0, 709.0, 710.5, 800.0], "800"),
        ("exp", [709.79], "709.79"),
        ("squared_relu", [-1e300, 2e200, 1e200], r"2e\+200"),
    ],
)
def test_overflow_names_the_entry(name, entries, worst):
    with pytest.raises(OverflowError, match=f"overflows float64 at the entry {worst}$"):
        FEATURE_MAPS[name](np.array(entries))


@pytest.mark.filterwarnings("error")
def test_the_largest_entry_that_exp_holds():
    assert np.isfinite(FEATURE_MAPS["exp"](np.array([-1e5, 709.78]))).all()
