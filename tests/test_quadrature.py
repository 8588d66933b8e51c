"""Stochastic Lanczos quadrature against all singular values."""

import numpy as np
import pytest
from scipy.stats import binom

from causalrank.feature_maps import FEATURE_MAPS
from causalrank.krylov import largest_singular_values
from causalrank.mixing import factored
from causalrank.quadrature import (
    SpectralMeasure,
    counts_above,
    effective_rank,
    nuclear_norm,
    spectral_measure,
)
from causalrank.scaled import Scaled
from causalrank.semiseparable import semiseparable
from causalrank.spectrum import numerical_rank, summarize

EPS = np.finfo(float).eps
MAPS = ["elu_plus_one", "exp", "relu", "softplus", "squared_relu", "identity"]


def case(name: str, N: int, d: int, seed: int = 0, row: bool = False):
    """The operator, the dense matrix's SVD, and a generator."""
    generator = np.random.default_rng([seed, N, d])
    F, G = map(FEATURE_MAPS[name], generator.standard_normal((2, N, d)))
    A = semiseparable(F, G)
    svd = np.linalg.svd(factored(F, G, "causal", "row" if row else "none"))
    return A.row_normalized() if row else A, svd, generator


def measured(A, generator, N: int, k: int = 2, probes: int = 8, steps: int = 30) -> SpectralMeasure:
    leading = largest_singular_values(
        A.product, A.transposed_product, generator.standard_normal(N), k
    )
    z = generator.choice([-1.0, 1.0], (N, probes))
    return spectral_measure(A.product, A.transposed_product, leading, z, steps)


def within(estimate, exact: float) -> bool:
    return abs(estimate.value - exact) <= estimate.error


def test_intervals_hold_the_truth():
    """For every quantity, independent draws of probes; a 95 % interval that only has to miss by
    chance misses more than the threshold in 66 draws with probability below 1e-6."""
    hits = {"nuclear": 0, "effective": 0, "above 1e-2": 0, "above 1e-1": 0}
    levels, trials = np.array([1e-2, 1e-1]), 0
    for i, name in enumerate(MAPS):
        for row in (False, True):
            if row and name == "identity":
                continue
            A, (_, sigma, _), generator = case(name, 200, 8 + i, row=row)
            exact = summarize(sigma)
            for _ in range(6):
                trials += 1
                m = measured(A, generator, 200, steps=20)
                found = nuclear_norm(m)
                hits["nuclear"] += within(found, exact.nuclear_norm / exact.sigma_max)
                hits["effective"] += within(effective_rank(m), exact.effective_rank)
                for level, count in zip(levels, counts_above(m, levels), strict=True):
                    key = f"above {level:.0e}".replace("e-0", "e-")
                    hits[key] += within(count, numerical_rank(sigma, level))
                assert found.error < 0.5 * found.value  # no interval that holds everything
    least = binom.ppf(1e-6, trials, 0.95)
    assert least > 0.75 * trials
    for quantity, hit in hits.items():
        assert hit >= least, quantity


@pytest.mark.parametrize("steps", [1, 3, 10])
@pytest.mark.parametrize("name", MAPS)
def test_gauss_and_radau_bound_each_probe(name, steps):
    """z^T (A^T A)^(1/2) z between the two rules, and sigma log sigma the other way round."""
    N, k = 120, 3
    A, (_, sigma, Vt), generator = case(name, N, 6)
    leading = largest_singular_values(
        A.product, A.transposed_product, generator.standard_normal(N), k
    )
    z = generator.standard_normal((N, 5))
    m = spectral_measure(A.product, A.transposed_product, leading, z, steps)
    assert m.gauss[0].shape == m.radau[1].shape == (5, steps)
    relative = sigma / sigma[0]
    weights = (Vt @ z) ** 2
    # Leading vectors are right to their residuals of 1e-10, z to its rounding: of |z|^2.
    slack = (1e-8 + 100 * N * EPS) * weights.sum(axis=0)

    def exact(f):
        return f(relative[k:]) @ weights[k:] + f(relative[:k]).sum()

    gauss, radau = m.sums(lambda x: x)
    assert (radau <= exact(lambda x: x) + slack).all()
    assert (exact(lambda x: x) <= gauss + slack).all()
    assert (gauss - radau > 10 * slack).all() or steps == 10

    def entropy(x):
        return x * np.log(np.where(x > 0, x, 1.0))

    gauss, radau = m.sums(entropy)
    assert (gauss <= exact(entropy) + slack).all()
    assert (exact(entropy) <= radau + slack).all()
    # Both rules hold all of the mass, and Gauss the second moment, in one step.
    for nodes, w in (m.gauss, m.radau):
        assert (w >= 0).all() and (nodes >= 0).all()
    np.testing.assert_allclose(m.gauss[1].sum(axis=1), weights[k:].sum(axis=0), rtol=1e-8)
    second = (m.gauss[1] * m.gauss[0] ** 2).sum(axis=1)
    np.testing.assert_allclose(second, (relative[k:] ** 2) @ weights[k:], rtol=1e-7)


