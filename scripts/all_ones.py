"""Tabulate the all-ones causal matrix, the baseline that knows nothing of queries and keys."""

import argparse
import math
from collections.abc import Iterator

import numpy as np

from causalrank.baselines import all_ones_condition_number, all_ones_stable_rank
from causalrank.spectrum import singular_values, summarize
from whole_files import write_csv

SIZES = tuple(2**n for n in range(2, 17))
DENSE_UP_TO = 1024
HEADER = ("N", "stable_rank", "stable_rank_dense", "limit", "condition_number", "four_N_over_pi")


def rows() -> Iterator[tuple]:
    for N in SIZES:
        dense = None
        if N <= DENSE_UP_TO:
            dense = summarize(singular_values(np.tril(np.ones((N, N))))).stable_rank
        condition = all_ones_condition_number(N)
        yield N, all_ones_stable_rank(N), dense, math.pi**2 / 8, condition, 4 * N / math.pi


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", required=True, help="the table, a CSV")
    write_csv(parser.parse_args().output, HEADER, rows())


if __name__ == "__main__":
    main()
