"""The closed forms of the all-ones causal matrix against LAPACK, mpmath and elementary bounds."""

import mpmath
import numpy as np
import pytest

from causalrank.baselines import (
    all_ones_condition_number,
    all_ones_singular_values,
    all_ones_stable_rank,
    cesaro_squared_frobenius_norm,
    shuffled,
)
from causalrank.mixing import factored

EPS = np.finfo(float).eps
# sin's condition number x cot x is at most 1 on (0, pi/2), so pi, two products and quotients, sin
# (1 ulp) and the reciprocal come to less than 8 units of eps / 2.
CLOSED_FORM = 4 * EPS


@pytest.mark.parametrize("N", [1, 2, 5, 9])
def test_all_ones_singular_values_against_mpmath(N):
    with mpmath.workdps(40):
        ones = mpmath.matrix(np.tri(N).tolist())
        expected = [float(s) for s in mpmath.svd_r(ones, compute_uv=False)]
    np.testing.assert_allclose(all_ones_singular_values(N), expected, rtol=CLOSED_FORM)


@pytest.mark.parametrize("N", [3, 64, 257])
def test_all_ones_singular_values_against_lapack(N):
    # Weyl: LAPACK errs by about N eps sigma_1.
    sigma = np.linalg.svd(np.tri(N), compute_uv=False)
    np.testing.assert_allclose(all_ones_singular_values(N), sigma, rtol=0, atol=N * EPS * sigma[0])


@pytest.mark.parametrize("N", [1, 2, 10, 4096, 10**6])
def test_all_ones_stable_rank_between_its_series(N):
    # 2 N (N + 1) sin(x)^2 with x = pi / (4 N + 2) and x^2 (1 - x^2 / 3) <= sin(x)^2 <= x^2.
    x = np.pi / (4 * N + 2)
    above = np.pi**2 / 8 * (1 - 1 / (2 * N + 1) ** 2)
    slack = 1 + 4 * CLOSED_FORM
    assert above * (1 - x * x / 3) / slack <= all_ones_stable_rank(N) <= above * slack


@pytest.mark.parametrize("N", [1, 2, 10, 4096, 10**6])
def test_all_ones_condition_number_is_close_to_4N_over_pi(N):
    # cos(2 x) / sin(x) with x = pi / (4 N + 2) lies between (1 - 2 x^2) / x and 1 / x.
    x = np.pi / (4 * N + 2)
    slack = 1 + 4 * CLOSED_FORM
    assert (1 - 2 * x * x) / x / slack <= all_ones_condition_number(N) <= slack / x


@pytest.mark.parametrize("N", [1, 2, 100, 500])
def test_cesaro_squared_frobenius_norm_is_harmonic(N):
    # A sum of N positive terms, each of a few roundings: N + 4 units of eps / 2 or fewer.
    expected = float(mpmath.harmonic(N))
    ones = np.ones((N, 1))
    cesaro = factored(ones, ones, "causal", "row")
    np.testing.assert_allclose(cesaro_squared_frobenius_norm(N), expected, rtol=(N + 4) * EPS)
    np.testing.assert_allclose((cesaro**2).sum(), expected, rtol=(N + 4) * EPS)


def test_shuffling_keeps_rows_and_the_unmasked_spectrum():
    F, G = np.random.default_rng(0).standard_normal((2, 30, 3))
    generator = np.random.default_rng(1)
    f, g = shuffled(F, G, generator)
    for before, after in ((F, f), (G, g)):
        assert sorted(map(tuple, before)) == sorted(map(tuple, after))
        assert not np.array_equal(before, after)
    pairs = {tuple(row) for row in np.hstack([F, G])} & {tuple(row) for row in np.hstack([f, g])}
    assert len(pairs) < 10  # queries and keys are shuffled apart: about one pair stays
    unmasked = [np.linalg.svd(a @ b.T, compute_uv=False) for a, b in ((F, G), (f, g))]
    np.testing.assert_allclose(*unmasked, rtol=0, atol=30 * EPS * unmasked[0][0])
