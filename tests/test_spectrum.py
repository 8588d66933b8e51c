"""Singular values against high precision, and what is read off spectra that are known."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from causalrank.mixing import factored, normalized_factors
from causalrank.spectrum import (
    decay_indices,
    factored_singular_values,
    numerical_rank,
    numpy_tolerance,
    singular_values,
    summarize,
)

EPS = np.finfo(float).eps
numbers = st.floats(-10, 10).map(lambda x: round(x, 3))
squares = st.integers(1, 7).flatmap(lambda N: arrays(float, (N, N), elements=numbers))
spectra = st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=12).map(
    lambda x: np.array(sorted(x, reverse=True))
)


def by_mpmath(A: np.ndarray) -> np.ndarray:
    with mpmath.workdps(60):
        values = mpmath.svd_r(mpmath.matrix(A.tolist()), compute_uv=False)
        return np.array([float(value) for value in values])


def weyl(A: np.ndarray) -> float:
    """The absolute error of LAPACK's singular values, by Weyl's inequality: about N eps sigma_1."""
    return len(A) * EPS * np.linalg.norm(A, 2)


@pytest.mark.parametrize(
    "A",
    [
        1.0 / (np.arange(8)[:, None] + np.arange(8) + 1),
        np.vander(np.linspace(-1, 1, 9)),
        np.tri(10) * np.logspace(0, -30, 10),
        np.tri(6),
    ],
    ids=["hilbert", "vandermonde", "graded", "ones"],
)
def test_singular_values_against_mpmath(A):
    np.testing.assert_allclose(singular_values(A), by_mpmath(A), rtol=0, atol=weyl(A))


@given(squares, st.randoms(use_true_random=False), st.floats(-8, 8))
def test_singular_values_are_invariant(A, random, log_scale):
    sigma, tolerance = singular_values(A), 2 * weyl(A)
    order = random.sample(range(len(A)), len(A))
    scale = 10.0**log_scale
    for B, factor in ((A.T, 1.0), (A[order], 1.0), (A[:, order], 1.0), (-scale * A, scale)):
        difference = singular_values(B) / factor - sigma
        assert np.abs(difference).max() <= tolerance + EPS * sigma[0]


@pytest.mark.parametrize("normalization", ["none", "row"])
@pytest.mark.parametrize(("N", "D"), [(2, 1), (6, 2), (9, 8), (60, 5)])
def test_factored_singular_values(N, D, normalization):
    F, G = np.random.default_rng(N).uniform(0, 1, (2, N, D)) ** 4
    left, right = (F, G) if normalization == "none" else normalized_factors(F, G)
    got = factored_singular_values(left, right)
    # Householder QR and the products are backward stable: N D eps of the factors' norms.
    atol = 2 * N * D * EPS * np.linalg.norm(left) * np.linalg.norm(right)
    dense = singular_values(factored(F, G, "bidirectional", normalization))
    np.testing.assert_allclose(got, dense, rtol=0, atol=atol)
    assert (got[D:] == 0).all() and len(got) == N
    if N < 10:
        A = mpmath.matrix(left.tolist()) * mpmath.matrix(right.tolist()).T
        expected = [float(s) for s in mpmath.svd_r(A, compute_uv=False)]
        np.testing.assert_allclose(got, expected, rtol=0, atol=atol)


@pytest.mark.parametrize("N", [1, 4, 7, 100])
def test_identity_has_every_rank_N(N):
    s = summarize(np.ones(N))
    assert (s.sigma_max, s.sigma_min, s.log10_condition) == (1.0, 1.0, 0.0)
    assert s.stable_rank == s.nuclear_norm == N
    assert s.frobenius_norm == pytest.approx(math.sqrt(N))
    # exp magnifies the relative error of log N, whose sum has N terms.
    assert s.effective_rank == pytest.approx(N, rel=(N + 8) * EPS * max(1, math.log(N)), abs=0)
    assert s.cumulative_at_quarter == max(1, N // 4) / N


@pytest.mark.parametrize("N", [2, 5, 512])
def test_rank_one(N):
    s = summarize(np.array([3.0] + [0.0] * (N - 1)))
    assert (s.stable_rank, s.effective_rank, s.cumulative_at_quarter) == (1.0, 1.0, 1.0)
    assert (s.sigma_max, s.frobenius_norm, s.nuclear_norm) == (3.0, 3.0, 3.0)
    assert s.sigma_min is None and s.log10_condition is None


def test_zero_matrix_has_no_ratio():
    s = summarize(np.zeros(5))
    assert (s.sigma_max, s.sigma_min, s.frobenius_norm, s.nuclear_norm) == (0.0,) * 4
    ratios = (s.log10_condition, s.stable_rank, s.effective_rank, s.cumulative_at_quarter)
    assert ratios == (None,) * 4


@pytest.mark.filterwarnings("error")
@given(spectra)
def test_summary_against_mpmath(sigma):
    s, N = summarize(sigma), len(sigma)
    with mpmath.workdps(40):
        exact = [mpmath.mpf(x) for x in sigma.tolist()]
        total = sum(exact)
        stable = sum(x * x for x in exact) / exact[0] ** 2
        p = [x / total for x in exact]
        expected = (
            mpmath.sqrt(sum(x * x for x in exact)),
            stable,
            mpmath.exp(-sum(x * mpmath.log(x) for x in p)),
            total,
            sum(exact[: max(1, N // 4)]) / total,
        )
        log10_condition = mpmath.log10(exact[0] / exact[-1])
    got = (s.frobenius_norm, s.stable_rank, s.effective_rank, s.nuclear_norm)
    # Sums of N positive terms; the entropy, below log 12 < 3, is magnified by exp.
    rtol = 3 * (N + 8) * EPS
    np.testing.assert_allclose((*got, s.cumulative_at_quarter), [*map(float, expected)], rtol=rtol)
    assert s.log10_condition == pytest.approx(float(log10_condition), rel=4 * EPS, abs=2 * EPS)
    assert (s.sigma_max, s.sigma_min) == (sigma[0], sigma[-1])


@given(spectra)
def test_stable_rank_is_at_most_effective_rank_at_most_N(sigma):
    """sum sigma^2 / sigma_1^2 <= sum sigma / sigma_1 <= exp(entropy) <= N."""
    s, N = summarize(sigma), len(sigma)
    slack = 1 + 3 * (N + 8) * EPS
    between = s.nuclear_norm / s.sigma_max
    assert 1 <= s.stable_rank <= between * slack
    assert between <= s.effective_rank * slack <= N * slack**2


@pytest.mark.parametrize(("factor", "resolved"), [(1.0, False), (1.01, True), (0.5, False)])
def test_sigma_min_is_told_above_N_eps(factor, resolved):
    smallest = factor * 4 * EPS
    s = summarize(np.array([1.0, 0.5, 0.25, smallest]) * 8)
    assert (s.sigma_min is not None, s.log10_condition is not None) == (resolved, resolved)
    if resolved:
        assert s.log10_condition == pytest.approx(-math.log10(smallest))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("sigma", [[1e300, 1e-300], [1e-290, 1e-310], [1.0, 5e-324]])
def test_a_vanishing_share_adds_nothing_to_the_effective_rank(sigma):
    s = summarize(np.array(sigma))
    assert (s.effective_rank, s.stable_rank) == (1.0, 1.0)


@pytest.mark.parametrize("rank", [1, 3, 10])
@pytest.mark.parametrize("seed", range(3))
def test_numerical_rank_is_numpys(rank, seed):
    B, C = np.random.default_rng(seed).integers(-9, 10, (2, 10, rank)).astype(float)
    A = B @ C.T
    tolerance = numpy_tolerance(10, EPS)
    assert numerical_rank(singular_values(A), tolerance) == np.linalg.matrix_rank(A) == rank


def test_numerical_rank_counts_what_lies_above():
    sigma = np.array([4.0, 2.0, 1.0, 0.0])
    tolerances, expected = [0.0, 0.2, 0.25, 0.5, 0.9, 1.0], [3, 3, 2, 1, 1, 0]
    assert [numerical_rank(sigma, t) for t in tolerances] == expected
    assert numerical_rank(sigma, np.array(tolerances)).tolist() == expected
    assert numerical_rank(np.zeros(3), 1e-4) == 0


@pytest.mark.parametrize(
    ("N", "epsilon", "tolerance"),
    [
        (512, 2.0**-52, 2.0**-43),
        (512, 2.0**-23, 2.0**-14),
        (127, 2.0**-7, 127 / 128),
        (128, 2.0**-7, None),
        (512, 2.0**-7, None),
    ],
)
def test_numpy_tolerance(N, epsilon, tolerance):
    assert numpy_tolerance(N, epsilon) == tolerance


@pytest.mark.parametrize("N", [1, 2, 3, 10, 63, 64, 65, 512, 4096, 100_000])
def test_decay_indices(N):
    indices = decay_indices(N)
    assert indices[0] == 1 and indices[-1] == N
    assert (np.diff(indices) > 0).all()
    assert len(indices) <= 128
    assert (indices == N + 1 - indices[::-1]).all()
    # Neighbours are at most one geometric step, or one, apart.
    step = N ** (1 / max(1, min(N, 64) - 1))
    assert (indices[1:] <= np.maximum(indices[:-1] + 1, (indices[:-1] + 0.5) * step + 0.5)).all()
