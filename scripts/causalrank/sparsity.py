"""Approximations that keep some entries of a mixing matrix, or damp them."""

import numpy as np


def window(A: np.ndarray, width: int, mask: str) -> np.ndarray:
    """A within a sliding window, zero elsewhere, shape (N, N).

    Under the causal mask a token keeps the last `width` tokens, itself among them; without a mask
    those at most width / 2 away on either side (Beltagy et al. 2020, section 3.1).
    """
    last, first = (0, 1 - width) if mask == "causal" else (width // 2, -(width // 2))
    return np.triu(np.tril(A, last), first)


def top_k(A: np.ndarray, k: int) -> np.ndarray:
    """The k entries of largest modulus of each row, zero elsewhere, shape (N, N).

    Gupta et al. 2021. Entries that equal the k-th are kept, so a row of equal entries stays whole.
    """
    if k >= len(A):
        return A.copy()
    size = np.abs(A)
    threshold = np.partition(size, -k, axis=1)[:, -k, None]
    return np.where(size >= threshold, A, 0.0)


def decay(A: np.ndarray, gamma: float) -> np.ndarray:
    """A_ij gamma^|i - j|, shape (N, N): the decay of Sun et al. 2023, on either side of i."""
    places = np.arange(len(A))
    return A * (gamma**places)[np.abs(places[:, None] - places)]
