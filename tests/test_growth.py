"""Growth rates against closed forms, dense matrices and made-up Brownian motions."""

import math
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from scipy.special import psi

from causalrank import growth
from causalrank.feature_maps import FEATURE_MAPS
from causalrank.growth import (
    PAIRED,
    along_sequence,
    fit_line,
    scaled,
    slope_excess,
    top_exponent,
    with_decay,
)
from causalrank.intervals import mean_interval

CHAINS = 16 * PAIRED
ELU = FEATURE_MAPS["elu_plus_one"]


def normal(
    D: int, phi: Callable = lambda x: x, seed: int = 0, tied: bool = False
) -> Iterator[growth.Rows]:
    generator = np.random.default_rng(seed)
    while True:
        q, k = generator.standard_normal((2, CHAINS, D))
        yield phi(q), phi(q if tied else k)


def projections(F: np.ndarray, G: np.ndarray) -> list[np.ndarray]:
    return [np.eye(len(f)) - np.outer(g, f) / (f @ g) for f, g in zip(F, G, strict=True)]


def within(exponent: growth.Exponent, expected: float) -> bool:
    """Whether a number lies in an interval half as wide again: four standard errors, P = 0.001."""
    half = (exponent.high - exponent.low) / 2
    return abs(exponent.value - expected) < 2 * half


@pytest.mark.parametrize("D", [2, 3, 16])
def test_tied_rows_shrink_by_the_sine_of_a_random_angle(D):
    """|P s|^2 / |s|^2 = 1 - cos^2 with cos^2 ~ Beta(1/2, (D - 1) / 2), anew at each step; at D = 2
    the mean of ln |sin| is -ln 2."""
    exact = (psi((D - 1) / 2) - psi(D / 2)) / 2
    if D == 2:
        assert exact == pytest.approx(-math.log(2))
    found = top_exponent(normal(D, tied=True), 200)
    assert within(found, exact)
    assert found.high - found.low < 0.03 * abs(exact)


@pytest.mark.parametrize("phi", [lambda x: x, ELU], ids=["identity", "elu_plus_one"])
def test_independent_rows_do_not_grow_in_two_dimensions(phi):
    """There P = f' g'^T / f . g, primes being quarter turns, and g'_(i+1) . f'_i = g_(i+1) . f_i:
    lambda = E ln |g_(i+1) . f_i| - E ln |g_i . f_i| = 0."""
    found = top_exponent(normal(2, phi), 400)
    assert within(found, 0.0)
    assert found.high - found.low < 0.02


def test_variance_is_that_of_independent_steps():
    """Tied normal rows at D = 3: cos is uniform on [-1, 1] by Archimedes, and
    Var ln sqrt(1 - x^2) = 1 - pi^2 / 12, from E = ln 2 - 1 and E ln^2 (by parts)."""
    x = (np.arange(10**6) + 0.5) / 10**6
    exact = np.log1p(-(x**2)).var() / 4
    assert exact == pytest.approx(1 - math.pi**2 / 12, rel=1e-4)
    found = top_exponent(normal(3, tied=True), 200)
    assert found.variance == pytest.approx(exact, rel=4 * math.sqrt(2 / CHAINS))


def test_elu_plus_one_grows_as_recorded_in_a_trial():
    found = top_exponent(normal(64, ELU), 128)
    assert found.value == pytest.approx(0.00327, rel=0.04)
    assert found.high - found.low < 0.05 * found.value


def test_one_dimension_has_no_growth():
    assert top_exponent(normal(1, ELU), 1) == growth.NO_GROWTH
    assert growth.NO_GROWTH.value == -math.inf
    F, G = np.random.default_rng(0).standard_normal((2, 8, 1))
    assert along_sequence(F, G) == growth.NO_GROWTH


@pytest.mark.parametrize("D", [1, 4])
def test_a_zero_on_the_diagonal_leaves_the_exponent_undefined(D):
    found = top_exponent(normal(D, FEATURE_MAPS["relu"]), 8)
    assert math.isnan(found.value) and math.isnan(found.low) and math.isnan(found.variance)
    count = int(found.reason.split()[-4])
    assert count == pytest.approx(CHAINS * 0.75**D, abs=4 * math.sqrt(CHAINS) / 2)
    F, G = ELU(np.random.default_rng(0).standard_normal((2, 40, D)))
    F[7] = 0.0
    assert "at 1 of 40 tokens" in along_sequence(F, G).reason


def test_lengths_of_rows_change_no_bit():
    huge = (2.0**900, 2.0**-1000)
    rows = normal(4, ELU)
    lengthened = ((f * huge[0], g * huge[1]) for f, g in normal(4, ELU))
    assert top_exponent(lengthened, 5) == top_exponent(rows, 5)
    F, G = next(normal(4, ELU))
    assert along_sequence(F * huge[1], G * huge[0]) == along_sequence(F, G)
    small = scaled(np.array([[5e-324, 0.0], [0.0, 0.0], [-3.0, 1.0]]))
    assert small.tolist() == [[0.5, 0.0], [0.0, 0.0], [-0.75, 0.25]]


def test_steep_factors_neither_overflow_nor_warn():
    """Entries of exp over three hundred orders of magnitude; f . g is near 1e-200 for some rows."""

    def rows() -> Iterator[growth.Rows]:
        generator = np.random.default_rng(0)
        while True:
            yield tuple(np.exp(np.clip(60 * generator.standard_normal((2, CHAINS, 3)), -300, 300)))

    with np.errstate(all="raise", under="ignore"):
        found = top_exponent(rows(), 50)
    assert math.isfinite(found.value) and found.value > 1


