"""Test Linformer's theorem on the softmax matrices of drawn queries and keys, or of a file's.

Of the first members, each fixed, and for three kinds of column w, drawn for each: `uniform`,
independent on (0, 1); `mean_zero`, normal numbers less their mean; `one_hot`, one token's. All
members, kinds, epsilons and k of a length share the draws h of the law; each row's interval holds
by itself and is over them, for its P and w. The k that is needed, and all columns at once, are of
the first member.
"""

import argparse
import functools
import math
from collections.abc import Iterator

import numpy as np

from causalrank.mixing import softmax
from causalrank.projection import (
    Column,
    Errors,
    columns,
    draw_errors,
    failure_bounds,
    predicted_errors,
    smallest_k,
    theorem_k,
)
from projection_tables import (
    DRAWS,
    EPSILON,
    FORMS,
    KEYS,
    UNIFORM,
    frequency,
    generator_of,
    uniform_row,
)
from whole_files import load_arrays, write_csv

EPSILONS = (EPSILON, 0.25)
ALLOWED = 0.05
LADDER = sorted({round(1.1**step) for step in range(8, 147)})
ROWS = 512
UNIFORM_N = 1024
UNIFORM_DRAWS = 25
MEMBERS = 5
KINDS = ("uniform", "mean_zero", "one_hot")
HEADER = (
    *(*KEYS, "member", "column", "epsilon", "k", "form"),
    *("draws", "frequency", "low", "high", "bound"),
    *("amplification", "median_error", "rms_error", "predicted_rms_error"),
)
NEEDED = (
    *(*KEYS, "column", "epsilon", "form", "k_needed", "k_over_log", "k_theorem", "ladder_end"),
    *("amplification", "draws"),
)
Key = tuple[str, int, int]


def blocks(q: np.ndarray, k: np.ndarray) -> Iterator[np.ndarray]:
    """The rows of the softmax matrix of q, k, shape (n, d), some at a time."""
    for first in range(0, len(q), ROWS):
        yield softmax(q[first : first + ROWS], k, "bidirectional", "row", first)


def drawn_columns(n: int, generator: np.random.Generator) -> np.ndarray:
    """w of each of the `KINDS`, shape (n, kinds)."""
    positive, normal = generator.uniform(0, 1, n), generator.standard_normal(n)
    token = np.zeros(n)
    token[generator.integers(n)] = 1.0
    return np.stack([positive, normal - normal.mean(), token], axis=1)


def theorem_rows(key: Key, member: int, name: str, column: Column) -> Iterator[tuple]:
    for epsilon in EPSILONS:
        k = theorem_k(key[1], epsilon)
        errors = draw_errors(column, k, generator_of(*key, name, k))
        predicted = dict(zip(FORMS, predicted_errors(column, k), strict=False))
        for form, bound in zip(FORMS, failure_bounds(column, k, epsilon), strict=True):
            values = getattr(errors, form)
            yield (
                *(*key, member, name, epsilon, k, form),
                *(DRAWS, *frequency(values > epsilon), bound),
                *(column.amplification, float(np.median(values))),
                *(float(np.sqrt(np.mean(values**2))), predicted.get(form)),
            )


def needed_rows(key: Key, name: str, column: Column) -> Iterator[tuple]:
    """The smallest k of the ladder at which a form fails in less than 5 % of the draws."""

    @functools.cache
    def errors(k: int) -> Errors:
        return draw_errors(column, k, generator_of(*key, name, k))

    def frequency_at(k: int, form: str, epsilon: float) -> float:
        return float(np.mean(getattr(errors(k), form) > epsilon))

    for epsilon in EPSILONS:
        for form in FORMS:
            often = functools.partial(frequency_at, form=form, epsilon=epsilon)
            needed = smallest_k(LADDER, often, ALLOWED)
            over_log = None if needed is None else needed / math.log(key[1])
            yield (
                *(*key, name, epsilon, form, needed, over_log),
                *(theorem_k(key[1], epsilon), LADDER[-1], column.amplification, DRAWS),
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", required=True, help="the source's name: part of the seed")
    parser.add_argument("--N", type=int, required=True, help="tokens: the first N rows")
    parser.add_argument("--input", required=True, help=".npz with q, k of (members, N, d)")
    parser.add_argument("--output", required=True, help="at the theorem's k, a CSV")
    parser.add_argument("--needed", required=True, help="the k that is needed, a CSV")
    parser.add_argument("--uniform", required=True, help="all columns at once, a CSV")
    args = parser.parse_args()
    arrays = load_arrays(args.input)
    Q, K = (arrays[name][:MEMBERS, : args.N] for name in ("q", "k"))
    key = args.source, *Q.shape[1:]
    noise = generator_of(*key, "noise").standard_normal((args.N, DRAWS))
    w, rows, needed, uniform = generator_of(*key, "columns"), [], [], []
    for member, (q, k) in enumerate(zip(Q, K, strict=True)):
        found = columns(blocks(q, k), drawn_columns(args.N, w), noise)
        for name, column in zip(KINDS, found, strict=True):
            rows += theorem_rows(key, member, name, column)
            needed += needed_rows(key, name, column) if member == 0 else []
    write_csv(args.output, HEADER, rows)
    write_csv(args.needed, NEEDED, needed)
    if args.N <= UNIFORM_N:
        P, generator = np.concatenate(list(blocks(Q[0], K[0]))), generator_of(*key, "uniform")
        whole = (*key, None, None), "identity", P, np.eye(len(P))
        uniform = [uniform_row(*whole, generator, UNIFORM_DRAWS)]
    write_csv(args.uniform, UNIFORM, uniform)


if __name__ == "__main__":
    main()
