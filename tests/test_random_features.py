"""Random features by their mean and variance, orthogonality, and the Taylor features by algebra."""

import math
from fractions import Fraction

import numpy as np
import pytest

from causalrank.random_features import (
    gaussian_directions,
    orthogonal_directions,
    positive_features,
    taylor,
    taylor_features,
)

EPS = np.finfo(float).eps


@pytest.mark.parametrize("directions", [gaussian_directions, orthogonal_directions])
def test_the_kernel_is_unbiased(directions):
    """Against exp(x . y); a feature has the variance exp(|x|^2 + |y|^2 + 4 x . y) - exp(2 x . y).

    x and y are scaled by d^(1/4). Orthogonal directions have no larger variance (Choromanski et al.
    2021, theorem 2). Five standard errors of the mean over 4000 draws of m features.
    """
    d, m, draws = 4, 4, 4000
    generator = np.random.default_rng(0)
    q, k = 0.7 * generator.standard_normal((2, 1, d))
    found = []
    for _ in range(draws):
        W = directions(m, d, generator)
        found.append((positive_features(q, W) @ positive_features(k, W).T).item())
    x, y = (z[0] / d**0.25 for z in (q, k))
    variance = np.exp(x @ x + y @ y + 4 * x @ y) - np.exp(2 * x @ y)
    error = np.mean(found) - np.exp(q[0] @ k[0] / math.sqrt(d))
    assert abs(error) < 5 * np.sqrt(variance / (m * draws))


@pytest.mark.parametrize("m", [3, 5, 13])
def test_directions_are_orthogonal_in_blocks_and_as_long_as_normal_ones(m):
    d = 5
    W = orthogonal_directions(m, d, np.random.default_rng(m))
    assert W.shape == (m, d)
    for start in range(0, m, d):
        block = W[start : start + d]
        gram = block @ block.T
        norms = np.sqrt(np.diag(gram))
        np.testing.assert_allclose(gram / np.outer(norms, norms), np.eye(len(block)), atol=50 * EPS)


def test_squared_lengths_have_d_degrees_of_freedom():
    d, m = 6, 3000
    squares = (orthogonal_directions(m, d, np.random.default_rng(1)) ** 2).sum(axis=1)
    assert abs(squares.mean() - d) < 5 * math.sqrt(2 * d / m)


def test_directions_are_isotropic():
    """Haar: first coordinates of unit vectors have mean zero and variance 1/d."""
    d, draws = 3, 2000
    generator = np.random.default_rng(2)
    first = np.array([orthogonal_directions(1, d, generator)[0] for _ in range(draws)])
    unit = first / np.linalg.norm(first, axis=1, keepdims=True)
    assert (np.abs(unit.mean(axis=0)) < 5 / math.sqrt(d * draws)).all()
    assert (np.abs((unit**2).mean(axis=0) - 1 / d) < 5 * math.sqrt(0.1 / draws)).all()


@pytest.mark.parametrize("order", [1, 2, 4])
def test_taylor_against_fractions(order):
    for s in (-2.5, -1.0, 0.0, 0.1, 3.0):
        exact = sum(Fraction(s) ** j / math.factorial(j) for j in range(order + 1))
        # Of terms that sum to at most exp(|s|), in modulus, each rounded `order` times.
        slack = 4 * order * EPS * math.exp(abs(s))
        assert abs(taylor(np.array([s]), order)[0] - float(exact)) <= slack


def test_taylor_features_are_a_factorization():
    q, k = np.random.default_rng(3).standard_normal((2, 7, 5))
    F, G = taylor_features(q), taylor_features(k)
    assert F.shape == (7, 1 + 5 + 15)
    S = q @ k.T / math.sqrt(5)
    # Sums of 21 products, bounded by the norms of their features.
    slack = 40 * EPS * np.outer(np.linalg.norm(F, axis=1), np.linalg.norm(G, axis=1))
    assert (np.abs(F @ G.T - taylor(S, 2)) <= slack).all()
