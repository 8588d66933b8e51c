"""The output-error bound where it is tight, where it is random, and where it is made to fail."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from causalrank import bound
from causalrank.bound import (
    Original,
    RowErrors,
    count_violations,
    original,
    rounding_allowance,
    row_errors,
    spectral_allowance,
)
from causalrank.mixing import factored
from causalrank.sparsity import window

EPS = np.finfo(float).eps
values = st.builds(lambda x, e: x * 10.0**e, st.floats(-1, 1), st.integers(-40, 40))


def errors_of(A: np.ndarray, A_hat: np.ndarray, v: np.ndarray) -> RowErrors:
    return row_errors(original(A, v), A_hat, np.ones(len(A)))


def tight_case(N: int = 6, d_v: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """An error E and values v with equality: v_j is one vector u up to the signs of E's columns."""
    generator = np.random.default_rng(N)
    signs = generator.choice([-1.0, 1.0], N)
    return generator.uniform(0, 1, (N, N)) * signs, np.outer(signs, generator.normal(size=d_v))


@given(st.data(), st.integers(1, 6), st.integers(1, 4))
def test_bound_holds(data, N, d_v):
    A, A_hat = (data.draw(arrays(float, (N, N), elements=values)) for _ in range(2))
    v = data.draw(arrays(float, (N, d_v), elements=values))
    errors = errors_of(A, A_hat, v)
    assert errors.violations == errors.entrywise_violations == errors.spectral_violations == 0
    assert not (errors.tightness > 1 + rounding_allowance(N, d_v)).any()
    with np.errstate(under="ignore"):
        assert errors.bound.max() <= errors.entrywise_bound * (1 + rounding_allowance(N, d_v))


@pytest.mark.parametrize(("N", "d_v"), [(1, 1), (6, 3), (50, 8)])
def test_bound_is_tight_for_equal_values(N, d_v):
    E, v = tight_case(N, d_v)
    errors = errors_of(np.zeros((N, N)), E, v)
    np.testing.assert_allclose(errors.tightness, 1.0, rtol=rounding_allowance(N, d_v))
    assert errors.violations == 0


def test_a_violation_would_be_counted(monkeypatch):
    """With an allowance that asks for half of the bound, every row of the tight case exceeds it."""
    monkeypatch.setattr(bound, "rounding_allowance", lambda N, d_v: -0.5)
    E, v = tight_case()
    E[0] = 0.0
    assert errors_of(np.zeros((6, 6)), E, v).violations == 5


def test_both_sides_against_mpmath():
    generator = np.random.default_rng(3)
    A, A_hat, v = (generator.standard_normal((5, n)) for n in (5, 5, 2))
    errors = errors_of(A, A_hat, v)
    E, V = mpmath.matrix((A_hat - A).tolist()), mpmath.matrix(v.tolist())
    with mpmath.workdps(40):
        norm = max(mpmath.norm(V[j, :]) for j in range(5))
        l1 = [mpmath.norm(E[i, :].T, 1) for i in range(5)]
        output = [mpmath.norm(E[i, :] * V) for i in range(5)]
    # gamma_N of the product relative to |E| |V|, which cancels by less than 100 here.
    kwargs = {"rtol": 100 * rounding_allowance(5, 2)}
    np.testing.assert_allclose(errors.row_l1_error, [float(x) for x in l1], **kwargs)
    np.testing.assert_allclose(original(A, v).value_norm_max, float(norm), **kwargs)
    np.testing.assert_allclose(errors.bound, [float(x * norm) for x in l1], **kwargs)
    np.testing.assert_allclose(errors.output_error, [float(x) for x in output], **kwargs)
    np.testing.assert_array_equal(errors.tightness, errors.output_error / errors.bound)


@pytest.mark.filterwarnings("error")
def test_no_error_has_no_tightness():
    A = np.eye(3)
    errors = errors_of(A, A.copy(), np.ones((3, 2)))
    assert np.isnan(errors.tightness).all()
    assert errors.violations == 0 and not errors.output_error.any()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("error", "value"), [(1e10, 1e-165), (1e-165, 1e10), (1e-5, 1e160)])
def test_squares_that_leave_double_precision_are_no_violation(error, value):
    errors = errors_of(np.zeros((1, 1)), np.array([[error]]), np.array([[value]]))
    assert errors.violations == 0
    np.testing.assert_allclose(errors.bound, error * value, rtol=8 * EPS)
    np.testing.assert_allclose(errors.tightness, 1.0, rtol=8 * EPS)


