"""A contrast's derivative against central differences of the whole layer, and in closed form."""

import numpy as np
import pytest

from causalrank.attention_layer import forward, projections
from causalrank.contrast import between, passed

EPS = np.finfo(float).eps
N, D_MODEL = 7, 6


def case(heads: int, scale: float, mask: str):
    W = projections(D_MODEL, heads, np.random.Generator(np.random.PCG64(1)))
    X = np.random.default_rng(2).standard_normal((N, D_MODEL))
    D = between(N, 0, 1, np.random.default_rng(3).standard_normal(D_MODEL))
    return X, W, D, passed(forward(X, W, mask, scale), W, mask, scale, D)


def test_direction():
    D = between(5, 1, 3, np.array([3.0, 4.0]))
    assert np.linalg.norm(D) == pytest.approx(1.0, abs=4 * EPS)
    np.testing.assert_array_equal(D[1], -D[3])
    assert not D[[0, 2, 4]].any()


@pytest.mark.parametrize("mask", ["bidirectional", "causal"])
@pytest.mark.parametrize("heads", [1, 2, 3])
@pytest.mark.parametrize("scale", [0.0, 1.0, 2.5])
def test_every_station_against_central_differences(mask, heads, scale):
    X, W, D, found = case(heads, scale, mask)
    h = 2.0**-17
    above, below = (forward(X + s * D, W, mask, scale) for s in (h, -h))
    # Third derivatives: products of at most three score derivatives, each below 20, over 6, times
    # entries below 10; rounding 100 eps of such entries over the step.
    slack = 10 * (20**3 / 6 * h**2 + 100 * EPS / h)
    allowed = np.tri(N, dtype=bool) if mask == "causal" else np.ones((N, N), bool)
    for station, plus, minus in (
        (found.scores, above.scores * allowed, below.scores * allowed),
        (found.attention, above.attention, below.attention),
        (found.output, above.concatenated, below.concatenated),
        (found.residual, above.residual, below.residual),
    ):
        np.testing.assert_allclose(station, (plus - minus) / (2 * h), rtol=0, atol=slack)


@pytest.mark.parametrize("mask", ["bidirectional", "causal"])
def test_attention_passes_on_what_sums_to_zero(mask):
    """Rows of A sum to one, so the derivative's rows sum to zero."""
    *_, found = case(2, 2.0, mask)
    assert np.abs(found.attention.sum(axis=2)).max() < N * EPS * np.abs(found.attention).max() * 4


def test_without_scores_the_last_token_sees_nothing_of_a_contrast():
    """Uniform attention gives the mean of the values, in which D cancels, masked or not."""
    for mask in ("bidirectional", "causal"):
        *_, found = case(2, 0.0, mask)
        assert not found.scores.any() and not found.attention.any()
        assert np.abs(found.output[-1]).max() < N * EPS
    # But under the mask token 0 sees itself alone: the first row is D's first row times W_v.
    _, W, D, found = case(2, 0.0, "causal")
    first = np.concatenate([D[0] @ M for M in W.value])
    np.testing.assert_allclose(found.output[0], first, rtol=8 * EPS * D_MODEL, atol=EPS)
