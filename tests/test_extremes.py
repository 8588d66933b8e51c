"""Condition numbers against enclosures in ball arithmetic, LAPACK and closed forms."""

import math

import numpy as np
import pytest
from flint import arb, arb_mat

from causalrank.baselines import (
    all_ones_condition_number,
    all_ones_singular_values,
    all_ones_stable_rank,
    cesaro_squared_frobenius_norm,
)
from causalrank.extremes import extremes
from causalrank.feature_maps import FEATURE_MAPS
from causalrank.krylov import TOLERANCE, largest_singular_values
from causalrank.mixing import factored
from causalrank.semiseparable import semiseparable
from test_semiseparable import draw_factors, entries, longhand_power, precision

EPS = np.finfo(float).eps


def start_of(N: int) -> np.ndarray:
    return np.random.default_rng(N).standard_normal(N)


def balls(F, G, gates, normalization: str) -> arb_mat:
    """The matrix that the stored doubles define, and for `row` its rows over their sums."""
    rows = [[arb(z) for z in row] for row in entries(F, G, gates).tolist()]
    if normalization == "row":
        totals = [sum(row, arb(0)) for row in rows]
        rows = [[z / t for z in row] for row, t in zip(rows, totals, strict=True)]
    return arb_mat(rows)


def inverse(A: arb_mat) -> arb_mat:
    """Of a lower-triangular matrix, by halves."""
    N = A.nrows()
    if N == 1:
        return arb_mat([[1 / A[0, 0]]])
    m, rows = N // 2, A.tolist()
    P, Q = inverse(arb_mat([r[:m] for r in rows[:m]])), inverse(arb_mat([r[m:] for r in rows[m:]]))
    corner = -1 * (Q * arb_mat([r[:m] for r in rows[m:]]) * P)
    zeros = [arb(0)] * (N - m)
    top = [row + zeros for row in P.tolist()]
    return arb_mat(top + [a + b for a, b in zip(corner.tolist(), Q.tolist(), strict=True)])


def log10_norm(B: arb_mat) -> tuple[arb, arb]:
    """Rigorous bounds of log10 ||B||_2, 1e-8 apart at most.

    With M = B^T B, from below the Rayleigh quotient of M at a column of M^p; from above
    ||B||^2 = ||M^p||_2^(1/p) <= ||M^p||_F^(1/p), p = 2, 4, 8, ...
    """
    N, M = B.ncols(), B.transpose() * B
    power = M
    for k in range(1, 30):
        power = power * power
        column = max(range(N), key=lambda i: float(power[i, i].log().mid()))
        x = arb_mat([[power[i, column]] for i in range(N)])
        low = (x.transpose() * (M * x))[0, 0] / (x.transpose() * x)[0, 0]
        high = sum((z * z for z in power.entries()), arb(0)).root(2 ** (k + 1))
        bounds = [z.log() / arb(10).log() / 2 for z in (low, high)]
        if bounds[1] - bounds[0] < 1e-8:
            return bounds[0], bounds[1]
    raise AssertionError("the enclosure stays wide")


@pytest.mark.parametrize(
    ("name", "N", "D", "power", "gate", "normalization", "at_least"),
    [
        ("identity", 48, 6, 1, None, "none", 10),
        ("identity", 60, 64, 1, None, "none", 15),
        ("identity", 48, 4, 1, 0.9, "none", 7),
        ("squared_relu", 48, 30, 1, None, "none", 8),
        ("squared_relu", 48, 30, 4, "feature", "row", 10),
        ("softplus", 48, 4, 8, None, "row", 10),
        ("exp", 48, 8, 4, None, "none", 20),
        ("exp", 48, 8, 8, None, "row", 50),
        ("exp", 48, 16, 12, 0.8, "row", 90),
        ("exp", 48, 16, 12, None, "none", 100),
    ],
)
def test_condition_number_lies_in_its_enclosure(name, N, D, power, gate, normalization, at_least):
    """Features are taken to a power, which makes growth steep at small N.

    Residuals leave 1e-10 and rounding far less; 1e-6 of the condition number is what is promised.
    """
    F, G = (X**power for X in draw_factors(6, N, D, name))
    gates = (
        None if gate is None else np.full(N, gate) if gate != "feature" else 0.5 + 0.5 * np.exp(-F)
    )
    A = semiseparable(F, G, gates)
    A = A.row_normalized() if normalization == "row" else A
    got = extremes(A, start_of(N))
    assert got.log10_condition > at_least
    assert got.residual_max <= TOLERANCE and got.residual_min <= TOLERANCE
    with precision(300 + 12 * math.ceil(got.log10_condition)):
        B = balls(F, G, gates, normalization)
        ends = {"max": log10_norm(B), "min": [-z for z in log10_norm(inverse(B))[::-1]]}
        promised = math.log10(1 + 1e-6) / 2
        for value, (low, high) in (
            (got.log10_sigma_max, ends["max"]),
            (got.log10_sigma_min, ends["min"]),
        ):
            assert low - promised < value < high + promised
        square = sum((z * z for z in B.entries()), arb(0))
        expected = float(square.log().mid()) / 2 / math.log(10)
    # Sums of N^2 squares of one sign, or of a few that cancel, and a logarithm of this size.
    assert abs(got.log10_frobenius_norm - expected) <= 2 * N * N * EPS * max(1, abs(expected))
    if got.log10_condition > 20:
        dense = semiseparable(F, G, gates).dense()
        told = np.linalg.cond(dense)
        assert not np.log10(told) > got.log10_condition - 1


