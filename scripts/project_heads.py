"""Test Linformer's theorem on a model's heads: softmax matrices and their own values.

Of the first window of text, encoded afresh with as many tokens as are asked for; w is each
column of the head's values.
"""

import argparse
from collections.abc import Iterator

import numpy as np

from causalrank.mixing import softmax
from causalrank.projection import columns, predicted_errors, theorem_k
from encode_text import add_model_options, encodings
from projection_tables import (
    EPSILON,
    FORMS,
    HEADS,
    UNIFORM,
    form_frequencies,
    generator_of,
    uniform_row,
)
from whole_files import write_csv

DRAWS = 100
UNIFORM_DRAWS = 10


def head_rows(key: tuple, P: np.ndarray, v: np.ndarray, noise: np.ndarray) -> Iterator[tuple]:
    """A row for each column of v, shape (n, d)."""
    k = theorem_k(len(P), EPSILON)
    generator = generator_of(*key, "lengths")
    for number, column in enumerate(columns([P], v, noise)):
        found = form_frequencies(column, k, EPSILON, generator)
        yield (
            *(*key, number, EPSILON, k, DRAWS, column.amplification),
            predicted_errors(column, k)[0],
            *(value for form in FORMS for value in found[form]),
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", required=True, help="the source's name: part of the seed")
    add_model_options(parser)
    parser.add_argument("--output", required=True, help="column by column, a CSV")
    parser.add_argument("--uniform", required=True, help="a head's columns at once, a CSV")
    args = parser.parse_args()
    first = next(encodings(args))
    n = args.window
    rows, uniform = [], []
    noise = generator_of(args.source, n, "noise").standard_normal((n, DRAWS))
    for layer, head in np.ndindex(first.q.shape[:2]):
        q, k, v = (x[layer, head] for x in (first.q, first.k, first.v))
        P, key = softmax(q, k, "bidirectional", "row"), (args.source, *q.shape, layer, head)
        rows += head_rows(key, P, v, noise)
        generator = generator_of(*key, "uniform")
        uniform.append(uniform_row(key, "values", P, v, generator, UNIFORM_DRAWS))
    write_csv(args.output, HEADS, rows)
    write_csv(args.uniform, UNIFORM, uniform)


if __name__ == "__main__":
    main()
