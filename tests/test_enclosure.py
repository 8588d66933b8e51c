"""Enclosures of extremal singular values, against closed forms and dense decompositions."""

import numpy as np
import pytest

from causalrank.enclosure import enclosed_extremes


def test_the_all_ones_matrix_lies_within_its_enclosure() -> None:
    N = 24
    ends = 1 / (2 * np.sin((2 * np.array([1, N]) - 1) * np.pi / (4 * N + 2)))
    bounds = enclosed_extremes(np.ones((N, 1)), np.ones((N, 1)))
    assert bounds.shape == (2, 2)
    np.testing.assert_allclose(bounds, ends[:, None] * [1, 1], rtol=1e-15)
    assert (bounds[:, 0] < bounds[:, 1]).all()


def test_a_smallest_singular_value_beyond_double_precision_is_enclosed() -> None:
    """[[1, 0], [x, x^-2]]: sigma_max sigma_min = x^-2, and the sum of squares is 1 + x^2 + x^-4."""
    x = 2.0**60
    F, G = np.array([[1.0, 0.0], [x, 1.0]]), np.array([[1.0, 0.0], [0.0, x**-2]])
    large, small = enclosed_extremes(F, G)
    np.testing.assert_allclose(large, np.sqrt(1 + x**2), rtol=1e-15)
    np.testing.assert_allclose(small, x**-2 / np.sqrt(1 + x**2), rtol=1e-15)


def test_drawn_factors_agree_with_lapack() -> None:
    F, G = np.exp(np.random.default_rng(0).standard_normal((2, 20, 4)))
    sigma = np.linalg.svd(np.tril(F @ G.T), compute_uv=False)
    bounds = enclosed_extremes(F, G)
    np.testing.assert_allclose(bounds[:, 0], sigma[[0, -1]], rtol=1e-9)


def test_a_singular_matrix_is_refused() -> None:
    with pytest.raises(ZeroDivisionError):
        enclosed_extremes(np.array([[0.0], [1.0]]), np.ones((2, 1)))
