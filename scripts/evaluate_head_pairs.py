"""Evaluate pairs of heads: redundant by attention but not by value, and the reverse."""

import argparse
from collections.abc import Iterator
from itertools import product

import numpy as np

from causalrank.attention_layer import attend
from causalrank.ensembles import seed_of
from causalrank.head_pairs import PAIRS
from causalrank.layer_ranks import station_ranks
from causalrank.mixing import MASKS
from causalrank.rank import random_prime
from whole_files import write_csv

HEADER = (
    *("pair", "N", "width", "seed", "mask", "rank_threshold"),
    *("attention_difference", "value_difference", "output_difference"),
    *("attention_rank", "attention_rank_other", "output_rank", "output_rank_other"),
    *("concatenated_exact", "certificate", "concatenated_absolute", "concatenated_relative"),
)
N, WIDTH, SEEDS = 32, 4, 5


def rows(threshold: float) -> Iterator[tuple]:
    """One row per pair, seed and mask; differences are the largest of entries."""
    for (name, draw), seed, mask in product(PAIRS.items(), range(SEEDS), MASKS):
        generator = np.random.Generator(np.random.PCG64(seed_of("pair", name, N, WIDTH, seed)))
        passage = attend(*draw(N, WIDTH, generator), mask, 1.0, None)
        identity = seed_of("prime", "pair", name, N, WIDTH, seed, mask)
        p = random_prime(np.random.Generator(np.random.PCG64(identity)))
        found = station_ranks(passage, mask, 1.0, threshold, p, None)
        ranks = {(rank.station, rank.head): rank for rank in found}
        both = (passage.attention, passage.v, passage.outputs)
        exact = [ranks[s, h].exact.value for s in ("attention", "output") for h in (0, 1)]
        joint = ranks["concatenated", None]
        yield (
            *(name, N, WIDTH, seed, mask, threshold),
            *(float(np.abs(first - second).max()) for first, second in both),
            *exact,
            *(joint.exact.value, joint.exact.certificate, joint.absolute, joint.relative),
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rank-threshold", type=float, required=True)
    parser.add_argument("--output", required=True, help="the table, a CSV")
    args = parser.parse_args()
    write_csv(args.output, HEADER, rows(args.rank_threshold))


if __name__ == "__main__":
    main()
