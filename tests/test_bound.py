"""The output-error bound where it is tight, where it is random, and where it is made to fail."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from causalrank import bound
from causalrank.bound import noisy, rounding_allowance, row_errors, truncations

EPS = np.finfo(float).eps
values = st.builds(lambda x, e: x * 10.0**e, st.floats(-1, 1), st.integers(-40, 40))


def tight_case(N: int = 6, d_v: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """An error E and values v with equality: v_j is one vector u up to the signs of E's columns."""
    generator = np.random.default_rng(N)
    signs = generator.choice([-1.0, 1.0], N)
    return generator.uniform(0, 1, (N, N)) * signs, np.outer(signs, generator.normal(size=d_v))


@given(st.data(), st.integers(1, 6), st.integers(1, 4))
def test_bound_holds(data, N, d_v):
    A, A_hat = (data.draw(arrays(float, (N, N), elements=values)) for _ in range(2))
    v = data.draw(arrays(float, (N, d_v), elements=values))
    errors = row_errors(A, A_hat, v)
    assert errors.violations == 0
    assert not (errors.tightness > 1 + rounding_allowance(N, d_v)).any()


@pytest.mark.parametrize(("N", "d_v"), [(1, 1), (6, 3), (50, 8)])
def test_bound_is_tight_for_equal_values(N, d_v):
    E, v = tight_case(N, d_v)
    errors = row_errors(np.zeros((N, N)), E, v)
    np.testing.assert_allclose(errors.tightness, 1.0, rtol=rounding_allowance(N, d_v))
    assert errors.violations == 0


def test_a_violation_would_be_counted(monkeypatch):
    """With an allowance that asks for half of the bound, every row of the tight case exceeds it."""
    monkeypatch.setattr(bound, "rounding_allowance", lambda N, d_v: -0.5)
    E, v = tight_case()
    E[0] = 0.0
    assert row_errors(np.zeros((6, 6)), E, v).violations == 5


def test_both_sides_against_mpmath():
    generator = np.random.default_rng(3)
    A, A_hat, v = (generator.standard_normal((5, n)) for n in (5, 5, 2))
    errors = row_errors(A, A_hat, v)
    E, V = mpmath.matrix((A_hat - A).tolist()), mpmath.matrix(v.tolist())
    with mpmath.workdps(40):
        norm = max(mpmath.norm(V[j, :]) for j in range(5))
        l1 = [mpmath.norm(E[i, :].T, 1) for i in range(5)]
        output = [mpmath.norm(E[i, :] * V) for i in range(5)]
    # gamma_N of the product relative to |E| |V|, which cancels by less than 100 here.
    kwargs = {"rtol": 100 * rounding_allowance(5, 2)}
    np.testing.assert_allclose(errors.row_l1_error, [float(x) for x in l1], **kwargs)
    np.testing.assert_allclose(errors.value_norm_max, float(norm), **kwargs)
    np.testing.assert_allclose(errors.bound, [float(x * norm) for x in l1], **kwargs)
    np.testing.assert_allclose(errors.output_error, [float(x) for x in output], **kwargs)
    np.testing.assert_array_equal(errors.tightness, errors.output_error / errors.bound)


@pytest.mark.filterwarnings("error")
def test_no_error_has_no_tightness():
    A = np.eye(3)
    errors = row_errors(A, A.copy(), np.ones((3, 2)))
    assert np.isnan(errors.tightness).all()
    assert errors.violations == 0 and not errors.output_error.any()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("error", "value"), [(1e10, 1e-165), (1e-165, 1e10), (1e-5, 1e160)])
def test_squares_that_leave_double_precision_are_no_violation(error, value):
    errors = row_errors(np.zeros((1, 1)), np.array([[error]]), np.array([[value]]))
    assert errors.violations == 0
    np.testing.assert_allclose(errors.bound, error * value, rtol=8 * EPS)
    np.testing.assert_allclose(errors.tightness, 1.0, rtol=8 * EPS)


@pytest.mark.parametrize(("N", "d_v"), [(1, 1), (512, 32), (4096, 64)])
def test_rounding_allowance(N, d_v):
    n, u = N + d_v + 2, Fraction(1, 2**53)
    gamma = n * u / (1 - n * u)
    expected = (1 + gamma) / (1 - gamma) - 1
    # The subtraction of 1 keeps eps / 2 of absolute error, four roundings in all.
    assert abs(Fraction(rounding_allowance(N, d_v)) - expected) <= 4 * u


def test_noise_is_relative_and_keeps_zeros():
    A = np.tril(np.full((40, 40), 3.0))
    A_hat = noisy(A, 0.01, np.random.default_rng(0))
    assert (A_hat[A == 0] == 0).all()
    z = (A_hat[A != 0] / 3.0 - 1) / 0.01
    # Five standard deviations of mean and second moment of a standard normal sample.
    assert abs(z.mean()) < 5 / np.sqrt(z.size)
    assert abs((z * z).mean() - 1) < 5 * np.sqrt(2 / z.size)
    np.testing.assert_array_equal(noisy(A, 0.0, np.random.default_rng(0)), A)


def test_truncations_err_by_the_next_singular_value():
    A = np.random.default_rng(0).standard_normal((7, 7))
    sigma = np.append(np.linalg.svd(A, compute_uv=False), [0.0, 0.0])
    ranks = [0, 1, 4, 7, 8]
    for r, A_hat in zip(ranks, truncations(A, ranks), strict=True):
        # Products are backward stable: N^2 eps sigma_1. No matrix of rank r is nearer than the next
        # singular value, and the square of the distance exceeds its square by 2 r N eps sigma_1^2.
        rounding = 49 * EPS * sigma[0]
        distance = np.linalg.norm(A - A_hat, 2)
        assert distance >= sigma[r] - rounding
        best = np.sqrt((sigma[r:] ** 2).sum())
        excess = 2 * r * 7 * EPS * sigma[0] ** 2 if r < 7 else 0.0
        assert np.linalg.norm(A - A_hat) <= np.sqrt(best**2 + excess) + rounding
        assert np.count_nonzero(np.linalg.svd(A_hat, compute_uv=False) > rounding) == min(r, 7)
