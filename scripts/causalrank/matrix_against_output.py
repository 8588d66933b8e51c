"""Two constructions in which the error of a matrix says nothing of the error of its output.

Both approximate A = 1 1^T / N, whose rows are uniform attention, and rest on n, the vector of
alternating signs, which is orthogonal to 1. For even N, powers of two as N and as scales, all
products are exact in double precision.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Construction:
    """A and A_hat of shape (N, N), values v (N, 1), and both relative errors in closed form."""

    A: np.ndarray
    A_hat: np.ndarray
    v: np.ndarray
    relative_frobenius_error: float
    relative_output_error: float


def _vectors(N: int) -> tuple[np.ndarray, np.ndarray]:
    ones = np.ones(N)
    return ones, np.where(np.arange(N) % 2 == 0, 1.0, -1.0)


def values_scaled_up(N: int, error: float, scale: float) -> Construction:
    """A small error of the matrix and a large one of the output: values 1 + scale * n.

    A sends n to zero, so its output is 1 however large the scale; the error E = error * 1 n^T / N
    does not. ||E||_F / ||A||_F = error, and ||E V||_F / ||A V||_F = error * scale.
    """
    ones, signs = _vectors(N)
    A = np.outer(ones, ones) / N
    E = error * np.outer(ones, signs) / N
    v = (ones + scale * signs)[:, None]
    return Construction(A, A + E, v, error, error * scale)


def error_in_the_null_space(N: int, error: float) -> Construction:
    """A large error of the matrix and none of the output: E = error * 1 n^T / N, values 1.

    E V = 0, as n is orthogonal to each column of V. ||E||_F / ||A||_F = error.
    """
    ones, signs = _vectors(N)
    A = np.outer(ones, ones) / N
    E = error * np.outer(ones, signs) / N
    return Construction(A, A + E, ones[:, None], error, 0.0)
