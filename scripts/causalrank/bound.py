"""The error that an approximation of A makes at the output, and three bounds on it.

For row i, with E = Ahat - A and the rows v_j of V,

    ||(E V)_i||_2 = ||sum_j E_ij v_j||_2 <= ||E_i||_1 max_j ||v_j||_2,

the triangle inequality, with equality when all v_j that E_i weighs are one vector up to the
signs of E_i. Coarser, and alike for all rows, are

    ||(E V)_i||_2 <= N max_ij |E_ij| max_j ||v_j||_2   and   ||(E V)_i||_2 <= ||E||_2 ||V||_2.
"""

from dataclasses import dataclass

import numpy as np

from .norms import frobenius_norm, row_norms, scaled_down, spectral_norm
from .precision import PRECISIONS


@dataclass(frozen=True)
class Original:
    """What is approximated: A (N, N), v (N, d_v), and norms that do not depend on Ahat.

    `output_norm` is the Frobenius norm of A V, `value_norm_max` the largest ||v_j||_2.
    """

    A: np.ndarray
    v: np.ndarray
    frobenius_norm: float
    output_norm: float
    value_norm_max: float
    value_spectral_norm: float


@dataclass(frozen=True)
class RowErrors:
    """Row by row, shape (N,): both sides and their ratio, NaN for a row without error.

    The other bounds are numbers, and so are the norms of E; relative errors are
    ||E||_F / ||A||_F and ||E V||_F / ||A V||_F, NaN where the denominator is zero.
    """

    row_l1_error: np.ndarray
    bound: np.ndarray
    output_error: np.ndarray
    tightness: np.ndarray
    entrywise_bound: float
    spectral_bound: float
    frobenius_error: float
    spectral_error: float
    relative_frobenius_error: float
    relative_output_error: float
    violations: int
    entrywise_violations: int
    spectral_violations: int


def original(A: np.ndarray, v: np.ndarray) -> Original:
    """A, shape (N, N), and v, shape (N, d_v), with their norms."""
    scaled, exponent = scaled_down(v)
    gram = np.linalg.eigvalsh(scaled.T @ scaled)
    return Original(
        A,
        v,
        frobenius_norm(A),
        frobenius_norm(A @ v),
        float(row_norms(v).max()),
        float(np.ldexp(np.sqrt(max(gram[-1], 0.0)), exponent)),
    )


def _gamma(n: int) -> float:
    """n u / (1 - n u): the relative error of n rounded operations (Higham 2002, lemma 3.1)."""
    u = PRECISIONS["float64"].epsilon / 2
    return n * u / (1 - n * u)


def rounding_allowance(N: int, d_v: int) -> float:
    """By how much, relatively, rounding alone can lift the computed left side over the right.

    Each side takes at most N + d_v + 2 rounded operations: the left side can come out too large by
    gamma_{N + d_v + 2} times the bound, because the error of an entry of E V is at most
    gamma_N (|E| |V|)_ij, whose row norms the bound dominates; the right side, of nonnegative terms,
    too small by as much. Four more a side are for the roundings of the allowance itself and of its
    product with the bound. The entrywise bound dominates those too, with fewer operations. No
    product of E and V may underflow.
    """
    gamma = _gamma(N + d_v + 6)
    return (1 + gamma) / (1 - gamma) - 1


def spectral_allowance(N: int, d_v: int) -> float:
    """The same for the spectral bound, whose ||E||_2 is estimated from below.

    The estimate is at least the largest computed row norm, so the right side is no less than
    ||E_i||_2 ||V||_2 >= ||(E V)_i||_2 but for rounding, however few steps Lanczos made. With
    gamma = gamma_{N + d_v + 6}, for the same reasons: the computed E V errs in row i by
    gamma || |E_i| |V| ||_2 <= gamma ||E_i||_2 sqrt(d_v) ||V||_2; its norm and the row norm by a
    factor of 1 + gamma; the Gram matrix of V by gamma ||V||_F^2 <= gamma d_v ||V||_2^2, and its
    largest eigenvalue, taking d_v^2 u for LAPACK's backward error, by no more again.
    """
    gamma = _gamma(N + d_v + 6)
    left = (1 + gamma) * (1 + np.sqrt(d_v) * gamma)
    return float(left / ((1 - gamma) * (1 - 2 * d_v * gamma)) - 1)


