"""The tasks against the layer itself, and accuracies against Bayes rates in closed form."""

import numpy as np
import pytest
from scipy.stats import norm

from causalrank.attention_layer import Projections, forward, projections
from causalrank.mark_task import NOISE, Task, drawn_task, draws, last_outputs, readout_accuracy

EPS = np.finfo(float).eps


def generator(seed: int = 0) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(seed))


@pytest.mark.parametrize("mask", ["bidirectional", "causal"])
def test_last_outputs_are_the_layers_last_row(mask):
    W = projections(6, 2, generator())
    X = generator(1).standard_normal((3, 5, 6))
    expected = [forward(x, W, mask, 1.7).concatenated[-1] for x in X]
    # Sums of 6 and 5 products, in another order; scores below 10, values below 5.
    np.testing.assert_allclose(last_outputs(X, W, 1.7), expected, atol=5 * 10 * 4 * 16 * EPS)


@pytest.mark.parametrize("kind", ["location", "presence"])
def test_draws_carry_what_their_labels_say(kind):
    task = drawn_task(4, 3, generator())
    X, labels = draws(task, kind, 40, generator(1))
    assert sorted(set(labels)) == [-1, 1] and labels.sum() == 0
    unmarked = draws(Task(task.positions, 0 * task.mark), kind, 40, generator(1))[0]
    carried = X - unmarked
    # p + noise + u - (p + noise) errs by eps times their size, below 10.
    marked = np.isclose(carried, task.mark, rtol=0, atol=10 * EPS).all(axis=2)
    assert not carried[~marked].any()
    if kind == "location":
        np.testing.assert_array_equal(marked.sum(axis=1), 1)
        assert marked[labels > 0, 0].all() and marked[labels < 0, 1].all()
    else:
        np.testing.assert_array_equal(marked.sum(axis=1), labels > 0)
        assert marked[:, 0].sum() == marked[:, 1].sum() == 10
    assert not marked[:, 2:].any()


def test_uniform_attention_reads_presence_at_the_bayes_rate_and_no_location():
    N, d_model, count = 16, 4, 4000
    W = projections(d_model, 1, generator())
    task = Task(generator(1).standard_normal((N, d_model)), np.full(d_model, 0.5))
    bayes = norm.cdf(np.linalg.norm(task.mark) / (2 * NOISE * np.sqrt(N)))
    for kind, expected in (("presence", bayes), ("location", 0.5)):
        (X, y), (new_X, new_y) = (draws(task, kind, count, generator(s)) for s in (2, 3))
        both = (last_outputs(X, W, 0.0), y, last_outputs(new_X, W, 0.0), new_y)
        # Five standard deviations of a share of `count`; the fit loses of the order of
        # d_model / count against the Bayes rate.
        slack = 5 * np.sqrt(expected * (1 - expected) / count) + 2 * d_model / count
        assert readout_accuracy(*both) == pytest.approx(expected, abs=slack)


def test_a_head_that_looks_at_one_token_reads_location():
    """Projections by hand: the last token looks at token 0, and sees whether it has the mark."""
    d_model, N, count = 4, 6, 1000
    positions = np.zeros((N, d_model))
    positions[-1, 0] = positions[0, 2] = 5.0
    task = Task(positions, np.array([0.0, 8 * NOISE, 0.0, 0.0]))
    query, key = np.zeros((2, 1, d_model, d_model))
    query[0, 0, 0] = key[0, 2, 0] = 1.0
    W = Projections(query, key, np.eye(d_model)[None])
    (X, y), (new_X, new_y) = (draws(task, "location", count, generator(s)) for s in (0, 1))
    rates = [
        readout_accuracy(last_outputs(X, W, scale), y, last_outputs(new_X, W, scale), new_y)
        for scale in (0.0, 4.0)
    ]
    # Scores of 50 against 2.5 times a normal number: all weight is token 0's, where the labels are
    # 8 deviations apart, so that 1 - Phi(4) = 3e-5 are wrong. Without scores, chance.
    assert rates[1] > 0.998
    assert abs(rates[0] - 0.5) < 5 * np.sqrt(0.25 / count)


def test_readout_against_a_separable_and_an_empty_case():
    labels = np.array([1.0, -1.0] * 4)
    features = np.column_stack([labels * 3 + 10, np.arange(8.0)])
    assert readout_accuracy(features, labels, features, labels) == 1.0
    assert readout_accuracy(features, labels, features, -labels) == 0.0
