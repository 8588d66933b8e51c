"""Both ends of a causal mixing matrix's spectrum, from the structured operator."""

import math
from dataclasses import dataclass

import numpy as np

from .krylov import SingularTriplets, largest_singular_values
from .semiseparable import Semiseparable

LOG10_2 = math.log10(2.0)


@dataclass(frozen=True)
class Extremes:
    """Logarithms of sigma_max, sigma_min and ||A||_F; -inf for zero. Residuals are relative.

    sigma_min is NaN where the diagonal cancels beyond double precision. residual_min is that of
    1 / sigma_min on A^-1. `leading` are the triplets that came with sigma_max, and may be more than
    one.
    """

    log10_sigma_max: float
    log10_sigma_min: float
    log10_frobenius_norm: float
    residual_max: float
    residual_min: float
    leading: SingularTriplets

    @property
    def log10_condition(self) -> float:
        """log10 of sigma_max / sigma_min: infinite for a singular matrix."""
        return self.log10_sigma_max - self.log10_sigma_min

    @property
    def stable_rank(self) -> float:
        """||A||_F^2 / sigma_max^2."""
        return 10 ** (2 * (self.log10_frobenius_norm - self.log10_sigma_max))


def extremes(A: Semiseparable, start: np.ndarray, k: int = 1) -> Extremes:
    """The ends of A's spectrum, from a random start vector of shape (N,), and k leading triplets.

    A zero on the diagonal makes sigma_min an exact zero. The zero matrix has no condition
    number: its logarithm is NaN.
    """
    large = largest_singular_values(A.product, A.transposed_product, start, k)
    log10_min, residual_min = -np.inf, 0.0
    if not A.zeros.any():
        log10_min, residual_min = np.nan, np.nan
    if not (A.zeros | A.cancelling).any():
        small = largest_singular_values(A.solve, A.transposed_solve, start)
        log10_min, residual_min = -float(small.log10[0]), float(small.residuals[0])
    return Extremes(
        float(large.log10[0]),
        log10_min,
        float(A.squared_frobenius_norm().log2()) / 2 * LOG10_2,
        float(large.residuals.max()),
        residual_min,
        large,
    )
