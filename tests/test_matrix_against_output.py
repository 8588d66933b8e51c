"""Both constructions by fractions: every relative error is the closed form."""

from fractions import Fraction

import numpy as np
import pytest

from causalrank.bound import original, row_errors
from causalrank.matrix_against_output import error_in_the_null_space, values_scaled_up

N = 8


def squares(X: list[list[Fraction]]) -> Fraction:
    return sum(x * x for row in X for x in row)


def product(X: list[list[Fraction]], Y: list[list[Fraction]]) -> list[list[Fraction]]:
    return [
        [sum(a * b for a, b in zip(row, column, strict=True)) for column in zip(*Y, strict=True)]
        for row in X
    ]


@pytest.mark.parametrize(
    "made",
    [
        values_scaled_up(N, 2.0**-20, 2.0**32),
        values_scaled_up(N, 0.25, 2.0**-3),
        error_in_the_null_space(N, 2.0**12),
        error_in_the_null_space(N, 2.0**-12),
    ],
)
def test_errors_are_the_closed_forms(made):
    """Exactly, of the stored doubles; by row_errors but for square roots."""
    A, A_hat, v = (
        [[Fraction(x) for x in row] for row in X.tolist()] for X in (made.A, made.A_hat, made.v)
    )
    E = [[b - a for a, b in zip(*rows, strict=True)] for rows in zip(A, A_hat, strict=True)]
    assert squares(E) == Fraction(made.relative_frobenius_error) ** 2 * squares(A)
    outputs = squares(product(A, v))
    assert squares(product(E, v)) == Fraction(made.relative_output_error) ** 2 * outputs
    errors = row_errors(original(made.A, made.v), made.A_hat, np.ones(N))
    rtol = 8 * np.finfo(float).eps
    assert errors.relative_frobenius_error == pytest.approx(made.relative_frobenius_error, rel=rtol)
    assert errors.relative_output_error == pytest.approx(made.relative_output_error, rel=rtol)
    assert errors.violations == 0
