"""Controls of attention in closed form: one head each, given by q, k, v of shape (1, N, w).

In each, a rank stands beside an output that it says nothing of.
"""

import numpy as np

Head = tuple[np.ndarray, np.ndarray, np.ndarray]


def two_token(a: float) -> Head:
    """Scores a (1, -1)(1, -1)^T and the values 1 and -1, w = 1: outputs tanh a and -tanh a.

    For a other than 0 the attention has rank 2, and the contrast of the outputs is 2 tanh a.
    """
    signs = np.array([[[1.0], [-1.0]]])
    return a * signs, signs, signs


def identical_values(N: int, w: int, generator: np.random.Generator) -> Head:
    """Drawn q and k, and one drawn value for all tokens: every output is that value.

    Rows of A sum to one, so A (1 v^T) = 1 v^T: of rank one, and blind to every score.
    """
    q, k, v = generator.standard_normal((3, 1, N, w))
    return q, k, np.repeat(v[:, :1], N, axis=1)


def fixed_scores(N: int, generator: np.random.Generator) -> Head:
    """Drawn q, k and v with w = 1: scores of rank one, to be looked at with and without a mask."""
    q, k, v = generator.standard_normal((3, 1, N, 1))
    return q, k, v
