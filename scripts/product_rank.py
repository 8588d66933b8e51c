"""Measure rank(A V) against min(rank A, rank V), modulo a prime, for V of known rank."""

import argparse
from collections.abc import Iterator
from itertools import product

import numpy as np

from causalrank.ensembles import gaussian, seed_of
from causalrank.feature_maps import FEATURE_MAPS
from causalrank.mixing import MASKS
from causalrank.rank import product_ranks, random_prime
from whole_files import write_csv

N = 48
HEADER = ("N", "d", "feature_map", "mask", "rank_V", "rank_A", "rank_AV", "smaller_rank")


def rows() -> Iterator[tuple]:
    for d, name, mask, r in product((1, 4, 16), FEATURE_MAPS, MASKS, (1, 4, 16, 48)):
        q, k, _ = gaussian("product_rank", N, d, 0, 1.0)
        values, _, _ = gaussian("product_rank_values", N, r, 0, 1.0)
        v = values[:, np.arange(N) % r]
        F, G = FEATURE_MAPS[name](q), FEATURE_MAPS[name](k)
        seed = seed_of("prime", "product_rank", d, name, mask, r)
        p = random_prime(np.random.Generator(np.random.PCG64(seed)))
        rank_A, rank_V, rank_AV = product_ranks(F, G, v, mask, p)
        yield N, d, name, mask, rank_V, rank_A, rank_AV, min(rank_A, rank_V)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", required=True, help="the table, a CSV")
    write_csv(parser.parse_args().output, HEADER, rows())


if __name__ == "__main__":
    main()
