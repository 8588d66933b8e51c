"""A claim's verdict: a statistic of measured values against the number that was published."""

import numpy as np
from scipy.special import stdtrit

HOLDS, FAILS, UNDETERMINED = "holds", "fails", "undetermined"


def ranks(x: np.ndarray) -> np.ndarray:
    """Ranks from 0, ties sharing their mean; shape (n,)."""
    _, inverse, counts = np.unique(x, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts + 1) / 2)[inverse]


def trend(values: np.ndarray, against: np.ndarray) -> float:
    """Spearman's rank correlation of the mean value at each level with the level.

    `values` and `against` have shape (n,). NaN for fewer than two levels or equal means.
    """
    levels = np.unique(against)
    means = np.array([values[against == level].mean() for level in levels])
    if len(levels) < 2 or np.ptp(means) == 0:
        return float("nan")
    return float(np.corrcoef(ranks(levels), ranks(means))[0, 1])


def measure(values: np.ndarray, statistic: str, against: np.ndarray | None = None) -> float:
    """The statistic of values of shape (n,); NaN if there are none or one is NaN.

    `share_nonzero` is the fraction of values that are not zero; `trend` needs `against`, (n,).
    """
    if len(values) == 0 or np.isnan(values).any():
        return float("nan")
    if statistic == "trend":
        return trend(values, against)
    statistics = {
        "mean": np.mean,
        "median": np.median,
        "min": np.min,
        "max": np.max,
        "max_abs": lambda x: np.abs(x).max(),
        "share_nonzero": lambda x: np.count_nonzero(x) / len(x),
    }
    return float(statistics[statistic](values))


def prediction_interval(values: np.ndarray) -> tuple[float, float]:
    """Where one more normal draw falls with probability 0.95, given draws of shape (n,), n > 1.

    mean +- t_{n-1, 0.975} s sqrt(1 + 1 / n) (Geisser 1993, section 2.1). The range of n draws
    would be no such interval: one more falls outside with probability 2 / (n + 1).
    """
    n = len(values)
    half = stdtrit(n - 1, 0.975) * values.std(ddof=1) * np.sqrt(1 + 1 / n)
    return float(values.mean() - half), float(values.mean() + half)


def judge(
    measured: float, expected: float, tolerance: float, relation: str, values: np.ndarray
) -> str:
    """The verdict.

    `equal`, `at_least` and `at_most` compare `measured` with `expected`, with `tolerance` to spare;
    `one_more_member` asks whether `expected` could be one more of `values`, shape (n,): whether it
    lies in their prediction interval, widened by `tolerance`, the half unit of its last digit.
    """
    if np.isnan(measured):
        return UNDETERMINED
    if relation == "one_more_member":
        if len(values) < 2:
            return UNDETERMINED
        low, high = prediction_interval(values)
        return HOLDS if low - tolerance <= expected <= high + tolerance else FAILS
    holds = {
        "equal": abs(measured - expected) <= tolerance,
        "at_least": measured >= expected - tolerance,
        "at_most": measured <= expected + tolerance,
    }
    return HOLDS if holds[relation] else FAILS