@pytest.mark.parametrize(
    ("name", "N", "D", "normalization"),
    [
        ("elu_plus_one", 60, 3, "none"),
        ("elu_plus_one", 60, 3, "row"),
        ("exp", 100, 4, "row"),
        ("softplus", 100, 8, "none"),
        ("relu", 30, 16, "none"),
        ("identity", 15, 8, "none"),
        ("elu_plus_one", 1, 1, "none"),
    ],
)
def test_extremes_against_lapack(name, N, D, normalization):
    """LAPACK's values, and what rounds in the matrix before it, are off by about N eps sigma_1."""
    F, G = draw_factors(4, N, D, name)
    dense = factored(F, G, "causal", normalization)
    sigma = np.linalg.svd(dense, compute_uv=False)
    A = semiseparable(F, G)
    got = extremes(A.row_normalized() if normalization == "row" else A, start_of(N))
    error = TOLERANCE + N * EPS * sigma[0] / sigma
    assert error[-1] < 1e-2
    log10 = np.log10(sigma)
    assert abs(got.log10_sigma_max - log10[0]) <= error[0]
    assert abs(got.log10_sigma_min - log10[-1]) <= error[-1]
    assert abs(got.log10_condition - (log10[0] - log10[-1])) <= error[0] + error[-1]
    stable = (sigma @ sigma) / sigma[0] ** 2
    assert got.stable_rank == pytest.approx(stable, rel=4 * error[0], abs=0)
    assert got.log10_frobenius_norm == pytest.approx(np.log10(np.linalg.norm(sigma)), abs=error[0])


def test_extremes_against_lapack_at_512_tokens():
    N = 512
    F, G = draw_factors(4, N, 16, "elu_plus_one")
    dense = factored(F, G, "causal", "row")
    got = extremes(semiseparable(F, G).row_normalized(), start_of(N))
    top = np.linalg.norm(dense, 2)
    assert got.log10_sigma_max == pytest.approx(np.log10(top), abs=TOLERANCE + N * EPS)
    stable = (dense * dense).sum() / top**2
    assert got.stable_rank == pytest.approx(stable, rel=4 * (TOLERANCE + N * EPS))


@pytest.mark.parametrize("N", [1, 2, 60])
def test_all_ones(N):
    one = np.ones((N, 1))
    got = extremes(semiseparable(one, one), start_of(N))
    error = 2 * TOLERANCE + 8 * N * EPS
    assert abs(got.log10_sigma_max - np.log10(all_ones_singular_values(N)[0])) <= error
    assert got.stable_rank == pytest.approx(all_ones_stable_rank(N), rel=4 * error)
    assert got.residual_min <= TOLERANCE
    assert abs(got.log10_condition - np.log10(all_ones_condition_number(N))) <= error


@pytest.mark.parametrize("N", [500, 5000])
def test_least_singular_values_of_all_ones_crowd(N):
    """Near 1/2: the residual says how far Lanczos is, and a Ritz value is never beyond the end."""
    one = np.ones((N, 1))
    A = semiseparable(one, one, chunk=256)
    got = largest_singular_values(A.solve, A.transposed_solve, start_of(N), max_steps=40)
    exact = 1 / all_ones_singular_values(N)[-1]
    value = float(np.ldexp(got.values[0], got.exponent))
    assert got.residuals[0] > TOLERANCE
    assert value <= exact * (1 + 8 * N * EPS)
    assert exact <= value * (1 + got.residuals[0])


