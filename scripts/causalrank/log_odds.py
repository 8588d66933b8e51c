"""Log-odds of attention against a reference column: what of the scores a softmax keeps.

Rows of a softmax forget a constant each: log(a_ij / a_ir) = s_ij - s_ir wherever the mask allows
both j and r. With all of them allowed, the matrix of log-odds is L = S (I - e_r 1^T). That
projection has rank N - 1, so rank S - 1 <= rank L <= rank S: log-odds show the rank of the scores,
but for one, whatever rank the attention has.
"""

import numpy as np

REFERENCE = 0
"""The one column that the causal mask allows in every row."""


def log_odds(A: np.ndarray) -> np.ndarray:
    """log(a_ij / a_i0), shape (M, N), for rows of attention of shape (M, N).

    NaN where the mask allows no entry or where an entry underflowed: neither has log-odds.
    """
    known = (A > 0) & (A[:, [REFERENCE]] > 0)
    logarithms = np.log(np.where(known, A, 1.0))
    reference = np.log(np.where(A[:, REFERENCE] > 0, A[:, REFERENCE], 1.0))
    return np.where(known, logarithms - reference[:, None], np.nan)


def log_odds_error(A: np.ndarray, S: np.ndarray) -> float:
    """The largest |log(a_ij / a_i0) - (s_ij - s_i0)| on the support; A and S are (M, N)."""
    L = log_odds(A)
    return float(np.nanmax(np.abs(L - (S - S[:, [REFERENCE]]))))


def supported_block(A: np.ndarray, mask: str) -> np.ndarray:
    """A large rectangle of A, shape (N, N), that is in the mask's support, reference included.

    All of A without a mask; under the causal one the rows from N // 2 on and their first
    N // 2 + 1 columns.
    """
    if mask == "bidirectional":
        return A
    half = len(A) // 2
    return A[half:, : half + 1]
