"""The two-token family: softmax attention in one number.

Scores a (1, -1)(1, -1)^T give softmax rows (1 + tanh a, 1 - tanh a) / 2 and their mirror image,
since e^a / (e^a + e^-a) = (1 + tanh a) / 2. Its eigenvectors (1, 1) and (1, -1) have the
eigenvalues 1 and tanh a: what two tokens share passes, what distinguishes them passes by tanh a.
"""

import numpy as np


def score_matrix(a: float) -> np.ndarray:
    """a (1, -1)(1, -1)^T, shape (2, 2): rank one."""
    return a * np.array([[1.0, -1.0], [-1.0, 1.0]])


def mixing_matrix(a: float) -> np.ndarray:
    """The row softmax of `score_matrix(a)`, shape (2, 2), as any softmax is computed."""
    S = score_matrix(a)
    A = np.exp(S - S.max(axis=1, keepdims=True))
    return A / A.sum(axis=1, keepdims=True)


def determinant(a: float) -> float:
    """tanh a: also the second eigenvalue, and the response to opposite values (1, -1)."""
    return float(np.tanh(a))


def condition_number(a: float) -> float:
    """1 / |tanh a| (the matrix is symmetric); infinite at a = 0."""
    return float(np.inf) if a == 0 else float(1.0 / abs(np.tanh(a)))


def derivative(a: float) -> float:
    """d tanh(a) / da = 1 - tanh(a)^2 = 1 / cosh(a)^2, in the form that does not cancel."""
    return float(1.0 / np.cosh(a) ** 2)


def rank(a: float) -> int:
    """2, and exactly 1 at a = 0, where both tokens receive the mean."""
    return 1 if a == 0 else 2