def test_along_a_sequence_is_the_growth_of_the_product():
    F, G = ELU(np.random.default_rng(0).standard_normal((2, 96, 4)))
    found = along_sequence(F, G)
    product, norms = np.eye(4), []
    for P in projections(F, G):
        product = P @ product
        norms.append(math.log(np.linalg.norm(product)))
    batches = np.diff(np.array(norms)[3::4]) / 4  # the first four tokens left out, then 23 of four
    assert len(batches) == 23
    mean, half = mean_interval(batches)
    expected = (mean, mean - half, mean + half)
    assert (found.value, found.low, found.high) == pytest.approx(expected, rel=1e-9)
    assert found.variance == pytest.approx(batches.var(ddof=1) * 4, rel=1e-9)


def test_a_long_sequence_agrees_with_chains():
    F, G = FEATURE_MAPS["exp"](np.random.default_rng(1).standard_normal((2, 20_000, 8)))
    along, chains = along_sequence(F, G), top_exponent(normal(8, FEATURE_MAPS["exp"]), 200)
    half = math.hypot(along.high - along.low, chains.high - chains.low) / 2
    assert abs(along.value - chains.value) < 2 * half
    assert half < 0.15 * chains.value


def test_a_short_sequence_and_a_vanishing_product_say_so():
    F, G = ELU(np.random.default_rng(0).standard_normal((2, 15, 4)))
    assert along_sequence(F, G).reason == "15 tokens are fewer than 16"
    axes = np.tile(np.eye(2), (8, 1))
    assert along_sequence(axes, axes).reason == "the product of the projections vanishes"


def test_the_exponent_is_that_of_the_smallest_singular_value():
    """Dense matrices that double precision resolves, without and with a decay."""
    generator = np.random.default_rng(3)
    N = np.repeat([160, 224, 288, 352], 3)
    y = {1.0: [], 0.995: []}
    for n in N:
        F, G = ELU(generator.standard_normal((2, n, 16)))
        apart = np.subtract.outer(np.arange(n), np.arange(n))
        for decay, values in y.items():
            A = np.tril(F @ G.T) * decay ** np.maximum(apart, 0)
            sigma = np.linalg.svd(A, compute_uv=False)
            assert sigma[-1] > 1e4 * n * np.finfo(float).eps * sigma[0]
            values.append(-math.log(sigma[-1]))
    found = top_exponent(normal(16, ELU), 200)
    for decay, values in y.items():
        line = fit_line(N.astype(float), np.array(values))
        assert line.low < with_decay(found, decay).value < line.high
        assert line.high - line.low < found.value


def test_decay_shifts_the_exponent_and_nothing_else():
    free = growth.Exponent(0.03, 0.02, 0.05, 0.1)
    shifted = with_decay(free, 0.99)
    assert shifted.value == 0.03 + math.log(0.99)
    assert (shifted.high - shifted.low, shifted.variance) == pytest.approx((0.03, 0.1))
    critical = with_decay(free, math.exp(-free.value))
    assert critical.value == pytest.approx(0.0, abs=1e-16)
    assert with_decay(growth.NO_GROWTH, 0.9).value == -math.inf


def test_fit_line_finds_a_line_and_covers_the_slope_as_often_as_it_says():
    N = np.repeat([256.0, 512, 1024, 2048], 3)
    exact = fit_line(N, 0.5 * N - 3)
    assert (exact.slope, exact.low, exact.high) == pytest.approx((0.5, 0.5, 0.5))
    assert exact.y == pytest.approx(0.5 * exact.N - 3)
    assert exact.N == pytest.approx(len(N) / (1 / N).sum())
    generator = np.random.default_rng(0)
    lines = [
        fit_line(N, 0.01 * N + np.sqrt(N) * generator.standard_normal(len(N))) for _ in range(1000)
    ]
    covered = np.mean([line.low < 0.01 < line.high for line in lines])
    assert covered == pytest.approx(0.95, abs=4 * math.sqrt(0.95 * 0.05 / 1000))


@pytest.mark.parametrize("normalized", [False, True])
def test_slope_excess_is_the_derivative_of_what_it_says(normalized):
    """Finite differences of the integral over spans, and of that for the maximum."""
    exponent, variance, N = 0.01, 0.002, 200
    step = 1.0

    def spans(n: float) -> float:
        """i - j = l leaves j from 0 to n - l."""
        span = (np.arange(20_000) + 0.5) / 20_000 * n
        places = (n - span) ** 3 / 3 if normalized else n - span
        return math.log((np.exp(2 * exponent * span) * places).mean() * n) / 2

    def maximum(n: float) -> float:
        """int_0^n E[W_t^+] / t dt, with t = n s^2."""
        s = (np.arange(20_000) + 0.5) / 20_000
        t = n * s**2
        z = exponent * np.sqrt(t / variance)
        positive = exponent * t * growth.ndtr(z)
        positive += np.sqrt(variance * t) * np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)
        return float((positive / t * 2 * n * s).mean())

    expected = 0.0
    for count, function in ((1, spans), (2, maximum)):
        slope = (function(N + step) - function(N - step)) / (2 * step)
        expected += count * (slope / exponent - 1)
    found = slope_excess(exponent, variance, np.array([N, 10**9]), normalized)
    assert found == pytest.approx([expected, 0.0], rel=1e-3)
