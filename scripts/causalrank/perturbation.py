"""Errors that are drawn, and values for which an error is as bad as it can be."""

import numpy as np


def noisy(A: np.ndarray, strength: float, generator: np.random.Generator) -> np.ndarray:
    """A with each entry multiplied by 1 + strength * z, z standard normal: zeros stay zeros."""
    return A * (1.0 + strength * generator.standard_normal(A.shape))


def adversarial_values(E: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Values, shape (N, d_v), for which the row of E with the largest L1 norm attains the bound.

    Row j is sign(E_ij) times the row of v, (N, d_v), that has the largest norm, so that no term of
    sum_j E_ij v_j cancels another. The bound that holds for every v cannot be improved.
    """
    worst = int(np.argmax(np.abs(E).sum(axis=1)))
    largest = int(np.argmax(np.linalg.norm(v / (np.abs(v).max() or 1.0), axis=1)))
    return np.outer(np.sign(E[worst]), v[largest])
