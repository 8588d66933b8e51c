"""Put approximations in the place of drawn layers' attention: rank, output error, contrast kept."""

import argparse
from collections.abc import Iterator
from itertools import product

import numpy as np

from causalrank.acceptance import contrast_kept, output_error
from causalrank.attention_layer import Projections, concatenated, forward
from causalrank.contrast import between
from causalrank.ensembles import seed_of
from causalrank.layer_methods import Method, methods
from causalrank.layer_ranks import thresholded_ranks
from causalrank.mixing import MASKS
from drawn_layers import LAYER_KEYS, TOKENS, Layer, draw_layer
from whole_files import write_csv

HEADER = (
    *LAYER_KEYS,
    *("mask", "method", "strength", "rank_before", "rank_after", "rank_threshold"),
    *("output_error", "contrast_kept"),
)


def layer_rank(A: np.ndarray, threshold: float) -> int:
    """The rank of diag(A_1, ..., A_H), above the threshold relative to each head's sigma_max."""
    return sum(thresholded_ranks(A_h, threshold)[1] for A_h in A)


def outputs(
    layer: Layer, W: Projections, mask: str, X: np.ndarray, noise: list[float], ranks: list[int]
) -> Iterator[tuple[Method, np.ndarray]]:
    """Every method's attention on tokens X, and its output, the exact ones first."""
    passage = forward(X, W, mask, layer.scale)
    seed = seed_of("layer_noise", *layer.key, mask)
    options = (mask, layer.scale, noise, ranks, seed)
    for method in methods(passage.attention, passage.q, passage.k, *options):
        yield method, concatenated(method.attention @ passage.v)


def rows(
    layer: Layer, W: Projections, mask: str, noise: list[float], ranks: list[int], threshold: float
) -> Iterator[tuple]:
    """One row per method, for a scale above 0: without scores there is no contrast to keep.

    The contrast is that of the outputs for X + D/2 and X - D/2, D telling two tokens apart by as
    much as a token is long.
    """
    D = between(len(layer.X), *TOKENS, layer.direction) * np.sqrt(2 * layer.X.shape[1])
    tokens = (layer.X, layer.X + D / 2, layer.X - D / 2)
    runs = [outputs(layer, W, mask, X, noise, ranks) for X in tokens]
    for (method, output), (_, plus), (_, minus) in zip(*runs, strict=True):
        after = layer_rank(method.attention, threshold)
        if method.name == "exact":
            exact, exact_contrast, before = output, plus - minus, after
        error, kept = output_error(exact, output), contrast_kept(exact_contrast, plus - minus)
        words = (mask, method.name, method.strength)
        yield *layer.columns, *words, before, after, threshold, error, kept


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--d-model", type=int, required=True, help="width of the tokens")
    parser.add_argument("--N", type=int, required=True, help="tokens")
    parser.add_argument("--heads", type=int, nargs="+", required=True, help="divisors of d_model")
    parser.add_argument("--score-scales", type=float, nargs="+", required=True)
    parser.add_argument("--seeds", type=int, required=True, help="drawn layers")
    parser.add_argument("--noise", type=float, nargs="*", default=[], help="relative strengths")
    parser.add_argument("--ranks", type=int, nargs="*", default=[], help="ranks to truncate to")
    parser.add_argument("--rank-threshold", type=float, required=True)
    parser.add_argument("--output", required=True, help="the table, a CSV")
    args = parser.parse_args()
    options = args.noise, args.ranks, args.rank_threshold
    table = []
    with_scores = [scale for scale in args.score_scales if scale > 0]
    for heads, scale, seed in product(args.heads, with_scores, range(args.seeds)):
        layer, W = draw_layer(args.d_model, args.N, heads, scale, seed)
        for mask in MASKS:
            table.extend(rows(layer, W, mask, *options))
    write_csv(args.output, HEADER, table)


if __name__ == "__main__":
    main()
