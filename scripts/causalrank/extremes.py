"""Both ends of a causal mixing matrix's spectrum, from the structured operator."""

import math
from dataclasses import dataclass

import numpy as np

from .krylov import TOLERANCE, SingularTriplets, largest_singular_values
from .semiseparable import Semiseparable

LOG10_2 = math.log10(2.0)


@dataclass(frozen=True)
class Extremes:
    """Logarithms of sigma_max, sigma_min and ||A||_F; -inf for zero. Residuals are relative.

    sigma_min is NaN where the diagonal cancels beyond double precision. residual_min is that of
    1 / sigma_min on A^-1, and `rounding_min` what the solves' own rounding may do to it (see
    `Semiseparable.rounding_of_solve`), which no residual shows: the relative error of sigma_min is
    about their sum. `leading` are the triplets that came with sigma_max, and may be more than one.
    """

    log10_sigma_max: float
    log10_sigma_min: float
    log10_frobenius_norm: float
    residual_max: float
    residual_min: float
    rounding_min: float
    leading: SingularTriplets

    @property
    def log10_condition(self) -> float:
        """log10 of sigma_max / sigma_min: infinite for a singular matrix."""
        return max(self.log10_sigma_max - self.log10_sigma_min, 0.0)

    @property
    def stable_rank(self) -> float:
        """||A||_F^2 / sigma_max^2."""
        return 10 ** (2 * (self.log10_frobenius_norm - self.log10_sigma_max))


@dataclass(frozen=True)
class Smallest:
    """log10 of sigma_min, and its relative errors: Lanczos' residual and the solves' rounding."""

    log10: float
    residual: float
    rounding: float


def smallest_singular_value(
    A: Semiseparable, start: np.ndarray, tolerance: float = TOLERANCE
) -> Smallest:
    """sigma_min by Lanczos on the inverse, from a random start vector of shape (N,).

    A zero on the diagonal makes it an exact zero, a diagonal that cancels leaves it NaN.
    """
    if A.zeros.any():
        return Smallest(-math.inf, 0.0, 0.0)
    if A.cancelling.any():
        return Smallest(math.nan, math.nan, math.nan)
    found = largest_singular_values(A.solve, A.transposed_solve, start, tolerance=tolerance)
    generator = np.random.Generator(np.random.PCG64(0))
    rounding = A.rounding_of_solve(A.solve(found.right[0]), generator)
    return Smallest(-float(found.log10[0]), float(found.residuals[0]), rounding)


def extremes(A: Semiseparable, start: np.ndarray, k: int = 1) -> Extremes:
    """The ends of A's spectrum, from a random start vector of shape (N,), and k leading triplets.

    The zero matrix has no condition number: its logarithm is NaN.
    """
    large = largest_singular_values(A.product, A.transposed_product, start, k)
    small = smallest_singular_value(A, start)
    return Extremes(
        float(large.log10[0]),
        small.log10,
        float(A.squared_frobenius_norm().log2()) / 2 * LOG10_2,
        float(large.residuals[0]),
        small.residual,
        small.rounding,
        large,
    )
