"""Leading singular triplets against LAPACK and closed forms, and where a Krylov space ends."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from causalrank.baselines import all_ones_singular_values
from causalrank.feature_maps import FEATURE_MAPS
from causalrank.krylov import TOLERANCE, SingularTriplets, largest_singular_values
from causalrank.mixing import factored
from causalrank.scaled import Scaled
from causalrank.semiseparable import semiseparable

EPS = np.finfo(float).eps


def operator(A: np.ndarray, exponent: int = 0):
    """The functions of a dense matrix times 2^exponent."""

    def by(B: np.ndarray):
        return lambda x: Scaled(B @ x, np.full(len(B), exponent))

    return by(A), by(A.T)


def start_of(N: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(N)


def check(A: np.ndarray, got: SingularTriplets, exact: np.ndarray) -> None:
    """Values, vectors and residuals, in the dense matrix.

    Products round to N eps of sigma_1, and so does LAPACK; every step of Lanczos adds a rounding of
    that size, which its orthogonal vectors carry on to values and residuals.
    """
    k, slack = len(got.values), 4 * (len(A) + got.steps) * EPS * exact[0]
    V = got.right
    np.testing.assert_allclose(V @ V.T, np.eye(k), rtol=0, atol=4 * got.steps * EPS)
    values = np.ldexp(got.values, got.exponent)
    error = np.abs(values - exact[:k])
    assert (error <= got.residuals * values + slack).all()
    scaled_left = V @ A.T
    np.testing.assert_allclose(np.linalg.norm(scaled_left, axis=1), values, rtol=0, atol=slack)
    left = scaled_left / values[:, None]
    overlap = np.abs(left @ left.T - np.eye(k)) * np.minimum.outer(values, values)
    assert (overlap <= 2 * slack + (got.residuals * values).max()).all()
    residuals = np.linalg.norm(left @ A - values[:, None] * V, axis=1)
    assert (np.abs(residuals - got.residuals * values) <= slack * exact[0] / values).all()


@pytest.mark.parametrize("normalization", ["none", "row"])
@pytest.mark.parametrize(
    ("name", "N", "d", "k"),
    [
        ("elu_plus_one", 150, 4, 3),
        ("exp", 200, 8, 5),
        ("relu", 150, 8, 4),
        ("softplus", 65, 2, 2),
        ("squared_relu", 130, 4, 1),
        ("identity", 150, 8, 4),
    ],
)
def test_leading_triplets_against_lapack(name, N, d, k, normalization):
    F, G = map(FEATURE_MAPS[name], np.random.default_rng(N).standard_normal((2, N, d)))
    A, dense = semiseparable(F, G), factored(F, G, "causal", "none")
    if normalization == "row":
        if name == "identity":
            # Rows that nearly cancel make a few entries huge; the others stay as they were.
            F, G = np.abs(F), np.abs(G)
            A, dense = semiseparable(F, G), factored(F, G, "causal", "none")
        A, dense = (
            A.row_normalized(),
            dense / np.where(dense.any(axis=1), dense.sum(axis=1), 1)[:, None],
        )
    got = largest_singular_values(A.product, A.transposed_product, start_of(N), k)
    assert len(got.values) == k and (got.residuals <= TOLERANCE).all()
    check(dense, got, np.linalg.svd(dense, compute_uv=False))


@pytest.mark.parametrize("N", [1, 2, 9, 300, 20000])
def test_all_ones(N):
    one = np.ones((N, 1))
    A, k = semiseparable(one, one), min(N, 3)
    got = largest_singular_values(A.product, A.transposed_product, start_of(N), k)
    exact = all_ones_singular_values(N)[:k]
    # Sums of N terms pass N roundings, beside a tolerance on residuals.
    rtol = TOLERANCE + 4 * (N + got.steps) * EPS * exact[0] / exact
    assert (np.abs(np.ldexp(got.values, got.exponent) - exact) <= rtol * exact).all()
    np.testing.assert_allclose(got.log10, np.log10(exact), rtol=0, atol=rtol.max())


@pytest.mark.parametrize("exponent", [-100000, -1074, 0, 3, 5000])
def test_a_power_of_two_changes_no_bit(exponent):
    A = np.random.default_rng(1).standard_normal((30, 30))
    one = largest_singular_values(*operator(A), start_of(30), 2)
    got = largest_singular_values(*operator(A, exponent), start_of(30), 2)
    np.testing.assert_array_equal(got.values, one.values)
    np.testing.assert_array_equal(got.right, one.right)
    np.testing.assert_array_equal(got.residuals, one.residuals)
    assert got.exponent == one.exponent + exponent
    # log2 of a number below 2, plus the exponent, times log10(2): an ulp of the result each.
    difference = got.log10 - one.log10 - exponent * np.log10(2.0)
    assert np.abs(difference).max() <= 4 * EPS * max(1, abs(exponent))


def test_a_run_cut_short_states_its_residual():
    """The eigenvalues (j / N)^2 are crowded at the top."""
    sigma = np.arange(1, 301) / 300
    got = largest_singular_values(*operator(np.diag(sigma)), start_of(300), 3, max_steps=12)
    assert got.steps == 12 and (got.residuals > TOLERANCE).all()
    for value, residual in zip(np.ldexp(got.values, got.exponent), got.residuals, strict=True):
        assert np.abs(sigma - value).min() <= residual * value + 300 * EPS
    check_right = np.diag(sigma) @ got.right.T
    np.testing.assert_allclose(
        np.linalg.norm(check_right, axis=0), np.ldexp(got.values, got.exponent), rtol=300 * EPS
    )


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("N", [1, 2, 7])
def test_zero_matrix(N):
    got = largest_singular_values(*operator(np.zeros((N, N))), start_of(N))
    assert (got.values.tolist(), got.residuals.tolist(), got.exponent) == ([0.0], [0.0], 0)
    assert np.linalg.norm(got.right) == pytest.approx(1.0) and got.log10[0] == -np.inf


@pytest.mark.filterwarnings("error")
@given(
    st.integers(1, 7).flatmap(
        lambda N: arrays(float, (N, N), elements=st.integers(-2, 2).map(float))
    ),
    st.integers(1, 8),
    st.integers(0, 5),
    st.booleans(),
)
def test_small_matrices_of_any_rank(A, k, seed, triangular):
    """A Krylov space may end early, of a singular matrix or one with equal singular values: what
    comes back is true, and the first value is the largest."""
    A = np.tril(A) if triangular else A
    exact = np.linalg.svd(A, compute_uv=False)
    got = largest_singular_values(*operator(A), start_of(len(A), seed), k)
    values = np.ldexp(got.values, got.exponent)
    slack = 64 * len(A) * EPS * exact[0]
    # All N directions or all that the start reaches are taken, so the rounding is all there is.
    assert abs(values[0] - exact[0]) <= max(1e-9 * exact[0], slack)
    assert len(values) <= min(k, len(A)) and (np.diff(values) <= 0).all()
    for value, v in zip(values, got.right, strict=True):
        assert np.abs(exact - value).min() <= 1e-9 * exact[0]
        assert abs(np.linalg.norm(A @ v) - value) <= slack
    np.testing.assert_allclose(got.right @ got.right.T, np.eye(len(values)), rtol=0, atol=1e-12)
