"""Evaluate heads whose output is known: two tokens, identical values, fixed scores with a mask.

Each is a layer of one head, so that the concatenation is its output; the residual stream holds the
values as they are, W_v = 1.
"""

import argparse
from collections.abc import Iterator
from dataclasses import astuple

import numpy as np

from causalrank.acceptance import contrast_kept
from causalrank.attention_layer import Passage, attend
from causalrank.contrast import between, through_scores
from causalrank.contrast_families import Head, fixed_scores, identical_values, two_token
from causalrank.ensembles import seed_of
from causalrank.gradients import gradient_norms
from causalrank.layer_ranks import station_ranks, thresholded_ranks
from causalrank.log_odds import log_odds, log_odds_error, supported_block
from causalrank.mixing import MASKS
from causalrank.rank import random_prime
from whole_files import write_csv

SCORES = (0.0, 0.125, 0.5, 1.0, 2.0, 4.0, 8.0)
STATIONS = ("scores", "attention", "values", "output", "residual")
HEADER = (
    *("family", "N", "width", "score_scale", "seed", "mask", "rank_threshold"),
    *(
        f"{station}_{rank}"
        for station in STATIONS
        for rank in ("exact", "certificate", "absolute", "relative")
    ),
    *("log_odds_absolute", "log_odds_relative"),
    *("value_contrast", "value_contrast_last", "value_contrast_last_unmasked"),
    *("value_contrast_residual", "value_contrast_residual_kept"),
    *("query_contrast_scores", "query_contrast_attention", "query_contrast_output"),
    *("tanh_a", "output_spread"),
    *("gradient_scores", "gradient_q", "gradient_k", "gradient_v", "gradient_scale"),
    *("gradient_scale_closed_form", "log_odds_error"),
)
N, WIDTH, SEEDS = 32, 4, 5


def heads() -> Iterator[tuple[str, int | None, float, Head, tuple[str, ...]]]:
    """Family, seed, score scale, head and the masks that it is looked at with."""
    for a in SCORES:
        yield "two_token", None, a, two_token(1.0), ("bidirectional",)
    for seed in range(SEEDS):
        drawn = {
            "identical_values": identical_values(N, WIDTH, generator("identical_values", seed)),
            "fixed_scores": fixed_scores(N, generator("fixed_scores", seed)),
        }
        for family, head in drawn.items():
            for scale in SCORES:
                yield family, seed, scale, head, MASKS


def generator(family: str, seed: int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(seed_of("control", family, N, seed)))


def value_contrast(passage: Passage) -> tuple[float, float]:
    """What passes of a contrast between the values of tokens 0 and 1: in all, at the last token."""
    A = passage.attention[0]
    passed = A @ between(len(A), 0, 1, np.ones(1))
    return float(np.linalg.norm(passed)), float(abs(passed[-1, 0]))


def value_contrast_residual(passage: Passage) -> tuple[float, float]:
    """Of the same contrast in the residual stream: its norm, and what lies along the injected."""
    D = between(passage.attention.shape[1], 0, 1, np.ones(1))
    residual = D + passage.attention[0] @ D
    return float(np.linalg.norm(residual)), contrast_kept(D, residual)


def query_contrast(passage: Passage, mask: str, scale: float) -> Iterator[float]:
    """What passes of a contrast between the queries of tokens 0 and 1: the norm at each station."""
    _, n, w = passage.q.shape
    D = between(n, 0, 1, np.ones(w))[None]
    dS, dA = through_scores(passage, mask, scale, D, np.zeros_like(D))
    return (float(np.linalg.norm(station)) for station in (dS, dA, dA @ passage.v))


def row(
    family: str, seed: int | None, scale: float, head: Head, mask: str, threshold: float
) -> tuple:
    """The ranks, the contrast and the gradients of one head under one mask."""
    n, w = head[0].shape[1:]
    X = head[2][0]
    passage, unmasked = (attend(*head, m, scale, X) for m in (mask, "bidirectional"))
    identity = seed_of("prime", family, n, repr(scale), str(seed), mask)
    p = random_prime(np.random.Generator(np.random.PCG64(identity)))
    ranks = {r.station: r for r in station_ranks(passage, mask, scale, threshold, p, X)}
    found = [ranks[station] for station in STATIONS]
    output = passage.outputs[0]
    is_pair = family == "two_token"
    return (
        *(family, n, w, scale, seed, mask, threshold),
        *(x for r in found for x in (r.exact.value, r.exact.certificate, r.absolute, r.relative)),
        *thresholded_ranks(log_odds(supported_block(passage.attention[0], mask)), threshold),
        *value_contrast(passage),
        value_contrast(unmasked)[1],
        *value_contrast_residual(passage),
        *query_contrast(passage, mask, scale),
        float(np.tanh(scale)) if is_pair else None,
        float(np.abs(output - output[0]).max()),
        *astuple(gradient_norms(passage, scale)),
        float(np.sqrt(2) / np.cosh(scale) ** 2) if is_pair else None,
        log_odds_error(passage.attention[0], passage.scores[0]),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rank-threshold", type=float, required=True)
    parser.add_argument("--output", required=True, help="the table, a CSV")
    args = parser.parse_args()
    rows = [
        row(family, seed, scale, head, mask, args.rank_threshold)
        for family, seed, scale, head, masks in heads()
        for mask in masks
    ]
    write_csv(args.output, HEADER, rows)


if __name__ == "__main__":
    main()
