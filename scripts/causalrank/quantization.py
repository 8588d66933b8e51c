"""Rounding of each row of a matrix to a few evenly spaced levels."""

import numpy as np


def quantized(A: np.ndarray, bits: int) -> np.ndarray:
    """Entries rounded to the nearest of 2^bits - 1 multiples of a row's spacing, shape (N, N).

    The spacing is the row's largest modulus over 2^(bits - 1) - 1 (Dettmers et al. 2022, section
    2.1, by rows): zeros stay zeros, and no entry changes by more than half a spacing. Ties go to
    even multiples. One bit is the sign, which nonnegative rows, as those of a softmax, do not use:
    for them 4 bits are zero and 7 levels above it. Raises ValueError for fewer than two bits.
    """
    if bits < 2:
        raise ValueError(f"{bits} bits leave zero alone")
    levels = 2 ** (bits - 1) - 1
    largest = np.abs(A).max(axis=1, keepdims=True)
    # An entry over the largest first: that ratio is at most one, however small the row.
    ratio = np.divide(A, largest, out=np.zeros_like(A), where=largest > 0)
    return np.rint(ratio * levels) * (largest / levels)