@pytest.mark.filterwarnings("error")
def test_scale_and_exponent_change_no_ratio():
    A, (_, sigma, _), _ = case("exp", 80, 4)
    estimates = []
    for power in (0, 4000):
        pair = [
            lambda x, f=f, p=power: Scaled(f(x).mantissa, f(x).exponent + p)
            for f in (A.product, A.transposed_product)
        ]
        generator = np.random.default_rng(5)
        leading = largest_singular_values(*pair, generator.standard_normal(80))
        m = spectral_measure(*pair, leading, generator.choice([-1.0, 1.0], (80, 4)), 20)
        estimates.append((nuclear_norm(m), effective_rank(m)))
    assert estimates[0] == estimates[1]
    assert abs(estimates[0][0].value - sigma.sum() / sigma[0]) <= 3 * estimates[0][0].error


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("N", [1, 2, 3])
def test_nothing_is_left_beside_the_leading_triplets(N):
    """Fewer directions than steps: all of the sum is known, and the rest is rounding."""
    A, (_, sigma, _), generator = case("exp", N, 2)
    m = measured(A, generator, N, k=N, probes=3, steps=5)
    assert nuclear_norm(m).value == pytest.approx(sigma.sum() / sigma[0], rel=1e-8)
    assert nuclear_norm(m).error <= 1e-8 * sigma.sum() / sigma[0]
    assert effective_rank(m).value == pytest.approx(summarize(sigma).effective_rank, rel=1e-6)
    assert counts_above(m, np.array([0.0]))[0].value == pytest.approx(N, abs=1e-8)


@pytest.mark.filterwarnings("error")
def test_more_steps_than_directions():
    """Past the end of a Krylov space nodes repeat, and the rules agree with the quadratic form."""
    A, (_, sigma, Vt), generator = case("softplus", 6, 3)
    leading = largest_singular_values(
        A.product, A.transposed_product, generator.standard_normal(6), 1
    )
    z = generator.standard_normal((6, 3))
    m = spectral_measure(A.product, A.transposed_product, leading, z, 20)
    weights = (Vt @ z) ** 2
    exact = (sigma[1:] / sigma[0]) @ weights[1:] + 1.0
    for found in m.sums(lambda x: x):
        np.testing.assert_allclose(found, exact, rtol=0, atol=1e-7 * weights.sum())


def test_exact_measures():
    """Known nodes leave no error but the sample's, which is none where all probes agree."""
    nodes, weights = np.array([[0.5, 0.25], [0.5, 0.25]]), np.array([[2.0, 4.0], [2.0, 4.0]])
    m = SpectralMeasure((nodes, weights), (nodes, weights), np.ones(1))
    sigma = np.array([1.0, 0.5, 0.5, 0.25, 0.25, 0.25, 0.25])
    assert nuclear_norm(m).value == pytest.approx(sigma.sum())
    assert effective_rank(m).value == pytest.approx(summarize(sigma).effective_rank)
    counts = counts_above(m, np.array([0.9, 0.5, 0.3, 0.1]))
    assert [c.value for c in counts] == pytest.approx([1, 1, 3, 7])
    estimates = (nuclear_norm(m), effective_rank(m), *counts)
    assert all(abs(e.error) <= 32 * EPS * e.value for e in estimates)