def count_violations(output_error: np.ndarray, bound: np.ndarray | float, allowance: float) -> int:
    """In how many rows the output error, shape (N,), exceeds the bound by more than rounding."""
    return int(np.count_nonzero(output_error > bound * (1 + allowance)))


def row_errors(exact: Original, A_hat: np.ndarray, start: np.ndarray) -> RowErrors:
    """Both sides of the bounds for A_hat, shape (N, N). Lanczos begins with `start`, shape (N,)."""
    E = A_hat - exact.A
    products = E @ exact.v
    output = row_norms(products)
    size = np.abs(E)
    l1 = size.sum(axis=1)
    largest = float(size.max())
    bound = l1 * exact.value_norm_max
    tightness = np.divide(output, bound, out=np.full(len(bound), np.nan), where=bound > 0)

    scaled, exponent = scaled_down(E)
    norms = np.sqrt(np.einsum("ij,ij->i", scaled, scaled))
    frobenius = float(np.ldexp(np.linalg.norm(norms), exponent))
    spectral = max(spectral_norm(scaled, start), float(norms.max()))
    spectral = float(np.ldexp(spectral, exponent))
    entrywise_bound = len(E) * largest * exact.value_norm_max
    spectral_bound = spectral * exact.value_spectral_norm

    allowance = rounding_allowance(*exact.v.shape)
    return RowErrors(
        row_l1_error=l1,
        bound=bound,
        output_error=output,
        tightness=tightness,
        entrywise_bound=entrywise_bound,
        spectral_bound=spectral_bound,
        frobenius_error=frobenius,
        spectral_error=spectral,
        relative_frobenius_error=_ratio(frobenius, exact.frobenius_norm),
        relative_output_error=_ratio(frobenius_norm(products), exact.output_norm),
        violations=count_violations(output, bound, allowance),
        entrywise_violations=count_violations(output, entrywise_bound, allowance),
        spectral_violations=count_violations(
            output, spectral_bound, spectral_allowance(*exact.v.shape)
        ),
    )


def summarized(exact: Original, errors: RowErrors) -> dict[str, float | int | None]:
    """What a table says of all rows, by column; None for a share of nothing."""
    told = errors.tightness[~np.isnan(errors.tightness)]
    norm = exact.value_norm_max
    median, high = np.quantile(errors.output_error, [0.5, 0.95])
    largest = float(errors.output_error.max())
    errors_at_the_output = {
        "output": largest,
        "entrywise": errors.entrywise_bound,
        "spectral": errors.spectral_bound,
    }
    return {
        "row_l1_error_max": float(errors.row_l1_error.max()),
        "value_norm_max": norm,
        "bound_max": float(errors.bound.max()),
        "output_error_max": largest,
        "tightness_max": float(told.max()) if len(told) else None,
        "tightness_median": float(np.median(told)) if len(told) else None,
        "violations": errors.violations,
        "output_error_median": float(median),
        "output_error_q95": float(high),
        "entrywise_bound": errors.entrywise_bound,
        "spectral_bound": errors.spectral_bound,
        "entrywise_violations": errors.entrywise_violations,
        "spectral_violations": errors.spectral_violations,
        **{f"{k}_over_value": x / norm if norm else None for k, x in errors_at_the_output.items()},
        "frobenius_error": errors.frobenius_error,
        "spectral_error": errors.spectral_error,
        "relative_frobenius_error": errors.relative_frobenius_error,
        "relative_output_error": errors.relative_output_error,
    }


def _ratio(x: float, y: float) -> float:
    return x / y if y > 0.0 else float("nan")
