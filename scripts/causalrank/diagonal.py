"""The diagonal of F G^T, decided exactly: where it is zero, tril(F G^T) is singular."""

from fractions import Fraction

import numpy as np


def zero_diagonal(F: np.ndarray, G: np.ndarray) -> np.ndarray:
    """Which f_i . g_i are exactly zero: booleans of shape (N,), for F and G of shape (N, D).

    Decided exactly: a sum is zero for certain when no product has two nonzero factors, nonzero
    for certain when all such products have one sign or the computed sum exceeds its rounding
    error, and is otherwise summed as fractions. Products that underflow are not zero.
    """
    overlap = (F != 0) & (G != 0)
    negative = np.signbit(F) ^ np.signbit(G)
    zero = ~overlap.any(axis=1)
    mixed = (overlap & negative).any(axis=1) & (overlap & ~negative).any(axis=1)
    for i in np.flatnonzero(mixed):
        with np.errstate(over="ignore", invalid="ignore"):
            products = F[i] * G[i]
            error = 2 * len(products) * (np.finfo(float).eps * np.abs(products).sum() + 5e-324)
            told = abs(products.sum()) > error
        if not told:
            pairs = zip(F[i].tolist(), G[i].tolist(), strict=True)
            zero[i] = sum(Fraction(f) * Fraction(g) for f, g in pairs) == 0
    return zero
