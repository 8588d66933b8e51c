"""Evaluate drawn attention layers: ranks at each station, a contrast's passage, and gradients."""

import argparse
from collections.abc import Iterator
from dataclasses import astuple
from itertools import product

import numpy as np

from causalrank.acceptance import contrast_kept
from causalrank.attention_layer import Passage, Projections, forward
from causalrank.contrast import between, passed
from causalrank.ensembles import seed_of
from causalrank.gradients import gradient_norms
from causalrank.layer_ranks import station_ranks, thresholded_ranks
from causalrank.log_odds import log_odds, log_odds_error, supported_block
from causalrank.mixing import MASKS
from causalrank.rank import random_prime
from drawn_layers import LAYER_KEYS, TOKENS, Layer, draw_layer
from whole_files import write_csv

RANKS_HEADER = (
    *LAYER_KEYS,
    *("mask", "station", "head", "exact_rank", "certificate"),
    *("rank_absolute", "rank_relative", "rank_threshold"),
)
PASSAGE_HEADER = (
    *LAYER_KEYS,
    "mask",
    *("contrast_scores", "contrast_attention", "contrast_by_attention", "contrast_by_values"),
    *("contrast_output", "contrast_residual", "contrast_output_last", "contrast_residual_last"),
    "contrast_residual_kept",
    *("gradient_scores", "gradient_q", "gradient_k", "gradient_v", "gradient_scale"),
    "log_odds_error",
)


def rank_rows(layer: Layer, mask: str, passage: Passage, threshold: float) -> Iterator[tuple]:
    """The ranks of each station; the log-odds of a head have thresholded ranks only."""
    seed = seed_of("prime", "layer", *layer.key, mask)
    p = random_prime(np.random.Generator(np.random.PCG64(seed)))
    for rank in station_ranks(passage, mask, layer.scale, threshold, p, layer.X):
        exact = rank.exact.value, rank.exact.certificate
        thresholded = rank.absolute, rank.relative, threshold
        yield *layer.columns, mask, rank.station, rank.head, *exact, *thresholded
    for head, A in enumerate(passage.attention):
        L = log_odds(supported_block(A, mask))
        ranks = thresholded_ranks(L, threshold) if np.isfinite(L).all() else (None, None)
        yield *layer.columns, mask, "log_odds", head, None, "", *ranks, threshold


def passage_row(layer: Layer, W: Projections, mask: str, passage: Passage) -> tuple:
    D = between(len(layer.X), *TOKENS, layer.direction)
    on_the_way = passed(passage, W, mask, layer.scale, D)
    stations = (on_the_way.scores, on_the_way.attention, on_the_way.by_attention)
    stations += (on_the_way.by_values, on_the_way.output, on_the_way.residual)
    stations += (on_the_way.output[-1], on_the_way.residual[-1])
    heads = zip(passage.attention, passage.scores, strict=True)
    return (
        *layer.columns,
        mask,
        *(float(np.linalg.norm(station)) for station in stations),
        contrast_kept(D, on_the_way.residual),
        *astuple(gradient_norms(passage, layer.scale)),
        max(log_odds_error(A, S) for A, S in heads),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--d-model", type=int, required=True, help="width of the tokens")
    parser.add_argument("--N", type=int, required=True, help="tokens")
    parser.add_argument("--heads", type=int, nargs="+", required=True, help="divisors of d_model")
    parser.add_argument("--score-scales", type=float, nargs="+", required=True)
    parser.add_argument("--seeds", type=int, required=True, help="drawn layers")
    parser.add_argument("--rank-threshold", type=float, required=True)
    parser.add_argument("--ranks", required=True, help="the ranks, a CSV")
    parser.add_argument("--passage", required=True, help="contrast and gradients, a CSV")
    args = parser.parse_args()
    ranks, passages = [], []
    for heads, scale, seed in product(args.heads, args.score_scales, range(args.seeds)):
        layer, W = draw_layer(args.d_model, args.N, heads, scale, seed)
        for mask in MASKS:
            passage = forward(layer.X, W, mask, scale)
            ranks.extend(rank_rows(layer, mask, passage, args.rank_threshold))
            passages.append(passage_row(layer, W, mask, passage))
    write_csv(args.ranks, RANKS_HEADER, ranks)
    write_csv(args.passage, PASSAGE_HEADER, passages)


if __name__ == "__main__":
    main()
