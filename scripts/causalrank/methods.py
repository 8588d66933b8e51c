"""Which method is believed about a spectrum: all singular values, the structured engine, or both.

All singular values come with an absolute error of about N eps sigma_max, so they lose sigma_min;
the engine gives both ends with relative errors, and, where it was asked, sums by counting.
"""

from dataclasses import replace

import numpy as np

from .spectrum import NOTHING, RESOLVED, Spectrum, summarize

Structured = dict[str, float]
"""The fields of `extremes.Extremes` and the sums found for one matrix, by name; {} for none."""


def best(sigma: np.ndarray, found: Structured, low_rank: bool) -> tuple[Spectrum, str]:
    """What is known of a matrix, and by which methods.

    From its singular values, shape (N,), NaN if not computed, and from what the structured engine
    found. `low_rank` says that they come from factors with fewer columns than N.
    """
    if not np.isnan(sigma).any():
        spectrum, method = summarize(sigma), "gesdd"
        if low_rank:
            spectrum, method = _of_low_rank(spectrum), "qr, gesdd"
        if found and spectrum.sigma_max and _sharper(spectrum, found, len(sigma)):
            spectrum, method = replace(spectrum, **_ends(found)), "gesdd, lanczos"
        return spectrum, method
    if found:
        counted = not np.isnan(found["effective_rank"])
        return _from_extremes(found), "lanczos, inertia" if counted else "lanczos"
    return NOTHING, ""


def power(log10: float) -> float | None:
    """10^log10, None where no double holds it with all its digits."""
    with np.errstate(over="ignore", under="ignore"):
        value = float(10.0 ** np.float64(log10))
    subnormal = value < np.finfo(float).tiny and log10 > -np.inf
    return None if np.isinf(value) or subnormal else value


def _error_min(found: Structured) -> float:
    """The relative error of the structured sigma_min; infinite where there is none."""
    error = found["residual_min"] + found["rounding_min"]
    return error if np.isfinite(error) else np.inf


def _ends(found: Structured) -> dict[str, float | None]:
    """sigma_min and what rests on it; empty where it is not known to RESOLVED."""
    told = found["residual_max"] <= RESOLVED and _error_min(found) <= RESOLVED
    return {
        "sigma_min": power(found["log10_sigma_min"]) if told else None,
        "log10_condition": found["log10_condition"] if told else None,
    }


def _from_extremes(found: Structured) -> Spectrum:
    if not found["residual_max"] <= RESOLVED:
        return replace(NOTHING, frobenius_norm=power(found["log10_frobenius_norm"]))
    largest = power(found["log10_sigma_max"])
    sums = {}
    if largest is not None:
        sums = {name: found[name] * largest for name in ("nuclear_norm", "nuclear_norm_error")}
    return replace(
        NOTHING,
        **_ends(found),
        **sums,
        sigma_max=largest,
        frobenius_norm=power(found["log10_frobenius_norm"]),
        stable_rank=found["stable_rank"],
        effective_rank=found["effective_rank"],
        effective_rank_error=found["effective_rank_error"],
    )


def _sharper(spectrum: Spectrum, found: Structured, N: int) -> bool:
    """Whether the structured sigma_min is nearer the truth than that of all singular values.

    By Weyl's inequality the latter errs by N eps times the condition number, relatively.
    """
    if spectrum.log10_condition is None:
        return True
    return _error_min(found) <= N * np.finfo(float).eps * 10**spectrum.log10_condition


def _of_low_rank(spectrum: Spectrum) -> Spectrum:
    """That of F G^T with D < N columns: its smallest singular value is an exact zero."""
    if spectrum.sigma_max == 0.0:
        return spectrum
    return replace(spectrum, sigma_min=0.0, log10_condition=float("inf"))


def against_dense(sigma: np.ndarray, found: Structured) -> tuple[float | None, ...]:
    """What all singular values, (N,), say beside the structured ends.

    log10 of the condition number by either, the relative differences of sigma_max and sigma_min,
    and how large the latter may be; None where it says nothing, or sigma is NaN.
    By Weyl's inequality a dense sigma_min errs by N eps times the condition number, relatively: the
    allowance. From one on, the dense value says nothing.
    """
    if np.isnan(sigma).any() or sigma[0] == 0.0:
        return None, _ends(found)["log10_condition"], None, None, None
    with np.errstate(divide="ignore"):
        logs = np.log10(sigma[[0, -1]])
    allowance = power(found["log10_condition"] + np.log10(len(sigma) * np.finfo(float).eps))
    told = allowance is not None and allowance < 1.0
    other = np.array([found["log10_sigma_max"], found["log10_sigma_min"]])
    with np.errstate(invalid="ignore", over="ignore"):
        difference = np.abs(np.expm1(np.log(10.0) * (logs - other)))
    smallest = (float(difference[1]), allowance) if told else (None, None)
    structured_condition = _ends(found)["log10_condition"]
    return float(logs[0] - logs[1]), structured_condition, float(difference[0]), *smallest
