"""Prove the rank of softmax of rank-one scores, beside what double precision sees of it."""

import argparse
from collections.abc import Iterator

import numpy as np

from causalrank.ensembles import gaussian
from causalrank.mixing import softmax
from causalrank.rank_one_softmax import log10_abs_det
from causalrank.spectrum import numerical_rank, numpy_tolerance, singular_values
from whole_files import write_csv

SIZES = (2, 4, 8, 16, 32, 64)
HEADER = ("N", "score_rank", "exact_rank", "numerical_rank", "log10_abs_det", "bits")


def rows() -> Iterator[tuple]:
    for N in SIZES:
        q, k, _ = gaussian("rank_one_softmax", N, 1, 0, 1.0)
        log_det, bits = log10_abs_det(q[:, 0], k[:, 0])
        sigma = singular_values(softmax(q, k, "bidirectional", "row"))
        tolerance = numpy_tolerance(N, np.finfo(float).eps)
        yield N, 1, N, numerical_rank(sigma, tolerance), log_det, bits


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", required=True, help="the table, a CSV")
    write_csv(parser.parse_args().output, HEADER, rows())


if __name__ == "__main__":
    main()