def test_cesaro():
    N = 500
    one = np.ones((N, 1))
    got = extremes(semiseparable(one, one).row_normalized(), start_of(N))
    half = np.log10(cesaro_squared_frobenius_norm(N)) / 2
    assert got.log10_frobenius_norm == pytest.approx(half, abs=2 * N * EPS)
    dense = np.tri(N) / np.arange(1, N + 1)[:, None]
    error = TOLERANCE + N * EPS
    assert got.log10_sigma_max == pytest.approx(np.log10(np.linalg.norm(dense, 2)), abs=error)
    # Hardy's inequality: the infinite matrix has norm 2.
    assert got.log10_sigma_max < np.log10(2)


@pytest.mark.parametrize("gate", [1e-12, 0.3, 0.9])
def test_a_constant_gate_bounds_both_ends(gate):
    """A^-1 = I - gate * shift, so 1 / (1 + gate) <= sigma <= 1 / (1 - gate), and the ends tend to
    these as N grows: 1 + gate^2 - 2 gate cos(theta) are the squares, theta within pi / N of 0, pi.
    """
    N = 60
    one = np.ones((N, 1))
    got = extremes(semiseparable(one, one, np.full(N, gate)), start_of(N))
    ends = np.array([1 / (1 - gate), 1 / (1 + gate)])
    found = 10.0 ** np.array([got.log10_sigma_max, got.log10_sigma_min])
    residuals = np.array([got.residual_max, got.residual_min])
    assert found[0] <= ends[0] * (1 + N * EPS) and found[1] >= ends[1] * (1 - N * EPS)
    least, most = 1 - gate, 1 + gate
    shift = 2 * gate * (1 - np.cos(2 * np.pi / N))
    allowed = np.array([shift / least**2, shift / most**2]) + residuals + N * EPS
    assert (np.abs(found / ends - 1) <= allowed).all()


@pytest.mark.parametrize(("name", "power", "D"), [("identity", 1, 8), ("exp", 2, 4)])
def test_condition_numbers_past_any_float(name, power, D):
    """At N = 4000, against power iteration on A^-1 in longhand floating point with renormalization
    in every token. Both are Rayleigh quotients, below the truth, from different starts."""
    N = 4000
    F, G = (X**power for X in draw_factors(1, N, D, name))
    found = [extremes(semiseparable(F, G, chunk=chunk), start_of(N)) for chunk in (64, 100)]
    assert max(found[0].residual_min, found[0].residual_max) <= TOLERANCE
    assert 400 < found[0].log10_condition < math.inf
    # An ulp of the logarithm for each of few operations, beside the residuals.
    atol = 4 * TOLERANCE + 16 * EPS * found[0].log10_condition
    assert abs(found[0].log10_condition - found[1].log10_condition) <= atol
    log10 = longhand_power(F, G)
    assert abs(log10 + found[0].log10_sigma_min) < 1e-6


@pytest.mark.parametrize("normalization", ["none", "row"])
def test_a_zero_on_the_diagonal_is_an_exact_zero(normalization):
    F, G = draw_factors(0, 20, 2, "exp")
    F[5], G[5] = [1.0, 0.0], [0.0, 3.0]
    A = semiseparable(F, G)
    got = extremes(A.row_normalized() if normalization == "row" else A, start_of(20))
    assert (got.log10_sigma_min, got.log10_condition) == (-math.inf, math.inf)
    dense = factored(F, G, "causal", normalization)
    top = np.log10(np.linalg.norm(dense, 2))
    assert got.log10_sigma_max == pytest.approx(top, abs=TOLERANCE + 20 * EPS)
    assert np.isfinite(got.stable_rank)


@pytest.mark.filterwarnings("error")
def test_zero_matrix_has_no_condition_number():
    got = extremes(semiseparable(np.zeros((4, 2)), np.ones((4, 2))), start_of(4))
    assert got.log10_sigma_max == got.log10_sigma_min == got.log10_frobenius_norm == -math.inf
    assert math.isnan(got.log10_condition) and math.isnan(got.stable_rank)


@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_a_scale_cancels(scale):
    F, G = draw_factors(2, 100, 4, "exp")
    one = extremes(semiseparable(F, G), start_of(100))
    got = extremes(semiseparable(scale * F, scale * G), start_of(100))
    # Scaling rounds each entry once more, on either side of the diagonal's D positive terms.
    growth = 10**one.log10_condition
    assert one.log10_condition < 9
    assert abs(got.log10_condition - one.log10_condition) <= 2 * TOLERANCE + 100 * EPS * growth
    shift = 2 * np.log10(scale)
    assert abs(got.log10_sigma_max - one.log10_sigma_max - shift) <= 2 * TOLERANCE + 2048 * EPS


