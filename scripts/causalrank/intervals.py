"""95 % intervals of a mean, of a difference, of a mean over two things drawn, of a probability."""

import numpy as np
from scipy.special import betaincinv, stdtrit

from .estimate import Estimate


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


def difference_interval(first: np.ndarray, last: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean of `last` minus that of `first`, independent draws along the first axis, and its half
    interval, by Welch (1947). NaN for one draw; without any variance the half-width is zero."""
    difference = last.mean(axis=0) - first.mean(axis=0)
    if min(len(first), len(last)) < 2:
        return difference, np.full(difference.shape, np.nan)
    parts = [x.var(axis=0, ddof=1) / len(x) for x in (first, last)]
    variance = parts[0] + parts[1]
    weights = parts[0] ** 2 / (len(first) - 1) + parts[1] ** 2 / (len(last) - 1)
    freedom = np.divide(variance**2, weights, out=np.ones_like(variance), where=weights > 0)
    return difference, stdtrit(freedom, 0.975) * np.sqrt(variance)


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


def clopper_pearson(failures: int, draws: int) -> tuple[float, float]:
    """The exact 95 % interval of a probability (Clopper and Pearson 1934)."""
    low = betaincinv(failures, draws - failures + 1, 0.025) if failures else 0.0
    high = betaincinv(failures + 1, draws - failures, 0.975) if failures < draws else 1.0
    return float(low), float(high)
