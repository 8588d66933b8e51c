"""Sums over all singular values of an operator, by stochastic Lanczos quadrature.

tr f(A^T A) = E[z^T f(A^T A) z] for random z with independent entries of mean 0 and variance 1.
From z, Golub-Kahan-Lanczos gives a bidiagonal B, and Gauss quadrature makes of it
z^T f(A^T A) z = ||z||^2 sum_i tau_i^2 f(theta_i^2), with theta_i the singular values of B and tau_i
the first entries of its right singular vectors (Golub and Meurant 2010; Ubaru, Chen and Saad 2017).
The leading triplets, once known, are taken out of z and counted exactly: they make most of the
variance.

B with its last column kept gives the Gauss-Radau rule with a node at zero. The even derivatives of
sqrt(t) are negative and the odd ones positive, so Gauss bounds a sum of singular values from above
and Gauss-Radau from below; for sigma log(sigma) with sigma <= 1 it is the other way round (ibid.,
theorem 6.4). So the intervals here hold the error of the quadrature, and nominally, by
a t interval of few probes, 95 % of the sample's; the effective rank's is linearized.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import stdtrit

from .estimate import Estimate
from .krylov import Apply, SingularTriplets
from .semiseparable import Semiseparable

Function = Callable[[np.ndarray], np.ndarray]

LEADING, PROBES, STEPS = 8, 8, 60
"""What `sampled_measure` takes: triplets that are counted exactly, random signs, and steps."""
CONVERGED = 1e-8
"""The largest relative residual of such a triplet."""


@dataclass(frozen=True)
class SpectralMeasure:
    """Singular values relative to the largest one, as nodes with weights.

    `gauss` and `radau` are pairs of nodes and weights, each of shape (probes, nodes); the leading
    singular values, shape (k,), count once each.
    """

    gauss: tuple[np.ndarray, np.ndarray]
    radau: tuple[np.ndarray, np.ndarray]
    leading: np.ndarray

    def sums(self, f: Function) -> tuple[np.ndarray, np.ndarray]:
        """Each probe's sum of f(sigma / sigma_max), by Gauss and by Gauss-Radau: (probes,) each."""
        known = f(self.leading).sum()
        return tuple((w * f(nodes)).sum(axis=1) + known for nodes, w in (self.gauss, self.radau))


def spectral_measure(
    multiply: Apply,
    multiply_transposed: Apply,
    leading: SingularTriplets,
    probes: np.ndarray,
    steps: int,
) -> SpectralMeasure:
    """The measure from random `probes` of shape (N, m), after some steps of the recurrence.

    No basis is kept: without reorthogonalization a node may come several times, and its weights
    add up (Greenbaum 1989). Memory is that of a few blocks of probes.
    """
    m = probes.shape[1]
    exponent = leading.exponent
    v = probes - leading.right.T @ (leading.right @ probes)
    masses = (v * v).sum(axis=0)
    v = v / np.sqrt(np.where(masses > 0, masses, 1.0))
    alphas, betas = np.zeros((m, steps)), np.zeros((m, steps))
    u, beta = np.zeros_like(v), np.zeros(m)
    for j in range(steps):
        u = multiply(v).over_power(exponent) - beta * u
        alphas[:, j] = alpha = np.linalg.norm(u, axis=0)
        u /= np.where(alpha > 0, alpha, 1.0)
        v = multiply_transposed(u).over_power(exponent) - alpha * v
        betas[:, j] = beta = np.linalg.norm(v, axis=0)
        v /= np.where(beta > 0, beta, 1.0)
    B = np.zeros((m, steps, steps + 1))
    i = np.arange(steps)
    B[:, i, i], B[:, i, i + 1] = alphas, betas
    largest = float(leading.values[0])
    rules = []
    for columns in (steps, steps + 1):
        _, nodes, right = np.linalg.svd(B[:, :, :columns], full_matrices=False)
        rules.append((nodes / largest, masses[:, None] * right[:, :, 0] ** 2))
    return SpectralMeasure(*rules, leading.values / largest)


def sampled_measure(
    A: Semiseparable, leading: SingularTriplets, generator: np.random.Generator
) -> SpectralMeasure:
    """The measure of a causal mixing matrix, from probes of random signs.

    Of the leading triplets, those count exactly that have converged, and the first one always.
    """
    converged = leading.residuals <= CONVERGED
    converged[0] = True
    leading = replace(
        leading,
        values=leading.values[converged],
        right=leading.right[converged],
        residuals=leading.residuals[converged],
    )
    probes = generator.choice([-1.0, 1.0], (A.N, PROBES))
    return spectral_measure(A.product, A.transposed_product, leading, probes, STEPS)


def _half_width(samples: np.ndarray) -> float:
    """Of the mean's 95 % interval, for independent samples of shape (n,), n > 1."""
    n = len(samples)
    return float(stdtrit(n - 1, 0.975) * samples.std(ddof=1) / np.sqrt(n))


def nuclear_norm(measure: SpectralMeasure) -> Estimate:
    """The sum of the singular values over the largest one."""
    upper, lower = measure.sums(lambda sigma: sigma)
    high = float(upper.mean()) + _half_width(upper)
    low = float(lower.mean()) - _half_width(lower)
    return Estimate((high + low) / 2, (high - low) / 2)


def effective_rank(measure: SpectralMeasure) -> Estimate:
    """exp of the entropy log(x) - y / x, with x = sum sigma and y = sum sigma log sigma.

    Gauss and Gauss-Radau bound x and y; over their box the entropy is largest at a corner, and
    smallest at one or at x = -y. The sample's error is that of the entropy's linear part.
    """
    upper_x, lower_x = measure.sums(lambda sigma: sigma)
    lower_y, upper_y = measure.sums(_xlogx)
    x_ends, y_ends = (lower_x.mean(), upper_x.mean()), (lower_y.mean(), upper_y.mean())
    values = [np.log(x) - y / x for x in x_ends for y in y_ends]
    values += [1.0 + np.log(-y) for y in y_ends if x_ends[0] < -y < x_ends[1]]
    x, y = upper_x.mean(), lower_y.mean()
    slack = _half_width((upper_x - lower_y) / x + y * upper_x / x**2)
    low, high = np.exp(min(values) - slack), np.exp(max(values) + slack)
    return Estimate(float(high + low) / 2, float(high - low) / 2)


def counts_above(measure: SpectralMeasure, levels: np.ndarray) -> list[Estimate]:
    """How many singular values exceed each level times sigma_max.

    A step is not smooth: the interval spans both rules, but it bounds nothing.
    """
    estimates = []
    for level in levels:
        rules = measure.sums(lambda sigma, level=level: (sigma > level).astype(float))
        high = max(counts.mean() + _half_width(counts) for counts in rules)
        low = min(counts.mean() - _half_width(counts) for counts in rules)
        estimates.append(Estimate((high + low) / 2, (high - low) / 2))
    return estimates


def _xlogx(x: np.ndarray) -> np.ndarray:
    return x * np.log(np.where(x > 0, x, 1.0))
