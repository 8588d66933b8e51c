"""The error that an approximation of A makes at the output, and its bound.

For row i, with E = Ahat - A and the rows v_j of V,

    ||(E V)_i||_2 = ||sum_j E_ij v_j||_2 <= ||E_i||_1 max_j ||v_j||_2,

the triangle inequality, with equality when all v_j that E_i weighs are one vector up to the
signs of E_i.
"""

from dataclasses import dataclass

import numpy as np

from .precision import PRECISIONS


@dataclass(frozen=True)
class RowErrors:
    """Row by row, shape (N,): both sides and their ratio, NaN for a row without error."""

    row_l1_error: np.ndarray
    value_norm_max: float
    bound: np.ndarray
    output_error: np.ndarray
    tightness: np.ndarray
    violations: int


def rounding_allowance(N: int, d_v: int) -> float:
    """By how much, relatively, rounding alone can lift the computed left side over the right.

    Each side is a product or sum of at most N + d_v + 2 rounded operations of one sign, up to
    the factor gamma_n = n u / (1 - n u) (Higham 2002, lemma 3.1): the left side can come out
    too large by gamma_{N + d_v + 2}, because the error of an entry of E V is at most
    gamma_N (|E| |V|)_ij, whose row norms the bound dominates; the right side too small by as much.
    """
    u = PRECISIONS["float64"].epsilon / 2
    n = N + d_v + 2
    gamma = n * u / (1 - n * u)
    return (1 + gamma) / (1 - gamma) - 1


def row_errors(A: np.ndarray, A_hat: np.ndarray, v: np.ndarray) -> RowErrors:
    """Both sides of the bound, for A and A_hat of shape (N, N) and v of shape (N, d_v)."""
    E = A_hat - A
    l1 = np.abs(E).sum(axis=1)
    value_norm = float(_row_norms(v).max())
    bound = l1 * value_norm
    output = _row_norms(E @ v)
    tightness = np.divide(output, bound, out=np.full(len(bound), np.nan), where=bound > 0)
    violations = int(np.count_nonzero(output > bound * (1 + rounding_allowance(*v.shape))))
    return RowErrors(l1, value_norm, bound, output, tightness, violations)


def _row_norms(X: np.ndarray) -> np.ndarray:
    """Scaled by powers of two, which round nothing, so that no square leaves double precision."""
    exponent = np.frexp(np.abs(X).max(axis=1))[1]
    return np.ldexp(np.sqrt((np.ldexp(X, -exponent[:, None]) ** 2).sum(axis=1)), exponent)


def noisy(A: np.ndarray, strength: float, generator: np.random.Generator) -> np.ndarray:
    """A with each entry multiplied by 1 + strength * z, z standard normal: zeros stay zeros."""
    return A * (1.0 + strength * generator.standard_normal(A.shape))


def truncations(A: np.ndarray, ranks: list[int]) -> list[np.ndarray]:
    """A V_r V_r^T for each rank r, V_r the first r right singular vectors of A, shape (N, N).

    The best approximation of that rank (Eckart and Young 1936). V comes from the eigenvectors of
    A^T A, at half the cost of a singular value decomposition: they maximize tr(V^T A^T A V) but for
    2 r times the eigenvalues' error N eps sigma_1^2, by which the squared error in the Frobenius
    norm can exceed the best one. A rank of N or more gives A but for rounding.
    """
    from scipy.linalg import eigh

    scaled = np.ldexp(A, -int(np.frexp(np.abs(A).max())[1]))
    wanted = [max(0, len(A) - max(ranks)), len(A) - 1]
    V = eigh(scaled.T @ scaled, subset_by_index=wanted)[1][:, ::-1]
    return [(A @ V[:, :r]) @ V[:, :r].T for r in ranks]
