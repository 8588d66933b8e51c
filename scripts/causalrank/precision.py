"""Rounding of float64 matrices to narrower formats, kept in float64."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Precision:
    """A binary floating-point format: significant bits, and exponents of its normal numbers."""

    bits: int
    min_exponent: int
    max_exponent: int

    @property
    def epsilon(self) -> float:
        """The distance from 1 to the next number."""
        return 2.0 ** (1 - self.bits)


FORMATS = {
    "float64": Precision(53, -1022, 1023),
    "float32": Precision(24, -126, 127),
    "float16": Precision(11, -14, 15),
    "bfloat16": Precision(8, -126, 127),
}
PRECISIONS = {name: FORMATS[name] for name in ("float64", "float32", "bfloat16")}
"""Those in which numerical ranks are measured."""


def rounded(A: np.ndarray, name: str) -> np.ndarray:
    """A rounded to nearest, ties to even, subnormal numbers included, in one rounding.

    Same shape as A, float64. Entries beyond the format's range become infinite, as in hardware.
    """
    if name == "float64":
        return A
    p = FORMATS[name]
    # The power of two below each entry, from its exponent bits; the format has none outside these.
    power = (np.abs(A).view(np.int64) & ~((1 << 52) - 1)).view(float)
    power = np.clip(power, 2.0**p.min_exponent, 2.0**p.max_exponent)
    # An entry's sum with this has as its last place the format's: one rounding, ties to even.
    shift = power * (1.5 * 2.0 ** (53 - p.bits))
    result = np.copysign((A + shift) - shift, A)
    largest = (2.0 - p.epsilon) * 2.0**p.max_exponent
    return np.where(np.abs(result) > largest, np.copysign(np.inf, A), result)
