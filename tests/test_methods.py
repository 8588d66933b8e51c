"""Which method is believed, on matrices whose singular values are known otherwise."""

import numpy as np
import pytest

from causalrank.extremes import extremes
from causalrank.methods import against_dense, best, power
from causalrank.semiseparable import semiseparable
from causalrank.spectrum import NOTHING, RESOLVED

SUMS = ("nuclear_norm", "nuclear_norm_error", "effective_rank", "effective_rank_error")
UNKNOWN = np.full(40, np.nan)


def structured(F: np.ndarray, G: np.ndarray, **sums: float) -> dict[str, float]:
    A = semiseparable(F, G)
    found = extremes(A, np.random.default_rng(0).standard_normal(A.N))
    names = ("log10_sigma_max", "log10_sigma_min", "log10_condition", "log10_frobenius_norm")
    names += ("stable_rank", "residual_max", "residual_min", "rounding_min")
    return {name: getattr(found, name) for name in names} | dict.fromkeys(SUMS, np.nan) | sums


def all_ones(N: int = 40) -> tuple[np.ndarray, dict[str, float]]:
    """Singular values 1 / (2 sin((2 j - 1) pi / (4 N + 2))), and what the engine finds."""
    sigma = 1 / (2 * np.sin((2 * np.arange(1, N + 1) - 1) * np.pi / (4 * N + 2)))
    return sigma, structured(np.ones((N, 1)), np.ones((N, 1)))


def test_of_two_methods_the_one_with_the_smaller_error_says_sigma_min():
    sigma, found = all_ones()
    exact = found | {"residual_min": 1e-15, "rounding_min": 0.0}
    spectrum, method = best(sigma, exact, low_rank=False)
    assert method == "gesdd, lanczos" and spectrum.nuclear_norm == pytest.approx(sigma.sum())
    assert spectrum.sigma_min == pytest.approx(sigma[-1], rel=1e-12)
    wrong = found | {"residual_min": 1e-9, "log10_sigma_min": 7.0}
    spectrum, method = best(sigma, wrong, low_rank=False)
    assert method == "gesdd" and spectrum.sigma_min == sigma[-1]


def test_an_end_that_is_not_resolved_stays_empty():
    _, found = all_ones()
    spectrum, method = best(UNKNOWN, found, low_rank=False)
    assert method == "lanczos" and spectrum.log10_condition and spectrum.effective_rank != 1.0
    for name in ("residual_min", "rounding_min"):
        spectrum, _ = best(UNKNOWN, found | {name: 2 * RESOLVED}, low_rank=False)
        assert spectrum.sigma_max and spectrum.sigma_min is spectrum.log10_condition is None
    spectrum, _ = best(UNKNOWN, found | {"residual_max": 2 * RESOLVED}, low_rank=False)
    assert spectrum.frobenius_norm == pytest.approx(np.sqrt(40 * 41 / 2))
    assert spectrum.sigma_max is spectrum.stable_rank is None


def test_sums_are_those_that_were_counted():
    _, found = all_ones()
    sums = {"nuclear_norm": 3.0, "nuclear_norm_error": 0.5, "effective_rank": 7.0}
    spectrum, method = best(UNKNOWN, found | sums | {"effective_rank_error": 1.0}, low_rank=False)
    assert method == "lanczos, inertia"
    largest = 10 ** found["log10_sigma_max"]
    assert (spectrum.nuclear_norm, spectrum.effective_rank) == (3.0 * largest, 7.0)


def test_low_rank_is_singular_and_nothing_is_nothing():
    sigma = np.array([2.0, 1.0, 1e-17])
    spectrum, method = best(sigma, {}, low_rank=True)
    assert method == "qr, gesdd"
    assert spectrum.sigma_min == 0.0 and spectrum.log10_condition == np.inf
    assert best(np.zeros(3), {}, low_rank=True)[0].log10_condition is None
    assert best(UNKNOWN, {}, low_rank=False) == (NOTHING, "")


def test_methods_side_by_side():
    sigma, found = all_ones()
    dense, other, difference, smallest, allowance = against_dense(sigma, found)
    assert dense == pytest.approx(other, abs=1e-10)
    assert max(difference, smallest) < allowance < 1e-10
    assert against_dense(UNKNOWN, found) == (None, found["log10_condition"], None, None, None)
    beyond = found | {"log10_condition": 20.0, "log10_sigma_min": -19.0}
    assert against_dense(sigma, beyond)[3:] == (None, None)


def test_powers_that_no_double_holds_are_none():
    assert power(2.0) == 100.0 and power(-np.inf) == 0.0
    assert power(309.0) is None and power(-320.0) is None
