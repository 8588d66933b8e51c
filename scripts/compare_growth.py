"""Compare how -ln sigma_min grows with N, as measured, with the rate that the projections have."""

import argparse
import math
from collections.abc import Iterator

import no_garbage_collection  # noqa: F401

import numpy as np
import pandas as pd

from causalrank.feature_maps import FEATURE_MAPS
from causalrank.growth import fit_line, slope_excess
from whole_files import intact, write_csv

KEYS = ["source", "d", "feature_map"]
LARGEST_EXCESS = 0.01
"""Of the slope over the exponent, at the smallest N of a fit."""
FEWEST_SIZES = 3
SIZES = (*KEYS, "normalization", "N", "members", "resolved", "mean", "min", "max", "in_fit")
SIZES += ("doubling", "doubling_low", "doubling_high")
SLOPES = (*KEYS, "normalization", "N_from", "N_to", "points", "slope", "slope_low", "slope_high")
SLOPES += ("condition_slope", "condition_slope_low", "condition_slope_high", "exponent")
SLOPES += ("exponent_low", "exponent_high", "intervals_overlap", "pivot_N", "pivot", "reason")


def measured(spectrum: pd.DataFrame) -> pd.DataFrame:
    """Causal matrices with -ln sigma_min and ln of the condition number, NaN if not resolved.

    sigma_min may be below every double, so its logarithm comes from that of the condition number.
    """
    causal = spectrum[spectrum["mask"] == "causal"]
    causal = causal.astype({"sigma_max": float, "log10_condition": float})
    condition = math.log(10) * causal.log10_condition
    with np.errstate(divide="ignore"):
        table = causal.assign(condition=condition, smallest=condition - np.log(causal.sigma_max))
    unresolved = ~np.isfinite(table[["condition", "smallest"]]).all(axis=1)
    table.loc[unresolved, ["condition", "smallest"]] = np.nan
    return table


def grows(rate: pd.Series) -> bool:
    """Whether the inverse grows exponentially, by the whole interval of its exponent."""
    return rate.exponent_low > 0


def doubling(rate: pd.Series, N: int, normalization: str) -> tuple[float | None, ...]:
    """What ln of the condition number gains from N to 2 N, and that -+ one standard deviation.

    lambda N from sigma_min, with the variance N `variance`, and ln 2 from sigma_max, which is in
    proportion to N for nonnegative features that are not normalized; of others nothing is said.
    """
    nonnegative = FEATURE_MAPS[rate.feature_map].nonnegative
    if not (grows(rate) and normalization == "none" and nonnegative):
        return None, None, None
    gain, scatter = rate.exponent * N + math.log(2), math.sqrt(N * rate.variance)
    return gain, gain - scatter, gain + scatter


def in_fit(rate: pd.Series, normalization: str, N: np.ndarray) -> np.ndarray:
    """Which N a fit takes, for N of shape (n,)."""
    if not grows(rate):
        return np.zeros(len(N), dtype=bool)
    excess = slope_excess(rate.exponent, rate.variance, N, normalization == "row")
    return excess <= LARGEST_EXCESS


def cells(
    rates: pd.DataFrame, table: pd.DataFrame
) -> Iterator[tuple[pd.Series, str, pd.DataFrame]]:
    """(rate, normalization, matrices) wherever both tables have something to say."""
    groups = dict(list(table.groupby([*KEYS, "normalization"], sort=True)))
    for key, matrices in groups.items():
        rate = rates[(rates[KEYS] == list(key[:3])).all(axis=1)]
        if len(rate):
            yield rate.iloc[0], key[3], matrices


def sizes(rates: pd.DataFrame, table: pd.DataFrame) -> Iterator[tuple]:
    for rate, normalization, matrices in cells(rates, table):
        for N, members in matrices.groupby("N", sort=True):
            y = members.smallest
            whole = y.notna().all()
            values = (y.mean(), y.min(), y.max()) if whole else (None, None, None)
            fitted = bool(whole and in_fit(rate, normalization, np.array([float(N)]))[0])
            key = (*rate[KEYS], normalization, N, len(y), y.count())
            yield *key, *values, int(fitted), *doubling(rate, N, normalization)


def slopes(rates: pd.DataFrame, table: pd.DataFrame) -> Iterator[tuple]:
    for rate, normalization, matrices in cells(rates, table):
        resolved = matrices.groupby("N").smallest.transform(lambda y: y.notna().all())
        points = matrices[resolved & in_fit(rate, normalization, matrices.N.to_numpy(float))]
        if matrices.N.nunique() < FEWEST_SIZES:
            continue
        exponent = (rate.exponent, rate.exponent_low, rate.exponent_high)
        key = (*rate[KEYS], normalization)
        if points.N.nunique() < FEWEST_SIZES:
            reason = f"only {points.N.nunique()} N are resolved and large enough for a fit"
            yield *key, None, None, len(points), *[None] * 6, *exponent, None, None, None, reason
            continue
        N = points.N.to_numpy(float)
        line = fit_line(N, points.smallest.to_numpy())
        condition = fit_line(N, points.condition.to_numpy())
        overlap = line.low <= rate.exponent_high and rate.exponent_low <= line.high
        yield (
            *(*key, points.N.min(), points.N.max(), len(points)),
            *(line.slope, line.low, line.high, condition.slope, condition.low, condition.high),
            *(*exponent, int(overlap), line.N, line.y, ""),
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--growth", required=True, help="growth.csv")
    parser.add_argument("--spectrum", required=True, help="spectrum.csv")
    parser.add_argument("--sizes", required=True, help="to write: -ln sigma_min by N")
    parser.add_argument("--slopes", required=True, help="to write: the slopes")
    args = parser.parse_args()
    rates = pd.read_csv(intact(args.growth))
    # Members of a drawn source share an exponent, and are independent at every N.
    rates = rates[rates.member.isna() & (rates.decay == 1.0)]
    table = measured(pd.read_csv(intact(args.spectrum)))
    write_csv(args.sizes, SIZES, sizes(rates, table))
    write_csv(args.slopes, SLOPES, slopes(rates, table))


if __name__ == "__main__":
    main()
