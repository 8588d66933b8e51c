"""Mantissas with exponents against rational arithmetic."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from causalrank.scaled import Scaled, row_dots

EPS = np.finfo(float).eps
doubles = st.floats(allow_nan=False, allow_infinity=False)
exponents = st.integers(-5000, 5000)
sizes = st.integers(1, 5)


def value(mantissa: float, exponent: int) -> Fraction:
    return Fraction(float(mantissa)) * Fraction(2) ** int(exponent)


@given(arrays(float, 4, elements=doubles), arrays(np.int64, 4, elements=exponents), exponents)
def test_over_power(mantissa, exponent, power):
    """Exact, or rounded once where the result is subnormal; zero and infinite past that."""
    got = Scaled(mantissa, exponent).over_power(power)
    for m, e, x in zip(mantissa, exponent, got, strict=True):
        exact = value(m, e - power)
        if abs(exact) >= Fraction(2) ** 1024:
            assert x == math.copysign(math.inf, m)
        else:
            subnormal = abs(exact) < Fraction(2) ** -1022
            assert abs(Fraction(float(x)) - exact) <= (Fraction(2) ** -1075 if subnormal else 0)


@given(arrays(float, 4, elements=doubles), arrays(np.int64, 4, elements=exponents))
def test_largest_exponent(mantissa, exponent):
    e = Scaled(mantissa, exponent).largest_exponent()
    largest = max(abs(value(*pair)) for pair in zip(mantissa, exponent, strict=True))
    assert e == 0 if largest == 0 else Fraction(2) ** (e - 1) <= largest < Fraction(2) ** e


@pytest.mark.filterwarnings("error")
@given(arrays(float, 4, elements=doubles), arrays(np.int64, 4, elements=exponents))
def test_log2(mantissa, exponent):
    got = Scaled(mantissa, exponent).log2()
    for m, e, x in zip(mantissa, exponent, got, strict=True):
        if m == 0:
            assert x == -np.inf
        else:
            # Two roundings, of numbers that may be larger than their sum.
            fraction, own = math.frexp(abs(m))
            expected = math.log2(fraction) + (own + int(e))
            assert abs(x - expected) <= 2 * EPS * (abs(e) + 1100)


def test_reversed():
    got = Scaled(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[5, 6], [7, 8]])).reversed()
    assert got.mantissa.tolist() == [[3.0, 4.0], [1.0, 2.0]]
    assert got.exponent.tolist() == [[7, 8], [5, 6]]


@pytest.mark.filterwarnings("error")
@given(sizes.flatmap(lambda D: arrays(float, (2, 3, D), elements=doubles)))
def test_row_dots_neither_overflow_nor_underflow(factors):
    """D products and D - 1 sums are rounded, relative to the sum of moduli; what is dropped is
    below 2^-1074 of the largest product."""
    F, G = factors
    got = row_dots(F, G)
    assert (np.abs(got.mantissa) <= F.shape[1]).all()
    for f, g, m, e in zip(F.tolist(), G.tolist(), got.mantissa, got.exponent, strict=True):
        products = [Fraction(x) * Fraction(y) for x, y in zip(f, g, strict=True)]
        moduli = sum(map(abs, products))
        error = abs(value(m, e) - sum(products))
        assert error <= Fraction(len(f) * EPS) * moduli


def test_row_dots_past_a_doubles_range():
    F, G = np.array([[1e300, 1e-300], [5e-324, 0.0]]), np.array([[1e300, 1.0], [5e-324, 1.0]])
    got = row_dots(F, G)
    # log2 of the result has an ulp of about 2000.
    expected = [600 * math.log2(10), -2148]
    np.testing.assert_allclose(got.log2(), expected, rtol=2 * EPS)
