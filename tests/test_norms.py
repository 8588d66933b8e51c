"""Norms at the ends of the range; the estimated one never above, and as near as promised."""

import numpy as np
import pytest

from causalrank.norms import STEPS, frobenius_norm, row_norms, scaled_down, spectral_norm

EPS = np.finfo(float).eps


@pytest.mark.parametrize("N", [1, 2, 12, 60])
def test_it_lies_below_the_norm_and_at_most_ten_percent_of_the_square(N):
    """The mean shortfall is bounded by theory, whatever the spectrum; twenty starts each."""
    generator = np.random.default_rng(N)
    promised = 0.103 * (np.log(N * (STEPS - 1) ** 2) / (STEPS - 1)) ** 2
    for E in (generator.standard_normal((N, N)), np.tril(np.ones((N, N))), np.eye(N)):
        norm = np.linalg.svd(E, compute_uv=False)[0]
        found = np.array([spectral_norm(E, generator.standard_normal(N)) for _ in range(20)])
        # Lanczos vectors, and LAPACK's decomposition, err by N eps of the norm each step.
        assert (found <= norm * (1 + 2 * STEPS * N * EPS)).all()
        assert np.mean(1 - (found / norm) ** 2) <= promised


def test_all_steps_give_the_closed_form_of_the_all_ones_matrix():
    """1 / (2 sin(pi / (4 N + 2))) for the lower triangle of ones."""
    N = 8
    found = spectral_norm(np.tril(np.ones((N, N))), np.ones(N) + np.eye(N)[0])
    np.testing.assert_allclose(found, 1 / (2 * np.sin(np.pi / (4 * N + 2))), rtol=N * N * EPS)


@pytest.mark.filterwarnings("error")
def test_one_step_is_enough_for_rank_one_and_none_for_zero():
    E = np.outer([3.0, 4.0, 0.0], [0.0, 1.0, 0.0])
    assert spectral_norm(E, np.ones(3)) == pytest.approx(5.0, rel=9 * EPS)
    assert spectral_norm(np.zeros((3, 3)), np.ones(3)) == 0.0


def test_more_steps_see_more():
    E = np.diag(np.linspace(1, 2, 50))
    start = np.random.default_rng(0).standard_normal(50)
    found = [spectral_norm(E, start, steps) for steps in (1, 4, 16)]
    assert found[0] < found[1] < found[2] <= 2 * (1 + 50 * EPS)


@pytest.mark.parametrize("scale", [1e-300, 1.0, 1e300])
def test_frobenius_norm_at_the_ends_of_the_range(scale):
    X = scale * np.array([[3.0, 0.0], [0.0, -4.0]])
    np.testing.assert_allclose(frobenius_norm(X), 5 * scale, rtol=4 * EPS)
    np.testing.assert_allclose(row_norms(X), [3 * scale, 4 * scale], rtol=4 * EPS)


@pytest.mark.parametrize("largest", [5e-324, 1e-308, 0.75, 1.0, 1.7e308])
def test_scaling_down_rounds_nothing(largest):
    X = np.array([[largest, 0.0], [-largest / 2, 0.0]])
    scaled, exponent = scaled_down(X)
    assert 0.5 <= np.abs(scaled).max() < 1
    np.testing.assert_array_equal(np.ldexp(scaled, exponent), X)
