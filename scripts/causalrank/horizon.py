"""The precision horizon: from which length on a causal matrix is numerically singular."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .extremes import smallest_singular_value
from .krylov import largest_singular_values
from .precision import FORMATS
from .semiseparable import Semiseparable
from .spectrum import RESOLVED

TOLERANCE = 1e-4
"""At which Lanczos stops: a condition number that close to 1 / eps is at it."""


@dataclass(frozen=True)
class Horizon:
    """The smallest N with a condition number of at least 1 / eps; None if beyond `searched`."""

    N: int | None
    searched: int


def log10_condition(A: Semiseparable) -> float:
    """log10 of A's condition number: infinite if it is singular, NaN if not known to RESOLVED."""
    if A.zeros.any():
        return np.inf
    start = np.random.Generator(np.random.PCG64(A.N)).standard_normal(A.N)
    large = largest_singular_values(A.product, A.transposed_product, start, tolerance=TOLERANCE)
    small = smallest_singular_value(A, start, TOLERANCE)
    if not large.residuals[0] + small.residual + small.rounding <= RESOLVED:
        return np.nan
    return float(large.log10[0]) - small.log10


def horizons(condition: Callable[[int], float], longest: int) -> dict[str, Horizon]:
    """The horizon of each format, for `condition`, which gives log10 of the condition number at N.

    The first N tokens make the leading principal submatrix, so the condition number does not fall
    as N grows: sigma_max does not, being a norm, and neither does that of the inverse, whose
    leading submatrix is the inverse of the leading one, for a triangular matrix. So the length is
    doubled until the condition number is past, and then found by interpolation, since its logarithm
    grows about linearly: regula falsi, where an end that stays counts half (the Illinois method,
    Dowell and Jarratt 1971), by bisection where the logarithm is infinite. This holds without row
    normalization, and with it: the rows of the first N tokens do not change. A condition number
    that is NaN ends the search of a format that has not been found by then.
    """
    found: dict[str, Horizon] = {}
    known = {0: 0.0}

    def value(N: int) -> float:
        if N not in known:
            known[N] = condition(N)
        return known[N]

    for name, fmt in sorted(FORMATS.items(), key=lambda item: item[1].bits):
        ceiling = -np.log10(fmt.epsilon)
        low, high = 0, min(1, longest)
        while high < longest and value(high) < ceiling:
            low, high = high, min(2 * high, longest)
        if high == 0 or not value(high) >= ceiling:
            known_to = low if high == 0 or np.isnan(value(high)) else longest
            found[name] = Horizon(None, known_to)
            continue
        below, above, last = value(low) - ceiling, value(high) - ceiling, None
        while high - low > 1:
            middle = (low + high) // 2
            if above < np.inf:
                step = round(below / (below - above) * (high - low))
                middle = min(max(low + step, low + 1), high - 1)
            error = value(middle) - ceiling
            if np.isnan(error):
                break
            if error < 0:
                low, below, above = middle, error, above / 2 if last == "low" else above
            else:
                high, above, below = middle, error, below / 2 if last == "high" else below
            last = "low" if error < 0 else "high"
        found[name] = Horizon(high if high - low == 1 else None, low if high - low > 1 else longest)
    return found
