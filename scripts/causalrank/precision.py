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
"""Those that whole matrices are rounded to."""


def rounded(A: np.ndarray, name: str) -> np.ndarray:
    """A rounded to nearest, ties to even, subnormal numbers included, in one rounding.

    Same shape as A, float64. Entries beyond the format's range become infinite, as in hardware.
    """
    if name == "float64":
        return A
    p = PRECISIONS[name]
    exponent = np.maximum(np.frexp(A)[1] - 1, p.min_exponent)
    quantum = np.ldexp(1.0, exponent - (p.bits - 1))
    result = np.rint(A / quantum) * quantum
    largest = (2.0 - p.epsilon) * 2.0**p.max_exponent
    return np.where(np.abs(result) > largest, np.copysign(np.inf, A), result)
