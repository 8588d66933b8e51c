"""Levels counted, errors within half a spacing, and integers for comparison."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from causalrank.quantization import quantized

EPS = np.finfo(float).eps
values = st.builds(lambda x, e: x * 10.0**e, st.floats(-1, 1), st.integers(-40, 40))


@given(arrays(float, (3, 5), elements=values), st.sampled_from([2, 4, 8]))
def test_errors_are_half_a_spacing_and_zeros_stay(A, bits):
    A_hat = quantized(A, bits)
    largest = np.abs(A).max(axis=1, keepdims=True)
    half = largest / (2 ** (bits - 1) - 1) / 2
    # The ratio, its product with the levels, the spacing and the last product round once each.
    assert (np.abs(A_hat - A) <= half + 4 * EPS * largest).all()
    assert (A_hat[A == 0] == 0).all()
    for row in A_hat:
        assert len(set(row.tolist())) <= 2**bits - 1


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_nearest_multiple_by_fractions(bits):
    A = np.random.default_rng(bits).standard_normal((20, 30))
    levels = 2 ** (bits - 1) - 1
    for row, got in zip(A.tolist(), quantized(A, bits).tolist(), strict=True):
        spacing = max(map(abs, map(Fraction, row))) / levels
        nearest = [round(Fraction(x) / spacing) * spacing for x in row]
        np.testing.assert_allclose(got, [float(x) for x in nearest], rtol=2 * EPS)


def test_each_row_has_its_own_levels_however_small():
    A = np.array([[1.0, 0.5], [1e-300, 5e-301], [0.0, 0.0]])
    np.testing.assert_allclose(quantized(A, 2), [[1, 0], [1e-300, 0], [0, 0]], rtol=2 * EPS)


def test_one_bit_is_refused():
    with pytest.raises(ValueError, match="1 bits"):
        quantized(np.eye(2), 1)
