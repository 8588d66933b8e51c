"""Proved enclosures of a small causal matrix's extremal singular values, by ball arithmetic.

For a symmetric positive semidefinite H with eigenvalues l_1 >= l_2 >= ... and t_p = tr H^p,

    (t_2p / t_p)^(1/p) <= l_1 <= t_2p^(1/2p),

since t_2p is at most l_1^p t_p, and at least l_1^2p. Squaring H again and again closes the gap as
fast as (l_2 / l_1)^p falls. With H = A^T A this encloses sigma_max, with that of A^-1 sigma_min. No
iteration, start vector or structured product is involved: it can judge those that use them.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from flint import arb, arb_mat, ctx

BITS = 256
WIDTH = 1e-18
"""The relative width at which squaring stops: below a double's precision."""
SQUARINGS = 40


@contextmanager
def _precision(bits: int) -> Iterator[None]:
    before, ctx.prec = ctx.prec, bits
    try:
        yield
    finally:
        ctx.prec = before


def _causal_matrix(F: np.ndarray, G: np.ndarray) -> arb_mat:
    """tril(F G^T), its entries within balls."""
    full = arb_mat(F.tolist()) * arb_mat(G.T.tolist())
    N = len(F)
    return arb_mat([[full[i, j] if j <= i else 0 for j in range(N)] for i in range(N)])


def _largest_eigenvalue(H: arb_mat) -> tuple[arb, arb]:
    """A lower and an upper bound, as balls around each."""
    power, trace = 1, sum((H[i, i] for i in range(H.nrows())), arb(0))
    for _ in range(SQUARINGS):
        doubled = sum((entry * entry for entry in H.entries()), arb(0))
        low = (doubled / trace) ** (arb(1) / power)
        high = doubled ** (arb(1) / (2 * power))
        if high - low < low * WIDTH:
            return low, high
        H, trace, power = H * H, doubled, 2 * power
    raise ArithmeticError(f"the enclosure is still wide after {SQUARINGS} squarings")


def _outward(low: arb, high: arb) -> np.ndarray:
    bounds = float(low.lower()), float(high.upper())
    return np.nextafter(bounds, (-np.inf, np.inf))


def enclosed_extremes(F: np.ndarray, G: np.ndarray) -> np.ndarray:
    """Bounds on sigma_max and sigma_min of tril(F G^T): [[low, high], [low, high]], as doubles.

    Time grows as N^3: for D = 64, some ten seconds at N = 256. Raises ZeroDivisionError for a
    singular matrix, and ArithmeticError where BITS do not suffice.
    """
    with _precision(BITS):
        A = _causal_matrix(F, G)
        inverse = A.inv()
        low, high = _largest_eigenvalue(A.transpose() * A)
        inverse_low, inverse_high = _largest_eigenvalue(inverse.transpose() * inverse)
        return np.array(
            [
                _outward(low.sqrt(), high.sqrt()),
                _outward(1 / inverse_high.sqrt(), 1 / inverse_low.sqrt()),
            ]
        )
