"""Layers against the definition in arbitrary precision, and against their own invariants."""

import mpmath
import numpy as np
import pytest

from causalrank.attention_layer import forward, projections

EPS = np.finfo(float).eps


def generator(seed: int = 0) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(seed))


@pytest.mark.parametrize("mask", ["bidirectional", "causal"])
def test_outputs_against_mpmath(mask):
    N, d_model, heads, scale = 4, 6, 2, 1.5
    X, W = generator(1).standard_normal((N, d_model)), projections(d_model, heads, generator())
    passage = forward(X, W, mask, scale)
    with mpmath.workdps(40):
        tokens = mpmath.matrix(X.tolist())
        for h in range(heads):
            q, k, v = (tokens * mpmath.matrix(M[h].tolist()) for M in (W.query, W.key, W.value))
            S = scale * q * k.T / mpmath.sqrt(d_model // heads)
            for i in range(N):
                seen = range(i + 1) if mask == "causal" else range(N)
                weights = [mpmath.exp(S[i, j]) for j in seen]
                for c in range(3):
                    total = mpmath.fsum(a * v[j, c] for a, j in zip(weights, seen, strict=True))
                    # Scores below 10 err by less than 10 (2 d_model + 4) eps, their exponentials
                    # as much relatively; values below 4 and their sums as much again.
                    expected = float(total / mpmath.fsum(weights))
                    slack = 4 * 10 * (2 * d_model + 4) * EPS
                    assert passage.outputs[h, i, c] == pytest.approx(expected, abs=slack)
    np.testing.assert_array_equal(passage.concatenated[:, 3:], passage.outputs[1])
    np.testing.assert_array_equal(passage.residual - X, (X + passage.concatenated) - X)


def test_heads_are_the_same_parameters_cut_otherwise():
    d_model = 12
    whole = projections(d_model, 1, generator())
    for heads in (2, 3, 4, 12):
        cut = projections(d_model, heads, generator())
        assert cut.parameters == whole.parameters == 3 * d_model**2
        assert cut.query.shape == (heads, d_model, d_model // heads)
        for name in ("query", "key", "value"):
            joined = np.concatenate(list(getattr(cut, name)), axis=1)
            np.testing.assert_array_equal(joined, getattr(whole, name)[0])
    # Entries of variance 1 / d_model: five standard deviations of their mean square.
    squares = np.concatenate([(M**2).ravel() for M in (whole.query, whole.key, whole.value)])
    assert abs(d_model * squares.mean() - 1) < 5 * np.sqrt(2 / squares.size)
    with pytest.raises(ValueError, match="5 heads do not divide d_model = 12"):
        projections(d_model, 5, generator())


def test_scores_of_all_heads_add_up_to_those_of_one():
    """Without softmax, cutting into heads only splits the sum over d_model, but for the widths."""
    X = generator(1).standard_normal((5, 8))
    one, many = (forward(X, projections(8, h, generator()), "causal", 2.0) for h in (1, 4))
    scaled = many.scores.sum(axis=0) * np.sqrt(2) / np.sqrt(8)
    # Sums of 8 products of entries below 30 in another order.
    np.testing.assert_allclose(scaled, one.scores[0], rtol=0, atol=30 * 16 * EPS)
