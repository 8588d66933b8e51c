"""Tabulate the two-token family: transmission tanh(a) against saturation 1 - tanh(a)^2."""

import argparse
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from causalrank import two_token
from whole_files import write_csv

SCORES = np.unique(np.concatenate([[0.0], np.geomspace(1e-8, 10.0, 10), np.linspace(0.0, 4.0, 41)]))
STEP = 2.0**-17
HEADER = (
    "a",
    "eigenvalue_1",
    "eigenvalue_2",
    "determinant",
    "tanh_a",
    "rank",
    "rank_closed_form",
    "condition_number",
    "condition_closed_form",
    "saturation",
    "response_opposite",
    "response_equal",
)


def exact_rank(A: np.ndarray) -> int:
    """1 or 2: the rank of the stored doubles, whose first entry is positive."""
    (a, b), (c, d) = ([Fraction(x) for x in row] for row in A.tolist())
    return 1 if a * d == b * c else 2


def response(a: float, values: tuple[float, float]) -> float:
    """The derivative in a of the first token's output, by a central difference."""
    above, below = (two_token.mixing_matrix(a + s) @ np.array(values) for s in (STEP, -STEP))
    return float((above - below)[0] / (2 * STEP))


def rows() -> Iterator[tuple]:
    for a in SCORES.tolist():
        A = two_token.mixing_matrix(a)
        low, high = np.linalg.eigvalsh(A).tolist()
        sigma = np.linalg.svd(A, compute_uv=False)
        yield (
            a,
            high,
            low,
            float(np.linalg.det(A)),
            two_token.determinant(a),
            exact_rank(A),
            two_token.rank(a),
            float(sigma[0] / sigma[1]) if a else np.inf,
            two_token.condition_number(a),
            two_token.derivative(a),
            response(a, (1.0, -1.0)),
            response(a, (1.0, 1.0)),
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", required=True, help="the table, a CSV")
    write_csv(parser.parse_args().output, HEADER, rows())


if __name__ == "__main__":
    main()
