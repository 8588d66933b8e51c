"""Rounding against numpy's float32 and against integer arithmetic on the bits of a double."""

import struct

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from causalrank.precision import FORMATS, rounded

doubles = st.floats(allow_nan=False)
# Doubles whose exponent a narrow format can hold, where a random double rarely falls.
near = st.builds(
    lambda sign, exponent, fraction: sign * 2.0**exponent * (1 + fraction / 2**52),
    st.sampled_from([-1.0, 1.0]),
    st.integers(-152, 128),
    st.one_of(
        st.integers(0, 2**52 - 1),
        st.builds(lambda x, s: (x << s) % 2**52, st.integers(0, 1023), st.integers(20, 45)),
    ),
)


def by_integers(x: float, bits: int, min_exponent: int, max_exponent: int) -> float:
    """x rounded once, to nearest and ties to even, by shifting the integer significand."""
    word = struct.unpack("<Q", struct.pack("<d", x))[0]
    sign, biased, fraction = word >> 63, word >> 52 & 2047, word & (2**52 - 1)
    if biased == 2047:
        return x
    significand, exponent = (fraction | 2**52, biased - 1075) if biased else (fraction, -1074)
    lowest = max(exponent + significand.bit_length() - bits, min_exponent - bits + 1)
    if (shift := lowest - exponent) > 0:
        half, rest = 1 << (shift - 1), significand & ((1 << shift) - 1)
        significand >>= shift
        significand += rest > half or (rest == half and significand & 1)
        exponent = lowest
    too_large = significand << max(exponent + 1074, 0) >= 1 << (max_exponent + 1 + 1074)
    magnitude = float("inf") if too_large else float(significand) * 2.0**exponent
    return -magnitude if sign else magnitude


def same_bits(x, y) -> bool:
    return np.asarray(x).tobytes() == np.asarray(y).tobytes()


@given(st.one_of(doubles, near))
@example(5e-324)
@example(-0.0)
@example(float("inf"))
@example(2.0**-150)  # half of the smallest subnormal float32: ties to zero
@example(np.nextafter(2.0**-150, 1))
@example(3.4028235677973366e38)  # half an ulp above the largest float32: ties to infinity
@example(np.nextafter(3.4028235677973366e38, 0))
@example(1.0000000596046448)  # 1 + 2^-24: ties to 1
@example(1.0000001788139343)  # 1 + 3 * 2^-24: ties upwards
def test_float32_is_numpys(x):
    with np.errstate(over="ignore", under="ignore"):
        assert same_bits(rounded(np.array([x]), "float32"), np.float64([np.float32(x)]))


@pytest.mark.filterwarnings("ignore:overflow")
@given(st.one_of(doubles, near))
@example(1 + 2.0**-8)  # tie, to even: 1
@example(1 + 3 * 2.0**-8)  # tie, to even: 1 + 2^-6
@example(2.0**-134)  # half of the smallest subnormal bfloat16
@example(2.0**-127 * 1.01)
@example((2 - 2.0**-8) * 2.0**127)  # half an ulp above the largest bfloat16
@example(1.7976931348623157e308)
def test_bfloat16_by_integers(x):
    expected = by_integers(x, bits=8, min_exponent=-126, max_exponent=127)
    assert same_bits(rounded(np.array([x]), "bfloat16"), np.array([expected]))


@given(st.one_of(doubles, near, near.map(lambda x: np.sign(x) * abs(x) ** 0.125)))
@example(65519.99999999999)  # below half an ulp above the largest float16
@example(65520.0)  # that half: ties to infinity
@example(2.0**-25)  # half of the smallest subnormal float16: ties to zero
@example(3 * 2.0**-25)
@example(1 + 2.0**-11 + 2.0**-40)  # not through float32
def test_float16_is_numpys(x):
    with np.errstate(over="ignore", under="ignore"):
        assert same_bits(rounded(np.array([x]), "float16"), np.float64([np.float16(np.float64(x))]))


@given(st.one_of(doubles, near))
def test_the_integer_reference_is_right_for_float32(x):
    with np.errstate(over="ignore", under="ignore"):
        assert same_bits(by_integers(x, 24, -126, 127), np.float64(np.float32(x)))


def test_bfloat16_is_rounded_once_and_not_through_float32():
    x = np.array([1 + 2.0**-8 + 2.0**-40])
    assert rounded(x, "bfloat16")[0] == 1 + 2.0**-7
    assert rounded(rounded(x, "float32"), "bfloat16")[0] == 1.0


@pytest.mark.parametrize("name", ["float32", "bfloat16", "float16"])
def test_rounding_again_changes_nothing_and_keeps_order(name):
    x = np.sort(np.random.default_rng(0).standard_normal((50, 20)) ** 9, axis=None)
    once = rounded(x, name)
    assert once.dtype == np.float64
    assert (once[1:] >= once[:-1]).all()
    assert same_bits(rounded(once, name), once)
    fmt = FORMATS[name]
    slack = fmt.epsilon / 2 * np.maximum(np.abs(x), 2.0**fmt.min_exponent)
    assert (np.abs(once - x) <= slack)[np.isfinite(once)].all()
    assert (np.abs(x[np.isinf(once)]) > (2 - fmt.epsilon) * 2.0**fmt.max_exponent).all()


def test_float64_stays():
    x = np.random.default_rng(0).standard_normal((3, 4))
    assert same_bits(rounded(x, "float64"), x)


@pytest.mark.parametrize("name", ["float64", "float32", "float16"])
def test_format_is_numpys(name):
    info = np.finfo(name)
    fmt = FORMATS[name]
    assert fmt.epsilon == info.eps
    assert (fmt.min_exponent, fmt.max_exponent) == (info.minexp, info.maxexp - 1)