def ball_norm_of_solve(F: np.ndarray, G: np.ndarray, y: np.ndarray, bits: int) -> arb:
    """||A^-1 y|| by forward substitution in balls, token by token."""
    with precision(bits):
        state, square = [arb(0)] * F.shape[1], arb(0)
        for f, g, b in zip(F.tolist(), G.tolist(), y.tolist(), strict=True):
            f, g = ([arb(entry) for entry in row] for row in (f, g))
            seen = sum((a * s for a, s in zip(f, state, strict=True)), arb(0))
            x = (arb(b) - seen) / sum((a * c for a, c in zip(f, g, strict=True)), arb(0))
            square += x * x
            state = [s + c * x for s, c in zip(state, g, strict=True)]
        return square.sqrt()


@pytest.mark.parametrize(
    ("name", "d", "N", "at_least"),
    [("exp", 16, 2048, 60), ("relu", 64, 2048, 60), ("identity", 8, 1500, 390)],
)
def test_norms_of_the_inverse_far_beyond_double(name, d, N, at_least):
    """1 / sigma_min is at least ||A^-1 v|| / ||v|| for any v: a proof, in balls.

    With Lanczos' own v that bound is 1 / sigma_min but for the square of its residual. Dense
    singular values say 1e16 to 1e21 here. A solve's relative error is N eps times a moderate
    number: 1e-9 leaves room for a factor of a thousand, and is a thousandth of what is promised.
    """
    q, k = np.random.default_rng(0).standard_normal((2, N, d))
    F, G = FEATURE_MAPS[name](q), FEATURE_MAPS[name](k)
    A = semiseparable(F, G)
    start = np.random.default_rng(1).standard_normal(N)
    found = largest_singular_values(A.solve, A.transposed_solve, start)
    assert found.residuals[0] < 1e-10 and found.log10[0] > at_least
    v = found.right[0]
    # A ball widens by at most a few bits a token; the growth itself takes 3.33 bits a decade.
    norm = ball_norm_of_solve(F, G, v, int(4 * N + 8 * found.log10[0]))
    assert norm.rad() < norm.mid() * 1e-12
    bound = (norm.log() / arb(10).log()).mid() - np.log10(np.linalg.norm(v))
    assert abs(float(bound) - found.log10[0]) < 1e-9 / np.log(10)


@pytest.mark.parametrize("name", ["elu_plus_one", "softplus"])
def test_ends_against_lapack_at_a_thousand_tokens(name):
    """sigma_max to 1e-10, as promised; sigma_min to what Weyl's inequality allows LAPACK."""
    N = 1024
    q, k = np.random.default_rng(2).standard_normal((2, N, 64))
    F, G = FEATURE_MAPS[name](q), FEATURE_MAPS[name](k)
    for A in (semiseparable(F, G), semiseparable(F, G).row_normalized()):
        found = extremes(A, start_of(N))
        sigma = np.linalg.svd(A.dense(), compute_uv=False)
        assert 10**found.log10_sigma_max == pytest.approx(sigma[0], rel=1e-10)
        assert 10**found.log10_sigma_min == pytest.approx(sigma[-1], abs=N * EPS * sigma[0])
        stable = (sigma / sigma[0]) @ (sigma / sigma[0])
        assert found.stable_rank == pytest.approx(stable, rel=1e-10)


@pytest.mark.parametrize(
    ("scale", "d", "N"), [(1, 16, 300), (10, 2, 120), (15, 2, 80), (30, 4, 60)]
)
def test_the_solves_own_rounding_is_seen(scale, d, N):
    """exp of large entries: off-diagonal entries dwarf pivots, and Lanczos' residual shows nothing.

    The engine's ||A^-1 v|| against that of balls, for its own v. The estimate is random, and of
    first order: a factor of 1000 is granted where it is small, and it must not be small where the
    engine is wrong by more than a thousandth.
    """
    for seed in range(3):
        rng = np.random.default_rng(seed)
        F, G = np.exp(scale * rng.standard_normal((2, N, d)))
        A = semiseparable(F, G)
        ends = extremes(A, start_of(N))
        found = largest_singular_values(A.solve, A.transposed_solve, start_of(N))
        norm = ball_norm_of_solve(F, G, found.right[0], 600 * N)
        assert norm.rad() < norm.mid() * 1e-12
        wrong = abs(float((norm.log() / arb(10).log()).mid()) - found.log10[0]) * math.log(10)
        assert wrong < 1000 * ends.rounding_min + 1e-12
        assert wrong < 1e-3 or ends.rounding_min > 1e-3
        assert scale > 1 or ends.rounding_min < 1e-11
