"""Means over what was drawn, seeds and tasks, with 95 % intervals of normal theory."""

import numpy as np
from scipy.special import stdtrit

from .estimate import Estimate


def mean_over_seeds(values: np.ndarray) -> Estimate:
    """The mean of values of shape (seeds,) and its half-width, t_{n-1, 0.975} s / sqrt(n).

    With one seed the half-width is NaN.
    """
    n = len(values)
    if n < 2:
        return Estimate(float(values.mean()), float("nan"))
    half = stdtrit(n - 1, 0.975) * values.std(ddof=1) / np.sqrt(n)
    return Estimate(float(values.mean()), float(half))


def crossed_mean(values: np.ndarray) -> Estimate:
    """The mean of values of shape (seeds, tasks), both drawn and crossed, and its half-width.

    With y_st = m + a_s + b_t + e_st, all independent, the variance of the mean is
    var(a) / S + var(b) / T + var(e) / (S T). The variance of the S row means over S, plus that of
    the T column means over T, has this expectation and var(e) / (S T) once more: it errs on the
    safe side. The quantile is Student's with min(S, T) - 1 degrees of freedom. With one seed or one
    task the half-width is NaN.
    """
    if min(values.shape) < 2:
        return Estimate(float(values.mean()), float("nan"))
    of_rows, of_columns = (values.mean(axis=axis).var(ddof=1) for axis in (1, 0))
    variance = of_rows / values.shape[0] + of_columns / values.shape[1]
    quantile = stdtrit(min(values.shape) - 1, 0.975)
    return Estimate(float(values.mean()), float(quantile * np.sqrt(variance)))
