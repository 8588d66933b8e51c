"""Blocks against dense matrices, and against the general recurrence where no double holds them."""

import numpy as np
import pytest

from causalrank import blocks
from causalrank.blocks import Blocks
from causalrank.feature_maps import FEATURE_MAPS
from causalrank.semiseparable import semiseparable

SIZES = [(1, 1, 4), (3, 2, 8), (8, 3, 8), (33, 5, 8), (300, 4, 3), (70, 2, 1)]
"""N, D and the chunk: less than a chunk, a multiple, a rest, and, with SLAB = 4, several slabs."""


def draw(N: int, D: int, name: str = "elu_plus_one") -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    q, k = np.random.default_rng(N + D).standard_normal((2, N, D))
    return FEATURE_MAPS[name](q), FEATURE_MAPS[name](k), np.random.default_rng(1).standard_normal(N)


@pytest.fixture(params=[0, blocks.KEPT], ids=["formed anew", "kept"])
def few_chunks_a_slab(request, monkeypatch):
    monkeypatch.setattr(blocks, "SLAB", 4)
    monkeypatch.setattr(blocks, "KEPT", request.param)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("N, D, chunk", SIZES)
def test_against_dense(N, D, chunk, transposed, few_chunks_a_slab):
    """Products to N eps |A| |x|, solves by their residual, N eps |A| |x| too."""
    F, G, x = draw(N, D)
    A = np.tril(F @ G.T)
    A = A.T if transposed else A
    structured = Blocks(F, G, chunk)
    product = structured.product(x, transposed)
    assert not product.exponent.any()
    bound = (N + D) * np.finfo(float).eps * (np.abs(A) @ np.abs(x))
    assert (np.abs(product.mantissa - A @ x) <= bound).all()
    solution = structured.solve(x, transposed).over_power(0)
    bound = 4 * (N + D) * np.finfo(float).eps * (np.abs(A) @ np.abs(solution))
    assert (np.abs(A @ solution - x) <= bound).all()


@pytest.mark.parametrize("N, D, chunk", SIZES)
def test_frobenius_norm_against_dense(N, D, chunk, few_chunks_a_slab):
    F, G, _ = draw(N, D)
    squares = Blocks(F, G, chunk).squared_frobenius_norm()
    assert squares == pytest.approx((np.tril(F @ G.T) ** 2).sum(), rel=(N + D) * 2.0**-52)


@pytest.mark.parametrize("transposed", [False, True])
def test_a_solution_beyond_doubles_is_that_of_the_general_recurrence(transposed, few_chunks_a_slab):
    """Columns take the other way, where exponents are carried for each of them."""
    F, G, y = draw(12000, 8, "exp")
    solution = Blocks(F, G, 8).solve(y, transposed)
    A = semiseparable(F, G, chunk=8)
    general = (A.transposed_solve if transposed else A.solve)(y[:, None])
    assert solution.exponent.max() > 1023
    assert (np.diff(solution.exponent[:: -1 if transposed else 1]) >= 0).any()
    top = general.largest_exponent()
    difference = solution.over_power(top) - general.over_power(top)[:, 0]
    assert np.abs(difference).max() < 1e-9


def test_a_state_that_shrinks_again_gives_its_exponent_back(few_chunks_a_slab):
    """x alternates with a factor of 2^40 a token, then the right side dwarfs what is left."""
    F = np.ones((400, 1))
    G = np.concatenate([2.0 ** -np.arange(0, 200), 2.0 ** -np.arange(200, 0, -1)])[:, None]
    y = np.random.default_rng(0).standard_normal(400)
    solution = Blocks(F, G, 4).solve(y).over_power(0)
    # tril(1 g^T): x_i = (y_i - y_{i-1}) / g_i
    expected = np.diff(y, prepend=0.0) / G[:, 0]
    assert np.allclose(solution, expected, rtol=1e-12)


def test_growth_within_a_chunk_is_left_to_others():
    F = np.ones((8, 1))
    G = 2.0 ** np.array([0, -299, 0, 0, 0, 0, 0, 0], dtype=float)[:, None]
    y = np.ones(8)
    y[1] = 2.0**40
    assert Blocks(F, G, 8).solve(y) is None
