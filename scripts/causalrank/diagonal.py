"""The diagonal of F G^T, decided exactly: where it is zero, tril(F G^T) is singular."""

from fractions import Fraction

import numpy as np

BLOCK = 2**14
"""Rows decided at a time."""


def zero_diagonal(F: np.ndarray, G: np.ndarray) -> np.ndarray:
    """Which f_i . g_i are exactly zero: booleans of shape (N,), for F and G of shape (N, D).

    Decided exactly: a sum is zero for certain when no product has two nonzero factors, nonzero
    for certain when all such products have one sign or the computed sum exceeds its rounding
    error, and is otherwise summed as fractions. Products that underflow are not zero.
    """
    return np.concatenate(
        [_zeros(F[a : a + BLOCK], G[a : a + BLOCK]) for a in range(0, len(F), BLOCK)]
    )


def _zeros(F: np.ndarray, G: np.ndarray) -> np.ndarray:
    overlap = (F != 0) & (G != 0)
    zero = ~overlap.any(axis=1)
    if min(F.min(), G.min()) >= 0:
        return zero
    negative = np.signbit(F) ^ np.signbit(G)
    mixed = np.flatnonzero((overlap & negative).any(axis=1) & (overlap & ~negative).any(axis=1))
    with np.errstate(over="ignore", invalid="ignore"):
        products = F[mixed] * G[mixed]
        moduli = np.abs(products).sum(axis=1)
        error = 2 * F.shape[1] * (np.finfo(float).eps * moduli + 5e-324)
        told = np.abs(products.sum(axis=1)) > error
    for i in mixed[~told]:
        pairs = zip(F[i].tolist(), G[i].tolist(), strict=True)
        zero[i] = sum(Fraction(f) * Fraction(g) for f, g in pairs) == 0
    return zero


def cancelling(F: np.ndarray, G: np.ndarray) -> np.ndarray:
    """Which computed f_i . g_i may be wrong by more than a millionth: booleans of shape (N,).

    The rounding error of a sum of D products is at most D eps times the sum of their moduli.
    """
    blocks = range(0, len(F), BLOCK)
    return np.concatenate([_cancelling(F[a : a + BLOCK], G[a : a + BLOCK]) for a in blocks])


def _cancelling(F: np.ndarray, G: np.ndarray) -> np.ndarray:
    products = F * G
    error = F.shape[1] * np.finfo(float).eps * np.abs(products).sum(axis=1)
    return error >= 1e-6 * np.abs(products.sum(axis=1))
