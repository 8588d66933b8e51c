"""Put approximations in the place of drawn layers' attention: rank, output error, contrast kept."""

import argparse
import functools
from collections.abc import Callable, Iterator
from itertools import product

import numpy as np

from causalrank.acceptance import contrast_kept, output_error
from causalrank.approximations import Strength
from causalrank.attention_layer import Projections, concatenated, forward
from causalrank.contrast import between
from causalrank.ensembles import seed_of
from causalrank.layer_methods import Method, methods
from causalrank.layer_ranks import thresholded_ranks
from causalrank.mixing import MASKS
from drawn_layers import LAYER_KEYS, TOKENS, Layer, draw_layer
from ladders import Ladders, add_ladders, ladders_of
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
    layer: Layer,
    W: Projections,
    mask: str,
    X: np.ndarray,
    ladders: Ladders,
    seed: Callable[[str, Strength], np.random.SeedSequence],
) -> Iterator[tuple[Method, np.ndarray]]:
    """Every method's attention on tokens X, and its output, the exact ones first."""

    def generator(name: str, strength: Strength) -> np.random.Generator:
        return np.random.Generator(np.random.PCG64(seed(name, strength)))

    passage = forward(X, W, mask, layer.scale)
    for method in methods(passage, mask, layer.scale, ladders, generator):
        yield method, concatenated(method.attention @ passage.v)


def rows(
    layer: Layer, W: Projections, mask: str, ladders: Ladders, threshold: float
) -> Iterator[tuple]:
    """One row per method, for a scale above 0: without scores there is no contrast to keep.

    The contrast is that of the outputs for X + D/2 and X - D/2, D telling two tokens apart by as
    much as a token is long. A method that does not exist for all three has no row.
    """
    D = between(len(layer.X), *TOKENS, layer.direction) * np.sqrt(2 * layer.X.shape[1])
    tokens = (layer.X, layer.X + D / 2, layer.X - D / 2)

    @functools.cache
    def seed(name: str, strength: Strength) -> np.random.SeedSequence:
        return seed_of("approximate_layer", *layer.key, mask, name, str(strength))

    runs = [
        {(method.name, method.strength): (method.attention, output) for method, output in run}
        for run in (outputs(layer, W, mask, X, ladders, seed) for X in tokens)
    ]
    (A, exact), plus, minus = (run["exact", ""] for run in runs)
    exact_contrast, before = plus[1] - minus[1], layer_rank(A, threshold)
    for key in (key for key in runs[0] if all(key in run for run in runs)):
        (A, output), (_, plus_output), (_, minus_output) = (run[key] for run in runs)
        error = output_error(exact, output)
        kept = contrast_kept(exact_contrast, plus_output - minus_output)
        after = layer_rank(A, threshold)
        yield *layer.columns, mask, *key, before, after, threshold, error, kept


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--d-model", type=int, required=True, help="width of the tokens")
    parser.add_argument("--N", type=int, required=True, help="tokens")
    parser.add_argument("--heads", type=int, nargs="+", required=True, help="divisors of d_model")
    parser.add_argument("--score-scales", type=float, nargs="+", required=True)
    parser.add_argument("--seeds", type=int, required=True, help="drawn layers")
    add_ladders(parser)
    parser.add_argument("--rank-threshold", type=float, required=True)
    parser.add_argument("--output", required=True, help="the table, a CSV")
    args = parser.parse_args()
    options = ladders_of(args), args.rank_threshold
    table = []
    with_scores = [scale for scale in args.score_scales if scale > 0]
    for heads, scale, seed in product(args.heads, with_scores, range(args.seeds)):
        layer, W = draw_layer(args.d_model, args.N, heads, scale, seed)
        for mask in MASKS:
            table.extend(rows(layer, W, mask, *options))
    write_csv(args.output, HEADER, table)


if __name__ == "__main__":
    main()
