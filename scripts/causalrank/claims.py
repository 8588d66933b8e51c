"""A claim's verdict: a statistic of measured values against the number that was published."""

import numpy as np

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


def judge(
    measured: float, expected: float, tolerance: float, relation: str, values: np.ndarray
) -> str:
    """The verdict.

    `equal`, `at_least` and `at_most` compare `measured` with `expected`, with `tolerance` to spare;
    `within_members` asks whether `expected` lies in the range of `values`, shape (n,), widened by
    `tolerance`, the half unit of the last published digit.
    """
    if np.isnan(measured):
        return UNDETERMINED
    holds = {
        "equal": abs(measured - expected) <= tolerance,
        "at_least": measured >= expected - tolerance,
        "at_most": measured <= expected + tolerance,
        "within_members": values.min() - tolerance <= expected <= values.max() + tolerance,
    }
    return HOLDS if holds[relation] else FAILS
