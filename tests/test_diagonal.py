"""Zeros on the diagonal of F G^T against sums of fractions."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from causalrank.diagonal import zero_diagonal

TINY = np.full(3, 2.0**-537)  # its square is the smallest double
small = st.integers(-2, 2).map(float)
any_double = st.floats(allow_nan=False, allow_infinity=False)
entries = st.one_of(st.just(0.0), small, any_double, any_double.map(lambda x: x * 1e-300))


@given(st.data(), st.integers(1, 6), st.integers(1, 4))
def test_zero_diagonal_is_exact(data, N, D):
    elements = data.draw(st.sampled_from([small, entries]))
    F, G = (data.draw(arrays(float, (N, D), elements=elements)) for _ in range(2))
    exact = [
        sum(Fraction(x) * Fraction(y) for x, y in zip(f, g, strict=True))
        for f, g in zip(F.tolist(), G.tolist(), strict=True)
    ]
    assert zero_diagonal(F, G).tolist() == [total == 0 for total in exact]


@pytest.mark.parametrize(
    ("f", "g", "zero"),
    [
        ([0.0, 3.0], [5.0, 0.0], True),
        ([0.0, -0.0], [5.0, -1.0], True),
        ([1e-200, 0.0], [1e-200, 0.0], False),  # underflows to zero
        ([1e-200, 1e-200], [1e-200, -1e-200], True),  # underflows and cancels
        ([1e-200, 1e-200], [1e-200, -1.0000000000000002e-200], False),
        ([5e-324, 5e-324], [-0.5, 0.5], True),
        ([1.0, 1.0], [1.0, -1.0], True),
        ([1.0, 1.0, 1.0], [1e16, 1.0, -1e16], False),  # the sum rounds to zero
        ([0.1, 0.1, 0.1], [3.0, -2.0, -1.0], True),  # rounded products do not cancel
        (TINY * [1.5, 1.25, 0.25], TINY * [1, -1, -1], True),  # nor subnormal ones
        ([0.1, 1.0], [0.1, -0.010000000000000002], False),  # 0.1^2 rounds to the second
        ([1e200, 1e200], [1e200, -1e200], True),  # overflows and cancels
        ([1e200, 1e200, 1.0], [1e200, -1e200, 1.0], False),
        ([1e200, 1.0], [1e200, -1.0], False),
    ],
)
@pytest.mark.filterwarnings("error")
def test_zero_diagonal_at_the_edges_of_double_precision(f, g, zero):
    assert zero_diagonal(np.array([f]), np.array([g])).tolist() == [zero]
