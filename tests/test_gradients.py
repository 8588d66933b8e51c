"""Gradient norms against Jacobians by the complex step, and against closed forms."""

import numpy as np
import pytest

from causalrank.attention_layer import attend
from causalrank.contrast_families import identical_values, two_token
from causalrank.gradients import gradient_norms

EPS = np.finfo(float).eps
STEP = 1e-100
"""The complex step subtracts nothing, so its step may be tiny (Squire and Trapp 1998)."""


def output(q, k, v, scale, mask, extra=None):
    """Softmax attention for complex arguments, written down a second time; `extra` adds to S."""
    S = scale * q @ k.T / np.sqrt(q.shape[1])
    if extra is not None:
        S = S + extra
    allowed = np.tri(len(q), dtype=bool) if mask == "causal" else np.ones(S.shape, bool)
    E = np.where(allowed, np.exp(S - S.real.max(axis=1, keepdims=True)), 0)
    return E / E.sum(axis=1, keepdims=True) @ v


def jacobian_norm(function, x: np.ndarray) -> float:
    """||d function / d x||_F, column by column."""
    total = 0.0
    for index in np.ndindex(x.shape):
        shifted = x.astype(complex)
        shifted[index] += 1j * STEP
        total += np.linalg.norm(function(shifted).imag / STEP) ** 2
    return float(np.sqrt(total))


def by_complex_step(q, k, v, scale, mask) -> list[float]:
    """The norms of one head's Jacobians, in the order of GradientNorms."""
    return [
        jacobian_norm(lambda x: output(q, k, v, scale, mask, x), np.zeros((len(q), len(q)))),
        jacobian_norm(lambda x: output(x, k, v, scale, mask), q),
        jacobian_norm(lambda x: output(q, x, v, scale, mask), k),
        jacobian_norm(lambda x: output(q, k, x, scale, mask), v),
        jacobian_norm(lambda x: output(q, k, v, x, mask), np.array(scale)),
    ]


@pytest.mark.parametrize("mask", ["bidirectional", "causal"])
@pytest.mark.parametrize("scale", [0.0, 0.7, 3.0])
def test_norms_against_the_complex_step(mask, scale):
    q, k, v = np.random.default_rng(2).standard_normal((3, 2, 5, 3))
    norms = gradient_norms(attend(q, k, v, mask, scale, None), scale)
    expected = sum(
        np.square(by_complex_step(*head, scale, mask)) for head in zip(q, k, v, strict=True)
    )
    found = [norms.scores, norms.q, norms.k, norms.v, norms.scale]
    # Sums of at most 2 * 5 * 5 * 3 * 3 products, of one sign in the norms; differences v - o
    # cancel by less than 10 here, and a norm of zero stays zero.
    np.testing.assert_allclose(found, np.sqrt(expected), rtol=10 * 450 * EPS, atol=0)


@pytest.mark.parametrize("mask", ["bidirectional", "causal"])
def test_norms_against_finite_differences(mask):
    """Central differences of step h err by h^2 / 6 times a third derivative, and by eps / h."""
    q, k, v = np.random.default_rng(3).standard_normal((3, 1, 6, 2))
    h, scale = 2.0**-17, 1.2
    passage = attend(q, k, v, mask, scale, None)
    above, below = (attend(q, k, v, mask, scale + s, None).outputs for s in (h, -h))
    # The third cumulant of k.q / sqrt(w), here below 10, times values below 3, 12 entries.
    slack = 12 * 3 * (10**3 * h**2 + 20 * EPS / h)
    difference = float(np.linalg.norm((above - below) / (2 * h)))
    assert gradient_norms(passage, scale).scale == pytest.approx(difference, abs=slack)


@pytest.mark.parametrize("a", [0.0, 0.3, 1.0, 4.0])
def test_two_tokens_in_closed_form(a):
    """Outputs tanh a and -tanh a: their derivatives by a and by q / a are 1 - tanh^2 a, and those
    by each of the four scores half of it."""
    norms = gradient_norms(attend(*two_token(1.0), "bidirectional", a, None), a)
    saturation = 1 / np.cosh(a) ** 2
    # 1 - tanh a cancels by e^2a.
    slack = 16 * EPS * np.exp(2 * a)
    assert norms.scale == pytest.approx(np.sqrt(2) * saturation, rel=slack)
    assert norms.q == pytest.approx(a * np.sqrt(2) * saturation, rel=slack, abs=0)
    assert norms.scores == pytest.approx(saturation, rel=slack)
    assert norms.v == pytest.approx(np.sqrt(1 + np.tanh(a) ** 2), rel=16 * EPS)


def test_identical_values_have_no_gradient_but_that_of_the_values():
    generator = np.random.Generator(np.random.PCG64(0))
    norms = gradient_norms(attend(*identical_values(8, 3, generator), "causal", 2.0, None), 2.0)
    # v - o is a rounding error of at most 10 eps |v| with |v| < 3, over 8 rows; |q|, |k| < 5.
    assert max(norms.scores, norms.q, norms.k, norms.scale) < 10 * EPS * 3 * 8 * 2 * 25
    assert norms.v > 1


def test_zero_scale_has_no_gradient_in_queries():
    q, k, v = np.random.default_rng(2).standard_normal((3, 1, 5, 3))
    norms = gradient_norms(attend(q, k, v, "causal", 0.0, None), 0.0)
    assert norms.q == norms.k == 0.0
    assert norms.scale > 0 and norms.scores > 0
