"""Counts of singular values, and the bounds that follow, against all singular values."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from causalrank.baselines import all_ones_singular_values
from causalrank.feature_maps import FEATURE_MAPS
from causalrank.inertia import Counts, counts_above, effective_rank, nuclear_norm
from causalrank.semiseparable import semiseparable
from causalrank.spectrum import summarize

EPS = np.finfo(float).eps
LEVELS = 10.0 ** -(np.arange(1, 37) / 6)


def factors(name: str, N: int, d: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    q, k = np.random.default_rng(seed).standard_normal((2, N, d))
    return FEATURE_MAPS[name](q), FEATURE_MAPS[name](k)


def unsure(sigma: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Levels so near a singular value that rounding may count it or not.

    Rounding moves a level by eps sigma_max^2 / tau times a factor for the N / 32 eliminations.
    """
    slack = len(sigma) * EPS * sigma[0] ** 2 / levels
    return (np.abs(sigma[:, None] - levels) <= slack).any(axis=0)


@given(
    st.sampled_from(["elu_plus_one", "exp", "relu", "identity"]),
    st.integers(1, 90),
    st.integers(1, 6),
    st.sampled_from([None, "scalar", "per feature"]),
    st.booleans(),
    st.sampled_from([1.0, 1e-140, 1e140]),
    st.integers(0, 10**6),
)
def test_counts_are_those_of_the_singular_values(name, N, d, decay, normalized, scale, seed):
    F, G = factors(name, N, d, seed)
    rng = np.random.default_rng(seed)
    gates = {"scalar": rng.uniform(0.3, 1, N), "per feature": rng.uniform(0.3, 1, (N, d))}
    A = semiseparable(F, G, gates.get(decay))
    if normalized and name != "identity":
        A = A.row_normalized()
    sigma = np.linalg.svd(A.dense(), compute_uv=False)
    if sigma[0] == 0.0:
        return
    levels = LEVELS * sigma[0]
    exponent = int(np.frexp(sigma[0])[1])
    if not normalized:
        shift = int(np.log2(scale)) * 2
        A = semiseparable(np.ldexp(F, shift // 2), np.ldexp(G, shift // 2), gates.get(decay))
        got = counts_above(A, np.ldexp(levels, -exponent), exponent + shift)
    else:
        got = counts_above(A, np.ldexp(levels, -exponent), exponent)
    sure = ~unsure(sigma, levels)
    np.testing.assert_array_equal(got[sure], (sigma[:, None] > levels).sum(axis=0)[sure])


def test_counts_of_the_all_ones_matrix():
    """Against the closed form, at an N whose dense singular values would take hours."""
    N = 20000
    ones, sigma = np.ones((N, 1)), all_ones_singular_values(N)
    exponent = int(np.frexp(sigma[0])[1])
    levels = 10.0 ** -(np.arange(1, 8) / 2) * sigma[0]
    got = counts_above(semiseparable(ones, ones), np.ldexp(levels, -exponent), exponent)
    assert not unsure(sigma, levels).any()
    np.testing.assert_array_equal(got, (sigma[:, None] > levels).sum(axis=0))


def test_rows_that_no_double_compares_are_refused():
    F = np.array([[1e300], [1e-300], [1e300]])
    with pytest.raises(OverflowError, match="differ too much"):
        counts_above(semiseparable(F, F[::-1]), np.array([0.5]), -900)


spectra = st.lists(st.floats(1e-9, 1.0), min_size=1, max_size=30).map(
    lambda x: np.array(sorted([1.0, *x], reverse=True))
)


@given(spectra)
def test_bounds_hold_the_sums(sigma):
    counts = Counts(LEVELS, (sigma[:, None] > LEVELS).sum(axis=0), len(sigma))
    spectrum = summarize(sigma)
    for estimate, truth in (
        (nuclear_norm(counts), spectrum.nuclear_norm),
        (effective_rank(counts), spectrum.effective_rank),
    ):
        assert abs(estimate.value - truth) <= estimate.error * (1 + 1e-9) + 1e-12


@given(spectra, st.integers(0, 10**6))
def test_bounds_hold_whatever_the_places_within_the_bins(sigma, seed):
    """The extremes of the entropy are sought at the bins' ends; no spectrum in them goes beyond."""
    counts = Counts(LEVELS, (sigma[:, None] > LEVELS).sum(axis=0), len(sigma))
    lower, upper, numbers = counts.bins()
    rng, estimate = np.random.default_rng(seed), effective_rank(counts)
    for _ in range(20):
        ends = rng.random(len(numbers)) < 0.5
        places = rng.uniform(lower, upper) if rng.random() < 0.5 else np.where(ends, lower, upper)
        other = np.repeat(places, numbers)
        p = other[other > 0] / other.sum()
        assert abs(np.exp(-(p @ np.log(p))) - estimate.value) <= estimate.error * (1 + 1e-9) + 1e-12


def test_bounds_narrow_with_the_levels():
    sigma = all_ones_singular_values(3000) / all_ones_singular_values(3000)[0]
    errors = []
    for a_decade in (3, 6, 12, 24):
        levels = 10.0 ** -(np.arange(1, 6 * a_decade + 1) / a_decade)
        counts = Counts(levels, (sigma[:, None] > levels).sum(axis=0), len(sigma))
        errors.append(effective_rank(counts).error)
        # Relatively, a bin is as wide as its levels' ratio: so is the sum's interval.
        half = (10 ** (1 / a_decade) - 1) / (10 ** (1 / a_decade) + 1)
        assert nuclear_norm(counts).error <= 1.01 * half * nuclear_norm(counts).value
    assert errors == sorted(errors, reverse=True)


def test_a_level_that_is_a_leading_singular_value():
    """The first chunk alone has the singular value tau; S is exactly singular there."""
    rng = np.random.default_rng(0)
    F, G = np.zeros((2, 64, 33))
    F[:32, :32] = G[:32, :32] = np.eye(32)
    F[32:, :32] = rng.standard_normal((32, 32))
    F[32:, 32] = G[32:, 32] = 0.1
    A = semiseparable(F, G)
    sigma = np.linalg.svd(A.dense(), compute_uv=False)
    assert np.abs(sigma - 1.0).min() > 0.01
    assert counts_above(A, np.array([1.0]), 0)[0] == (sigma > 1.0).sum()


def entropy_rank(sigma: np.ndarray) -> float:
    p = sigma[sigma > 0] / sigma.sum()
    return float(np.exp(-(p @ np.log(p))))


def test_the_bin_of_the_common_level_is_split_or_in_between():
    """One bin with most of the values: the extremes of the entropy are not at its ends."""
    levels = 10.0 ** -(np.arange(1, 73) / 12)
    numbers = np.zeros(74, dtype=int)
    numbers[[0, 4, 5, 25]] = 1, 6, 1664, 34
    counts = Counts(levels, np.cumsum(numbers)[1:-1], int(numbers.sum()))
    estimate = effective_rank(counts)
    low, high = estimate.value - estimate.error, estimate.value + estimate.error
    lower, upper, _ = counts.bins()
    split = [
        entropy_rank(np.concatenate([np.repeat(ends, others), np.full(t, b), np.full(1664 - t, a)]))
        for t in range(0, 1665, 8)
        for ends, others, a, b in [(upper[[0, 4]], [1, 6], lower[5], upper[5])]
        for ends, others in [(np.append(ends, lower[25]), [*others, 34])]
    ]
    between = [entropy_rank(np.repeat(np.clip(L, lower, upper), numbers)) for L in upper[2:30]]
    assert low <= min(split) * (1 + 1e-12) and max(between) <= high * (1 + 1e-12)
    assert min(split) < 1672  # the ends alone give 1673.08 and more
