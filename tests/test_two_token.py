"""The two-token family against its closed forms in high precision."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest

from causalrank.two_token import (
    condition_number,
    derivative,
    determinant,
    mixing_matrix,
    rank,
    score_matrix,
)

EPS = np.finfo(float).eps
SCORES = [1e-300, 1e-8, 0.3, 1.0, 5.0, 18.0, -0.7]


@pytest.mark.parametrize("a", SCORES)
def test_closed_forms(a):
    # tanh and cosh within 2 ulp, a square and a quotient: below 8 units of eps / 2.
    np.testing.assert_allclose(determinant(a), float(mpmath.tanh(a)), rtol=4 * EPS)
    np.testing.assert_allclose(condition_number(a), float(abs(mpmath.coth(a))), rtol=4 * EPS)
    np.testing.assert_allclose(derivative(a), float(mpmath.sech(a) ** 2), rtol=4 * EPS)


def test_saturated_derivative_does_not_cancel():
    assert determinant(20.0) == 1.0
    np.testing.assert_allclose(derivative(20.0), float(mpmath.sech(20) ** 2), rtol=4 * EPS)


@pytest.mark.parametrize("a", [0.0, *SCORES])
def test_matrix_has_the_eigenvalues_1_and_tanh(a):
    # Entries are at most 1 and carry at most 4 roundings of eps / 2; two of them are added.
    A = mixing_matrix(a)
    np.testing.assert_allclose(A @ [1, 1], [1, 1], rtol=0, atol=4 * EPS)
    np.testing.assert_allclose(A @ [1, -1], determinant(a) * np.array([1, -1]), atol=4 * EPS)
    np.testing.assert_array_equal(A, A.T)
    np.testing.assert_array_equal(A, A[::-1, ::-1])


@pytest.mark.parametrize("a", [0.3, 1.0, 5.0])
def test_singular_values_give_determinant_and_condition(a):
    sigma = np.linalg.svd(mixing_matrix(a), compute_uv=False)
    # Absolute error of a singular value 4 eps, over the smaller one for the ratio.
    tolerance = 4 * EPS * condition_number(a)
    np.testing.assert_allclose(sigma.prod(), abs(determinant(a)), rtol=2 * tolerance)
    np.testing.assert_allclose(sigma[0] / sigma[1], condition_number(a), rtol=2 * tolerance)


@pytest.mark.parametrize(("a", "expected"), [(0.0, 1), (1e-8, 2), (0.3, 2), (5.0, 2), (-0.7, 2)])
def test_rank_is_that_of_the_stored_matrix(a, expected):
    (w, x), (y, z) = ([Fraction(entry) for entry in row] for row in mixing_matrix(a).tolist())
    assert rank(a) == (2 if w * z != x * y else 1) == expected


def test_scores_have_rank_one_and_zero_has_no_finite_condition():
    np.testing.assert_array_equal(score_matrix(3.0), [[3, -3], [-3, 3]])
    assert condition_number(0.0) == np.inf
