"""Norms at the ends of the range; the estimated one never above, and as near as promised."""

import numpy as np
import pytest

from causalrank.norms import STEPS, frobenius_norm, row_norms, scaled_down, spectral_norm

EPS = np.finfo(float).eps


def promised(N: int, steps: int) -> float:
    """The integral of min(1, c exp(-a sqrt(x))) over x > 0, c = 1.648 sqrt(N), a = 2 steps - 1."""
    logarithm = np.log(1.648 * np.sqrt(N))
    return float((logarithm**2 + 2 * logarithm + 2) / (2 * steps - 1) ** 2)


@pytest.mark.parametrize("N", [1, 2, 12, 60])
def test_it_lies_below_the_norm(N):
    generator = np.random.default_rng(N)
    for E in (generator.standard_normal((N, N)), np.tril(np.ones((N, N))), np.eye(N)):
        norm = np.linalg.svd(E, compute_uv=False)[0]
        found = np.array([spectral_norm(E, generator.standard_normal(N)) for _ in range(20)])
        # Lanczos vectors, and LAPACK's decomposition, err by N eps of the norm each step.
        assert (found <= norm * (1 + 2 * STEPS * N * EPS)).all()


@pytest.mark.parametrize("steps", [6, STEPS])
def test_the_square_falls_short_by_what_is_promised(steps):
    """By a third of it or more for a square of 1 a little above an arcsine law's dense edge."""
    N = 512
    generator = np.random.default_rng(steps)
    edge = 1 - 16 / (2 * steps - 1) ** 2
    squares = edge * np.cos(np.pi / 2 * np.linspace(0, 1, N - 1)) ** 2
    E = np.diag(np.sqrt(np.append(squares, 1.0)))
    found = [spectral_norm(E, generator.standard_normal(N), steps) for _ in range(40)]
    short = 1 - np.mean(np.square(found))
    assert promised(N, steps) / 3 <= short <= promised(N, steps)


def test_the_share_that_the_docstring_states():
    assert promised(512, STEPS) == pytest.approx(0.042, abs=5e-4)
    assert 1 - np.sqrt(1 - promised(512, STEPS)) <= 0.022


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
    assert scaled is X if 0.1 < largest < 10 else 0.5 <= np.abs(scaled).max() < 1
    np.testing.assert_array_equal(np.ldexp(scaled, exponent), X)
