"""Numbers beyond the range of a double: a mantissa and a binary exponent for each."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Scaled:
    """mantissa * 2^exponent, entry by entry: a float64 and an integer array of one shape.

    Mantissas keep some distance from a double's limits; they need not lie in [1/2, 1).
    """

    mantissa: np.ndarray
    exponent: np.ndarray

    def over_power(self, exponent: int) -> np.ndarray:
        """The entries over 2^exponent, as doubles; what leaves their range is zero or infinite."""
        with np.errstate(over="ignore", under="ignore"):
            return np.ldexp(self.mantissa, self.exponent - exponent)

    def reversed(self) -> "Scaled":
        """The same entries, the last row first."""
        return Scaled(self.mantissa[::-1], self.exponent[::-1])

    def largest_exponent(self) -> int:
        """The smallest e with all entries below 2^e in modulus; 0 if all are zero."""
        fraction, exponent = np.frexp(self.mantissa)
        exponent = (exponent + self.exponent)[fraction != 0]
        return int(exponent.max()) if exponent.size else 0

    def norm_over(self, other: "Scaled") -> float:
        """||self|| / ||other||, both of shape (N,); infinite beyond a double's range."""
        powers = self.largest_exponent(), other.largest_exponent()
        norms = [
            np.linalg.norm(x.over_power(e)) for x, e in zip((self, other), powers, strict=True)
        ]
        with np.errstate(over="ignore", under="ignore"):
            return float(np.ldexp(norms[0] / norms[1], powers[0] - powers[1]))

    def log2(self) -> np.ndarray:
        """Binary logarithms of the moduli; minus infinity for zeros."""
        with np.errstate(divide="ignore"):
            return np.log2(np.abs(self.mantissa)) + self.exponent


def row_dots(F: np.ndarray, G: np.ndarray) -> Scaled:
    """f_i . g_i, shape (N,), for F and G of shape (N, D), with neither overflow nor underflow.

    Each sum is scaled to its largest product; products below 2^-1022 of it do not count.
    """
    (f, f_exponent), (g, g_exponent) = np.frexp(F), np.frexp(G)
    products, exponents = f * g, f_exponent + g_exponent
    lowest = np.iinfo(exponents.dtype).min
    largest = np.where(products != 0, exponents, lowest).max(axis=1)
    largest[largest == lowest] = 0
    return Scaled(np.ldexp(products, exponents - largest[:, None]).sum(axis=1), largest)
