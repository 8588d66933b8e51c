"""The determinant of exp(q k^T) by balls against closed forms and high precision."""

import contextlib

import flint
import mpmath
import numpy as np
import pytest

from causalrank.rank_one_softmax import log10_abs_det

# The last steps, a logarithm, a quotient and the rounding to a double, cost a few eps.
RELATIVE = 8 * np.finfo(float).eps


def by_mpmath(q: np.ndarray, k: np.ndarray) -> float:
    with mpmath.workdps(400):
        matrix = mpmath.matrix([[mpmath.exp(mpmath.mpf(x) * y) for y in k] for x in q])
        return float(mpmath.log10(abs(mpmath.det(matrix))))


def test_one_token():
    log_det, _ = log10_abs_det(np.array([1.5]), np.array([-2.0]))
    np.testing.assert_allclose(log_det, -3.0 / np.log(10), rtol=RELATIVE)


@pytest.mark.parametrize("gap", 2.0 ** -np.arange(0, 60, 3))
def test_two_tokens(gap):
    """However near the tokens are, their determinant is told from zero, to all digits."""
    q = np.array([1.0, 1.0 + gap]) if 1.0 + gap > 1.0 else np.array([0.0, gap])
    k = np.array([0.0, 1.0])
    log_det, _ = log10_abs_det(q, k)
    np.testing.assert_allclose(log_det, by_mpmath(q, k), rtol=RELATIVE)


@pytest.mark.parametrize("N", [3, 6, 12])
@pytest.mark.parametrize("seed", range(4))
def test_against_mpmath(N, seed):
    q, k = np.random.default_rng(seed).standard_normal((2, N))
    log_det, _ = log10_abs_det(q, k)
    np.testing.assert_allclose(log_det, by_mpmath(q, k), rtol=RELATIVE)


def test_precision_doubles_as_far_as_needed():
    q, k = np.random.default_rng(0).standard_normal((2, 24))
    assert log10_abs_det(q[:2], k[:2])[1] == 64
    _, bits = log10_abs_det(q, k)
    assert bits > 64 and bits & (bits - 1) == 0


def test_a_singular_matrix_is_never_told_from_zero():
    with pytest.raises(ArithmeticError, match="256 bits do not tell"):
        log10_abs_det(np.array([1.0, 1.0]), np.array([0.0, 1.0]), max_bits=256)


@pytest.mark.parametrize("k", [[0.0, 1.0], [0.0, 0.0]])
def test_the_callers_precision_stays(k, monkeypatch):
    monkeypatch.setattr(flint.ctx, "prec", 71)
    with contextlib.suppress(ArithmeticError):
        log10_abs_det(np.array([1.0, 2.0]), np.array(k), max_bits=128)
    assert flint.ctx.prec == 71
