"""Ranks at the stations of a layer, against exact elimination in fractions and known layers."""

from fractions import Fraction

import numpy as np
import pytest

from causalrank.attention_layer import attend, forward, projections
from causalrank.contrast_families import fixed_scores, identical_values, two_token
from causalrank.head_pairs import PAIRS
from causalrank.layer_ranks import station_ranks, thresholded_ranks

PRIME = 2**61 - 1
EPS = np.finfo(float).eps


def generator(seed: int = 0) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(seed))


def fraction_rank(rows: list[list[Fraction]]) -> int:
    """Gaussian elimination over the rationals."""
    rank, rows = 0, [list(row) for row in rows]
    for column in range(len(rows[0])):
        pivot = next((i for i in range(rank, len(rows)) if rows[i][column]), None)
        if pivot is None:
            continue
        rows[rank], rows[pivot] = rows[pivot], rows[rank]
        for i in range(rank + 1, len(rows)):
            factor = rows[i][column] / rows[rank][column]
            rows[i] = [a - factor * b for a, b in zip(rows[i], rows[rank], strict=True)]
        rank += 1
    return rank


def exact(X: np.ndarray) -> list[list[Fraction]]:
    return [[Fraction(x) for x in row] for row in X.tolist()]


def times(A: list[list[Fraction]], B: list[list[Fraction]]) -> list[list[Fraction]]:
    columns = list(zip(*B, strict=True))
    return [[sum(a * b for a, b in zip(row, c, strict=True)) for c in columns] for row in A]


@pytest.mark.parametrize("mask", ["bidirectional", "causal"])
def test_exact_ranks_against_fractions(mask):
    X, W = generator(1).integers(-2, 3, (5, 4)) / 4, projections(4, 2, generator())
    passage = forward(X, W, mask, 1.0)
    ranks = {(r.station, r.head): r for r in station_ranks(passage, mask, 1.0, 1e-9, PRIME, X)}
    assert len(ranks) == 2 * 4 + 2
    products = []
    for h in range(2):
        A, v = exact(passage.attention[h]), exact(passage.v[h])
        products.append(times(A, v))
        assert ranks["output", h].exact.value == fraction_rank(products[h])
        assert ranks["attention", h].exact.value == fraction_rank(A)
        assert ranks["values", h].exact.value == fraction_rank(v)
        scores = times(exact(passage.q[h]), exact(passage.k[h].T))
        assert ranks["scores", h].exact.value == fraction_rank(scores)
    joint = [first + second for first, second in zip(*products, strict=True)]
    assert ranks["concatenated", None].exact.value == fraction_rank(joint)
    residual = [
        [a + b for a, b in zip(*rows, strict=True)] for rows in zip(exact(X), joint, strict=True)
    ]
    assert ranks["residual", None].exact.value == fraction_rank(residual)


def test_thresholds_are_absolute_and_relative():
    X = np.diag([4.0, 1.0, 0.5, 0.0])
    assert thresholded_ranks(X, 0.6) == (2, 1)
    assert thresholded_ranks(X, 0.2) == (3, 2)
    assert thresholded_ranks(np.zeros((2, 3)), 0.2) == (0, 0)


def stations(q, k, v, mask: str, scale: float) -> dict[str, tuple]:
    found = station_ranks(attend(q, k, v, mask, scale, None), mask, scale, 1e-6, PRIME, None)
    return {r.station: (r.exact.value, r.relative) for r in found if r.head in (0, None)}


def test_two_tokens():
    assert stations(*two_token(1.0), "bidirectional", 2.0)["attention"] == (2, 2)
    none = stations(*two_token(1.0), "bidirectional", 0.0)
    assert none["scores"] == (0, 0) and none["attention"] == (1, 1) and none["output"] == (0, 0)


@pytest.mark.parametrize("mask", ["bidirectional", "causal"])
def test_identical_values_have_outputs_of_rank_one(mask):
    q, k, v = identical_values(8, 3, generator())
    found = stations(q, k, v, mask, 2.0)
    assert found["attention"] == (8, 8)
    assert found["values"] == found["output"] == (1, 1)
    output = attend(q, k, v, mask, 2.0, None).outputs[0]
    # Eight weights of sum one, each right to 10 eps.
    np.testing.assert_allclose(output, v[0], rtol=20 * EPS)


def test_fixed_scores_gain_rank_from_the_mask_and_nothing_at_the_last_token():
    head = fixed_scores(16, generator())
    for scale in (0.0, 0.125):
        without, masked = (stations(*head, mask, scale) for mask in ("bidirectional", "causal"))
        assert without["scores"] == masked["scores"] == ((1, 1) if scale else (0, 0))
        assert without["attention"][1] < 8
        assert masked["attention"] == (16, 16)
        last = [
            attend(*head, mask, scale, None).outputs[0, -1] for mask in ("bidirectional", "causal")
        ]
        np.testing.assert_array_equal(*last)


@pytest.mark.parametrize("mask", ["bidirectional", "causal"])
def test_pairs(mask):
    """What two heads make together, by what they share."""
    N, w = 12, 3
    expected = {"same_attention": 2 * w, "same_values": 2 * w, "same_everything": w}
    expected |= {"same_identical_values": 1}
    assert set(PAIRS) == set(expected)
    for name, draw in PAIRS.items():
        q, k, v = draw(N, w, generator())
        passage = attend(q, k, v, mask, 1.0, None)
        A, outputs = passage.attention, passage.outputs
        assert np.array_equal(A[0], A[1]) == (name in ("same_attention", "same_everything"))
        assert np.array_equal(v[0], v[1]) == (name != "same_attention")
        # Equal but for rounding: weights of sum one, values below 4.
        same = np.abs(outputs[0] - outputs[1]).max() < 20 * EPS * 4
        assert same == (name in ("same_identical_values", "same_everything"))
        *_, joint = station_ranks(passage, mask, 1.0, 1e-6, PRIME, None)
        assert joint.station == "concatenated" and joint.relative == expected[name]
        if name != "same_identical_values":  # there, rounding lifts the exact rank
            assert joint.exact.value == expected[name]