@pytest.mark.parametrize(("N", "d_v"), [(1, 1), (512, 32), (4096, 64)])
def test_rounding_allowance(N, d_v):
    n, u = N + d_v + 6, Fraction(1, 2**53)
    gamma = n * u / (1 - n * u)
    expected = (1 + gamma) / (1 - gamma) - 1
    # The subtraction of 1 keeps eps / 2 of absolute error, four roundings in all.
    assert abs(Fraction(rounding_allowance(N, d_v)) - expected) <= 4 * u


def test_norms_and_coarser_bounds_against_mpmath():
    """Lanczos has as many steps as the matrix has columns, and gives the norm but for rounding."""
    generator = np.random.default_rng(4)
    A, A_hat, v = (generator.standard_normal((5, n)) for n in (5, 5, 2))
    exact, errors = original(A, v), errors_of(A, A_hat, v)
    E, V, M = (mpmath.matrix(X.tolist()) for X in (A_hat - A, v, A))
    with mpmath.workdps(40):
        spectral = {
            name: mpmath.sqrt(max(mpmath.eigsy(X.T * X, eigvals_only=True)))
            for name, X in {"E": E, "V": V}.items()
        }
        frobenius = [mpmath.mnorm(X, "f") for X in (E, M, E * V, M * V)]
        largest = max(abs(x) for x in E)
    # Backward errors of five rows: a hundred roundings, and squares of condition 10 in the norms.
    kwargs = {"rtol": 1000 * EPS}
    np.testing.assert_allclose(errors.spectral_error, float(spectral["E"]), **kwargs)
    np.testing.assert_allclose(exact.value_spectral_norm, float(spectral["V"]), **kwargs)
    product = float(spectral["E"] * spectral["V"])
    np.testing.assert_allclose(errors.spectral_bound, product, **kwargs)
    entrywise = 5 * float(largest) * exact.value_norm_max
    np.testing.assert_allclose(errors.entrywise_bound, entrywise, **kwargs)
    np.testing.assert_allclose(errors.frobenius_error, float(frobenius[0]), **kwargs)
    relative = float(frobenius[0] / frobenius[1])
    np.testing.assert_allclose(errors.relative_frobenius_error, relative, **kwargs)
    relative = float(frobenius[2] / frobenius[3])
    np.testing.assert_allclose(errors.relative_output_error, relative, **kwargs)


def test_an_entrywise_bound_without_the_factor_N_is_caught():
    """A row of equal errors and equal values: sum_j |E_ij| is N times the largest entry."""
    F = np.random.default_rng(0).uniform(1, 2, (64, 4))
    A = factored(F, F, "causal", "none")
    v = np.ones((64, 3))
    A_hat = window(A, 8, "causal")
    errors = errors_of(A, A_hat, v)
    assert errors.entrywise_violations == 0
    wrong = np.abs(A_hat - A).max() * np.sqrt(3)
    assert wrong == pytest.approx(errors.entrywise_bound / 64)
    assert count_violations(errors.output_error, wrong, rounding_allowance(64, 3)) > 32


def test_a_spectral_norm_of_V_alone_is_caught():
    """Half of the spectral bound lies below what the leading singular vectors attain."""
    E = np.outer([0.0, 3.0], [0.6, 0.8])
    errors = errors_of(np.zeros((2, 2)), E, np.array([[0.6], [0.8]]))
    assert errors.spectral_violations == 0
    assert errors.spectral_bound == pytest.approx(3.0)
    allowance = spectral_allowance(2, 1)
    assert count_violations(errors.output_error, errors.spectral_bound / 2, allowance) == 1


@given(st.data(), st.integers(2, 6))
def test_a_start_that_misses_the_leading_vector_makes_no_false_violation(data, N):
    """E maps `start` to zero, so Lanczos sees nothing; the rows' norms stand in for it."""
    E = data.draw(arrays(float, (N, N), elements=values))
    E[:, 0] = 0.0
    v = data.draw(arrays(float, (N, 3), elements=values))
    start = np.eye(N)[0]
    exact: Original = original(np.zeros((N, N)), v)
    assert row_errors(exact, E, start).spectral_violations == 0


@pytest.mark.parametrize(("N", "d_v"), [(1, 1), (512, 64)])
def test_spectral_allowance(N, d_v):
    """To first order: gamma of two norms, sqrt(d_v) of the product, 2 d_v of the Gram matrix."""
    gamma = (N + d_v + 6) * EPS / 2
    first_order = gamma * (2 + np.sqrt(d_v) + 2 * d_v)
    # What is left are products of two gammas and the subtraction of 1.
    rounding = (2 * d_v + 3) ** 2 * gamma**2 + 2 * EPS
    assert abs(spectral_allowance(N, d_v) - first_order) <= rounding
