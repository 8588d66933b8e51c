"""The largest singular values of an operator, by Golub-Kahan-Lanczos bidiagonalization.

On a matrix's inverse it gives the smallest ones. Golub and Kahan 1965; the residuals and the
stopping rule as in Golub and Van Loan 2013, section 10.4; one-sided reorthogonalization as in Simon
and Zha 2000. An operator is a pair of functions, x -> A x and y -> A^T y, from doubles to `Scaled`.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .scaled import Scaled

Apply = Callable[[np.ndarray], Scaled]

TOLERANCE = 1e-10
MAX_STEPS = 200
EVERY = 16
"""Steps between tests for convergence, after as many of which each was tested."""


@dataclass(frozen=True)
class SingularTriplets:
    """The k largest: values (k,) with their exponent, right vectors (k, N), residuals (k,).

    Value i is values_i * 2^exponent. residual_i is ||A^T u_i - sigma_i v_i|| over sigma_i, with
    A v_i = sigma_i u_i: a singular value of A lies within that relative distance of sigma_i,
    up to the rounding of A's products. Left vectors are A v_i / sigma_i.
    """

    values: np.ndarray
    exponent: int
    right: np.ndarray
    residuals: np.ndarray
    steps: int

    @property
    def log10(self) -> np.ndarray:
        """log10 of the singular values."""
        with np.errstate(divide="ignore"):
            return (np.log2(self.values) + self.exponent) * np.log10(2.0)


def largest_singular_values(
    multiply: Apply,
    multiply_transposed: Apply,
    start: np.ndarray,
    k: int = 1,
    tolerance: float = TOLERANCE,
    max_steps: int = MAX_STEPS,
) -> SingularTriplets:
    """The k largest singular values and right vectors, from a start vector of shape (N,).

    Stops when all k residuals are below `tolerance`, or after max_steps; the residuals say which.
    The first product sets a power of two that all others are divided by: a random start has a
    part along the leading vector of about N^(-1/2), so what follows stays in a double's range.
    Fewer than k triplets are returned where the start's Krylov space ends earlier, as for N < k.
    """
    N = len(start)
    steps = min(max_steps, N)
    V = np.empty((min(steps, 16), N))
    V[0] = start / np.linalg.norm(start)
    first = multiply(V[0])
    exponent = first.largest_exponent()
    u = first.over_power(exponent)
    alphas, betas = [float(np.linalg.norm(u))], []
    if alphas[0] == 0.0:
        return SingularTriplets(np.zeros(1), 0, V[:1].copy(), np.zeros(1), 1)
    u /= alphas[0]
    j = 0
    while True:
        w = multiply_transposed(u).over_power(exponent)
        w -= alphas[-1] * V[j]
        for _ in range(2):
            w -= (V[: j + 1] @ w) @ V[: j + 1]
        beta = float(np.linalg.norm(w))
        ended = j + 1 == steps or beta <= np.finfo(float).eps * max(alphas)
        if ended or j < EVERY or j % EVERY == 0:
            left, values, right = np.linalg.svd(_bidiagonal(alphas, betas))
            kept = min(k, j + 1)
            with np.errstate(divide="ignore", invalid="ignore"):
                residuals = beta * np.abs(left[j, :kept]) / values[:kept]
            if ended or (kept == k and (residuals <= tolerance).all()):
                vectors = right[:kept] @ V[: j + 1]
                return SingularTriplets(values[:kept], exponent, vectors, residuals, j + 1)
        betas.append(beta)
        if j + 1 == len(V):
            V = np.concatenate([V, np.empty((min(len(V), steps - len(V)), N))])
        V[j + 1] = w / beta
        u = multiply(V[j + 1]).over_power(exponent) - beta * u
        alphas.append(float(np.linalg.norm(u)))
        if alphas[-1] > 0.0:  # of a singular matrix; a zero u ends the space at the next step
            u /= alphas[-1]
        j += 1


def _bidiagonal(alphas: list[float], betas: list[float]) -> np.ndarray:
    """B of A V = U B: upper bidiagonal."""
    return np.diag(alphas) + np.diag(betas, 1)
