"""The precision horizon: from which length on a causal matrix is numerically singular."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .krylov import largest_singular_values
from .semiseparable import semiseparable

FORMATS = {
    "float64": 2.0**-52,
    "float32": 2.0**-23,
    "float16": 2.0**-10,
    "bfloat16": 2.0**-7,
}
"""eps of each format: the distance from 1 to the next number."""


TOLERANCE = 1e-6
"""Of the singular values: a condition number that close to 1 / eps is at it."""


@dataclass(frozen=True)
class Horizon:
    """The smallest N with a condition number of at least 1 / eps; None if beyond `searched`."""

    N: int | None
    searched: int


def log10_condition(F: np.ndarray, G: np.ndarray, normalization: str) -> float:
    """log10 of the condition number of tril(F G^T), row-normalized or not; inf if singular."""
    A = semiseparable(F, G)
    if A.zeros.any():
        return np.inf
    if normalization == "row":
        A = A.row_normalized()
    start = np.random.Generator(np.random.PCG64(len(F))).standard_normal(len(F))
    large, small = (
        largest_singular_values(*pair, start, tolerance=TOLERANCE)
        for pair in ((A.product, A.transposed_product), (A.solve, A.transposed_solve))
    )
    return float(large.log10[0] + small.log10[0])


def horizons(condition: Callable[[int], float], longest: int) -> dict[str, Horizon]:
    """The horizon of each format, for `condition`, which gives log10 of the condition number at N.

    The first N tokens make the leading principal submatrix, so the condition number does not fall
    as N grows: sigma_max does not, being a norm, and neither does that of the inverse, whose
    leading submatrix is the inverse of the leading one, for a triangular matrix. So the length is
    doubled until the condition number is past, and then found by bisection and, since its
    logarithm grows about linearly, interpolation in turns. This holds without row normalization,
    and with it: the rows of the first N tokens do not change.
    """
    found: dict[str, Horizon] = {}
    known: dict[int, float] = {}

    def value(N: int) -> float:
        if N not in known:
            known[N] = condition(N)
        return known[N]

    for name, eps in sorted(FORMATS.items(), key=lambda item: -item[1]):
        ceiling = -np.log10(eps)
        low, high = 0, 1
        while value(high) < ceiling and high < longest:
            low, high = high, min(2 * high, longest)
        if value(high) < ceiling:
            found[name] = Horizon(None, longest)
            continue
        interpolate = True
        while high - low > 1:
            middle = (low + high) // 2
            if interpolate and low and value(high) < np.inf:
                share = (ceiling - value(low)) / (value(high) - value(low))
                middle = min(max(low + round(share * (high - low)), low + 1), high - 1)
            low, high = (low, middle) if value(middle) >= ceiling else (middle, high)
            interpolate = not interpolate
        found[name] = Horizon(high, longest)
    return found
