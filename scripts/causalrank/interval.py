"""95 % intervals of a mean and of a probability."""

import numpy as np
from scipy.special import betaincinv, stdtrit


def mean_interval(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean over the first axis, of n values, and half the width of its 95 % interval.

    t_{n-1, 0.975} s / sqrt(n) (Student 1908): exact for normal values, and for n in the tens
    close to it for others. NaN for one value.
    """
    n = len(values)
    if n < 2:
        return values.mean(axis=0), np.full(values.shape[1:], np.nan)
    half = stdtrit(n - 1, 0.975) * values.std(axis=0, ddof=1) / np.sqrt(n)
    return values.mean(axis=0), half


def clopper_pearson(failures: int, draws: int) -> tuple[float, float]:
    """The exact 95 % interval of a probability (Clopper and Pearson 1934)."""
    low = betaincinv(failures, draws - failures + 1, 0.025) if failures else 0.0
    high = betaincinv(failures + 1, draws - failures, 0.975) if failures < draws else 1.0
    return float(low), float(high)
