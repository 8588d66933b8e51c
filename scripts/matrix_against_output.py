"""Tabulate constructions whose matrix error says nothing of their output error."""

import argparse
from collections.abc import Iterator

import numpy as np

from causalrank.bound import original, row_errors
from causalrank.matrix_against_output import (
    Construction,
    error_in_the_null_space,
    values_scaled_up,
)
from whole_files import write_csv

N = 64
POWERS = range(-12, 13, 4)
SMALL = 2.0**-20
HEADER = (
    *("control", "N", "log2_scale", "relative_frobenius_error", "relative_output_error"),
    *("frobenius_closed_form", "output_closed_form"),
    *("bound_max", "output_error_max", "tightness_max", "violations"),
)


def row(name: str, power: int, made: Construction) -> tuple:
    start = np.random.default_rng(0).standard_normal(N)
    errors = row_errors(original(made.A, made.v), made.A_hat, start)
    return (
        name,
        N,
        power,
        errors.relative_frobenius_error,
        errors.relative_output_error,
        made.relative_frobenius_error,
        made.relative_output_error,
        float(errors.bound.max()),
        float(errors.output_error.max()),
        float(errors.tightness.max()),
        errors.violations,
    )


def rows() -> Iterator[tuple]:
    for power in POWERS:
        scale = 2.0 ** (power + 20)
        yield row("values_scaled_up", power + 20, values_scaled_up(N, SMALL, scale))
    for power in POWERS:
        yield row("error_in_the_null_space", power, error_in_the_null_space(N, 2.0**power))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", required=True, help="the table, a CSV")
    write_csv(parser.parse_args().output, HEADER, rows())


if __name__ == "__main__":
    main()
