"""The structured operator against exact rational arithmetic, closed forms and dense matrices."""

import math
import tracemalloc
from contextlib import contextmanager

import numpy as np
import pytest
from flint import arb, ctx, fmpq, fmpq_mat
from hypothesis import given, settings
from hypothesis import strategies as st

from causalrank.baselines import cesaro_squared_frobenius_norm
from causalrank.blocks import KEPT, SLAB
from causalrank.feature_maps import FEATURE_MAPS
from causalrank.mixing import factored
from causalrank.scaled import Scaled
from causalrank.semiseparable import semiseparable

EPS = np.finfo(float).eps
MAPS = sorted(FEATURE_MAPS)
OPERATIONS = ["product", "transposed_product", "solve", "transposed_solve"]


def gamma(n: float) -> float:
    """The relative error of n roundings (Higham 2002, lemma 3.1)."""
    return n * EPS / 2 / (1 - n * EPS / 2)


def rational(x: float, exponent: int = 0) -> fmpq:
    p, q = float(x).as_integer_ratio()
    shift = int(exponent)
    return fmpq(p << max(shift, 0), q << max(-shift, 0))


def exactly(x: Scaled) -> list[list[fmpq]]:
    """Columns of a result."""
    mantissa, exponent = (y.reshape(len(y), -1).T.tolist() for y in (x.mantissa, x.exponent))
    return [list(map(rational, m, e)) for m, e in zip(mantissa, exponent, strict=True)]


def entries(F: np.ndarray, G: np.ndarray, gates: np.ndarray | None) -> fmpq_mat:
    """A_ij = sum_k F_ik G_jk gate_{j+1,k} ... gate_{i,k}, without rounding."""
    N, D = F.shape
    f, g = ([[rational(x) for x in row] for row in X.tolist()] for X in (F, G))
    A = fmpq_mat(N, N)
    steps = None if gates is None else np.broadcast_to(gates.reshape(N, -1), (N, D)).tolist()
    for j in range(N):
        carried = g[j]
        for i in range(j, N):
            if steps is not None and i > j:
                carried = [c * rational(s) for c, s in zip(carried, steps[i], strict=True)]
            A[i, j] = sum((a * b for a, b in zip(f[i], carried, strict=True)), fmpq(0))
    return A


def roundings(F: np.ndarray, gates: np.ndarray | None) -> float:
    """How many roundings a term F_ik gate G_jk x_j of a result passes, in units of eps / 2.

    Without gates: D + 1 in the block or in f . s, at most N in sums of terms and of states, and at
    most 6 in a division by a pivot (by its reciprocal, and of a sum that was rescaled). With them:
    log2 of a gate is right to an ulp, 2 of its modulus in these units, and the running sum of at
    most N of them is off by N times the sum L of all moduli; 2^x makes of these absolute errors
    relative ones, times ln 2. There are 2^x and products with it for each chunk, at most 12 N.
    """
    N, D = F.shape
    count = N + D + 7
    if gates is not None:
        L = np.abs(np.log2(gates.reshape(N, -1))).sum(axis=0).max()
        count += 12 * N + math.log(2) * 2 * (N + 2) * L
    return count


def check(F, G, gates, chunk, x, operation) -> None:
    """Products componentwise; solves by their componentwise backward error (Higham 2002, ch. 8)."""
    A = entries(F, G, gates)
    modulus = entries(np.abs(F), np.abs(G), gates)
    if operation.startswith("transposed"):
        A, modulus = A.transpose(), modulus.transpose()
    got = getattr(semiseparable(F, G, gates, chunk), operation)(x)
    assert got.mantissa.shape == got.exponent.shape == x.shape
    assert np.isfinite(got.mantissa).all()
    N, bound = len(F), rational(gamma(roundings(F, gates)))
    columns = exactly(Scaled(x, np.zeros(x.shape, dtype=int)))
    for given_column, got_column in zip(columns, exactly(got), strict=True):
        left, right = (fmpq_mat(N, 1, c) for c in (given_column, got_column))
        if operation.endswith("solve"):
            left, right = right, left
        terms = modulus * fmpq_mat(N, 1, [abs(z) for z in left.entries()])
        scale = [t + abs(z) for t, z in zip(terms.entries(), right.entries(), strict=True)]
        if operation.endswith("product"):
            scale = terms.entries()
        for error, s in zip((A * left - right).entries(), scale, strict=True):
            assert abs(error) <= bound * s


def draw_factors(seed: int, N: int, D: int, name: str) -> tuple[np.ndarray, np.ndarray]:
    q, k = np.random.default_rng(seed).standard_normal((2, N, D))
    return FEATURE_MAPS[name](q), FEATURE_MAPS[name](k)


@st.composite
def cases(draw):
    N, D = draw(st.integers(1, 12)), draw(st.integers(1, 3))
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    phi = FEATURE_MAPS[draw(st.sampled_from(MAPS))]
    F, G = map(phi, generator.standard_normal((2, N, D)))
    scales = draw(st.sampled_from(["none", "rows", "huge", "denormal", "opposite"]))
    if scales == "rows":
        F *= 10.0 ** generator.integers(-150, 150, (N, 1))
        G *= 10.0 ** generator.integers(-150, 150, (N, 1))
    elif scales == "huge":
        F, G = F * 1e300, G * 1e300
    elif scales == "denormal":
        F, G = F * 1e-310, G * 10.0 ** -draw(st.integers(300, 323))
    elif scales == "opposite":
        F, G = F * 1e-310, G * 1e300
    decay = draw(st.sampled_from(["none", "token", "feature", "tiny", "one tiny"]))
    gates = {
        "none": lambda: None,
        "token": lambda: generator.uniform(0.1, 1, N),
        "feature": lambda: generator.uniform(0.1, 1, (N, D)),
        "tiny": lambda: np.full(N, 1e-12),
        "one tiny": lambda: np.where(np.arange(N) == N // 2, 1e-90, 0.9),
    }[decay]()
    chunk = draw(st.sampled_from([1, 2, 3, 5, 64]))
    x = generator.standard_normal((N, draw(st.integers(1, 3))))
    kind = draw(st.sampled_from(["plain", "unit", "apart", "tiny", "huge", "vector"]))
    if kind == "unit":
        x[:] = np.eye(N)[:, [draw(st.integers(0, N - 1))]]
    elif kind == "apart":
        x *= 10.0 ** np.array([-290, 290, 0])[: x.shape[1]]
    elif kind == "tiny":
        x *= 1e-300
    elif kind == "huge":
        x *= 1e305
    elif kind == "vector":
        x = x[:, 0]
    return F, G, gates, chunk, x


@settings(max_examples=150)
@given(cases(), st.sampled_from(OPERATIONS))
def test_operations_against_rational_arithmetic(case, operation):
    F, G, gates, chunk, x = case
    A = semiseparable(F, G, gates, chunk)
    if operation.endswith("solve") and A.zeros.any():
        row = int(np.flatnonzero(A.zeros)[0])
        with pytest.raises(np.linalg.LinAlgError, match=rf"row {row} is zero"):
            getattr(A, operation)(x)
        return
    check(F, G, gates, chunk, x, operation)


@settings(max_examples=30)
@given(cases())
def test_norm_diagonal_and_entries_against_rational_arithmetic(case):
    """||A||_F^2 sums (sum_k f_k g_k)^2 term by term, in some order: N^2 more roundings."""
    F, G, gates, chunk, _ = case
    N, D = F.shape
    operator = semiseparable(F, G, gates, chunk)
    A, modulus = entries(F, G, gates), entries(np.abs(F), np.abs(G), gates)
    n = roundings(F, gates)

    norm = operator.squared_frobenius_norm()
    assert norm.mantissa.shape == ()
    error = rational(norm.mantissa, norm.exponent) - sum((z * z for z in A.entries()), fmpq(0))
    assert abs(error) <= rational(gamma(2 * n + N * N)) * sum(z * z for z in modulus.entries())

    diagonal = exactly(operator.diagonal())[0]
    columns = exactly(operator.product(np.eye(N)))
    for i in range(N):
        assert abs(diagonal[i] - A[i, i]) <= rational(gamma(D + 1)) * modulus[i, i]
        assert (A[i, i] == 0) == bool(operator.zeros[i])
        assert diagonal[i] == 0 or not operator.zeros[i]
        for j in range(N):
            assert abs(columns[j][i] - A[i, j]) <= rational(gamma(n)) * modulus[i, j]


@settings(max_examples=30)
@given(cases(), st.sampled_from(OPERATIONS))
def test_row_normalized_against_rational_arithmetic(case, operation):
    """Entries of one sign: the sums, the quotients and the products are each right to gamma."""
    F, G, gates, chunk, _ = case
    F, G = np.abs(F), np.abs(G)
    N = len(F)
    A, operator = entries(F, G, gates), semiseparable(F, G, gates, chunk).row_normalized()
    if operation.endswith("solve") and operator.zeros.any():
        return
    got = exactly(getattr(operator, operation)(np.eye(N)))
    expected = fmpq_mat(N, N)
    for i in range(N):
        total = sum((A[i, j] for j in range(N)), fmpq(0))
        for j in range(N):
            expected[i, j] = A[i, j] / total if total else fmpq(0)
    if operation.startswith("transposed"):
        expected = expected.transpose()
    left, right = fmpq_mat(N, N, [z for column in got for z in column]).transpose(), expected
    if operation.endswith("solve"):
        # The columns solve a matrix whose entries are right to gamma.
        moduli = fmpq_mat(N, N, [abs(z) for z in left.entries()])
        error, scale = expected * left - fmpq_mat(np.eye(N, dtype=int).tolist()), expected * moduli
    else:
        error, scale = left - right, right
    bound = rational(gamma(2 * roundings(F, gates) + 2))
    for e, s in zip(error.entries(), scale.entries(), strict=True):
        assert abs(e) <= bound * s


@pytest.mark.parametrize("decay", ["none", "token", "feature"])
@pytest.mark.parametrize("name", ["identity", "relu", "exp"])
def test_any_chunk_and_any_number_of_columns(name, decay):
    """Products are within gamma of one another; N is no multiple of any chunk but 1."""
    N, D = 131, 5
    F, G = draw_factors(0, N, D, name)
    generator = np.random.default_rng(1)
    gates = {"none": None, "token": generator.uniform(0.2, 1, N)}.get(decay, 0.9 + 0.1 * F**0)
    x, y = generator.standard_normal((2, N, 3))
    dense = semiseparable(F, G, gates).dense()
    if gates is None:
        bound = gamma(D) * np.tril(np.abs(F) @ np.abs(G).T)
        assert (np.abs(dense - factored(F, G, "causal", "none")) <= 2 * bound).all()
    modulus = semiseparable(np.abs(F), np.abs(G), gates).dense() * (1 + gamma(2 * N))
    n = roundings(F, gates)
    for chunk in (1, 2, 64, 1000):
        A = semiseparable(F, G, gates, chunk)
        product, transposed = A.product(x).over_power(0), A.transposed_product(y).over_power(0)
        # The dense matrix passes as many roundings as the product, and its own product N.
        bound = gamma(2 * n + N)
        assert (np.abs(product - dense @ x) <= bound * (modulus @ np.abs(x))).all()
        assert (np.abs(transposed - dense.T @ y) <= bound * (modulus.T @ np.abs(y))).all()
        for i in range(3):
            single = A.product(x[:, i]).over_power(0)
            assert (np.abs(single - product[:, i]) <= 2 * bound * (modulus @ np.abs(x[:, i]))).all()
        # <A x, y> = <x, A^T y>, to the roundings of all their terms.
        slack = gamma(n + N) * (np.abs(y) * (modulus @ np.abs(x))).sum()
        assert abs((product * y).sum() - (x * transposed).sum()) <= 2 * slack


@contextmanager
def precision(bits: int):
    before, ctx.prec = ctx.prec, bits
    yield
    ctx.prec = before


def ball(x: float, exponent: int) -> arb:
    """x * 2^exponent."""
    p, q = x.as_integer_ratio()
    return arb((p, exponent + 1 - q.bit_length()))


def longhand(F, G, y: Scaled, x: Scaled) -> tuple[list, list]:
    """y - A x and |y| + |F| |G|^T |x|, token by token in 200 bits."""
    D = F.shape[1]
    s, moduli = [arb(0)] * D, [arb(0)] * D
    residuals, terms = [], []
    given = (*(z.tolist() for z in (F, G, y.mantissa, y.exponent, x.mantissa, x.exponent)),)
    for f, g, y_m, y_e, x_m, x_e in zip(*given, strict=True):
        x_i, y_i = ball(x_m, x_e), ball(y_m, y_e)
        s = [a + arb(b) * x_i for a, b in zip(s, g, strict=True)]
        moduli = [a + abs(arb(b) * x_i) for a, b in zip(moduli, g, strict=True)]
        residuals.append(y_i - sum((arb(a) * b for a, b in zip(f, s, strict=True)), arb(0)))
        pairs = zip(f, moduli, strict=True)
        terms.append(abs(y_i) + sum((abs(arb(a)) * b for a, b in pairs), arb(0)))
    return residuals, terms


@pytest.mark.parametrize(
    ("power", "name", "chunk"),
    [(1, "identity", 1), (1, "identity", 64), (4, "exp", 50), (4, "exp", 3000)],
)
def test_solutions_that_outgrow_any_float(power, name, chunk):
    """Here ||A^-1 e_1|| passes 1e350; exp is taken of four times the draw."""
    N, D = 2000, 6
    F, G = (X**power for X in draw_factors(D, N, D, name))
    y = np.zeros(N)
    y[0] = 1.0
    x = semiseparable(F, G, chunk=chunk).solve(y)
    assert x.largest_exponent() > 1100 and np.isfinite(x.mantissa).all()
    with precision(200):
        residuals, terms = longhand(F, G, Scaled(y, np.zeros(N, dtype=int)), x)
        # A sum is of at most a chunk's terms and of the N / chunk states before it.
        bound = arb(gamma(N + D + 7))
        assert all(abs(r) <= bound * t for r, t in zip(residuals, terms, strict=True))
        # Backwards error alone would pass zeros; the last entries are as large as the growth.
        assert x.log2()[-100:].max() > 0.8 * x.largest_exponent()


def test_columns_that_grow_apart():
    """One right-hand side is the matrix's own column, so that its solution is a unit vector."""
    N, D = 2000, 8
    F, G = draw_factors(D, N, D, "identity")
    A = semiseparable(F, G)
    first = A.product(np.eye(N, 1)[:, 0]).over_power(0)
    columns = np.stack([np.eye(N, 1)[:, 0], 1e-290 * np.eye(N)[N - 2], first, 0 * first], axis=1)
    got = A.solve(columns)
    assert not got.mantissa[:, 3].any()
    assert (got.log2()[: N - 2, 1] == -np.inf).all()
    spread = got.log2()[:, 0].max() - got.log2()[:, 1].max()
    assert spread > 1100
    with precision(200):
        for i in range(3):
            x = Scaled(got.mantissa[:, i], got.exponent[:, i])
            y = Scaled(columns[:, i], np.zeros(N, dtype=int))
            bound = arb(gamma(N + D + 7))
            assert all(abs(r) <= bound * t for r, t in zip(*longhand(F, G, y, x), strict=True))


@pytest.mark.parametrize("N", [1, 5, 64, 65, 1000])
def test_all_ones_and_cesaro(N):
    one = np.ones((N, 1))
    A = semiseparable(one, one)
    x = np.random.default_rng(N).integers(-99, 99, N).astype(float)
    np.testing.assert_array_equal(A.product(x).over_power(0), np.cumsum(x))
    np.testing.assert_array_equal(A.solve(x).over_power(0), np.diff(x, prepend=0.0))
    np.testing.assert_array_equal(A.transposed_product(x).over_power(0), np.cumsum(x[::-1])[::-1])
    assert A.squared_frobenius_norm().over_power(0) == N * (N + 1) / 2
    # Positive terms: each entry squared, added up N^2 times.
    norm = A.row_normalized().squared_frobenius_norm().over_power(0)
    assert norm == pytest.approx(cesaro_squared_frobenius_norm(N), rel=gamma(2 * N + 100), abs=0)


@pytest.mark.parametrize("chunk", [1, 7, 64, 500])
@pytest.mark.parametrize("gate", [1.0, 0.5, 2.0**-40, 2.0**-300])
def test_a_constant_gate_is_inverted_by_a_bidiagonal_matrix(gate, chunk):
    """A^-1 = I - gate * shift; powers of two and small integers make it exact."""
    N = 100
    one, gates = np.ones((N, 1)), np.full(N, gate)
    A = semiseparable(one, one, gates, chunk)
    if gate < 1:
        expected = 1.0 - gate * (np.arange(N) > 0)
        np.testing.assert_array_equal(A.solve(np.ones(N)).over_power(0), expected)
    powers = A.product(np.eye(N, 1)[:, 0])
    np.testing.assert_array_equal(powers.log2(), np.log2(gate) * np.arange(N))
    unit = A.solve(np.eye(N)[:, :1])
    assert exactly(unit)[0] == [fmpq(1), -rational(gate), *[fmpq(0)] * (N - 2)]


def test_memory_is_that_of_the_vectors():
    """What is alive at once: the result's mantissas and exponents, of 8 bytes each, and at most
    two N-vectors on the way there; factors are views. Chunks take chunk^2 + 8 chunk D numbers; a
    list of spans, none. Blocks that are kept take no more than KEPT, and a slab."""
    N, D, m = 20000, 4, 1
    F, G = draw_factors(0, N, D, "exp")
    A, x = semiseparable(F, G), np.ones(N)
    A.product(x), A.solve(x)  # what is cached
    for apply in (A.product, A.solve, A.transposed_product, A.transposed_solve):
        tracemalloc.start()
        apply(x)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 8 * (4 * N * m + 4 * (A.chunk**2 + 8 * A.chunk * D)) < N * N / 100
    tracemalloc.start()
    semiseparable(F, G).row_normalized().squared_frobenius_norm()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # F and G over powers of two, their moduli and signs: a few arrays of N x D.
    assert peak < 8 * 8 * N * (D + 2) + KEPT + 8 * SLAB * A.chunk**2 < N * N / 8


@pytest.mark.parametrize("chunk", [1, 2, 64])
def test_zero_diagonal(chunk):
    F, G = draw_factors(0, 9, 2, "exp")
    F[3], G[3] = [1.0, 2.0], [2.0, -1.0]
    G[6] = 0.0
    A = semiseparable(F, G, chunk=chunk)
    np.testing.assert_array_equal(np.flatnonzero(A.zeros), [3, 6])
    with pytest.raises(np.linalg.LinAlgError, match="the diagonal entry of row 3 is zero"):
        A.solve(np.ones(9))
    with pytest.raises(np.linalg.LinAlgError, match="the diagonal entry of row 3 is zero"):
        A.transposed_solve(np.ones(9))
    assert exactly(A.diagonal())[0][3] == 0


@pytest.mark.filterwarnings("error")
def test_zero_matrix():
    A = semiseparable(np.zeros((5, 2)), np.ones((5, 2)))
    assert not A.product(np.ones(5)).mantissa.any() and not A.dense().any()
    assert A.squared_frobenius_norm().over_power(0) == 0.0
    assert not A.row_normalized().dense().any()


@pytest.mark.parametrize("scale", [1.0, 1e-300, 1e300])
def test_rows_of_zeros_stay_zero(scale):
    F, G = draw_factors(3, 40, 1, "relu")
    normalized = semiseparable(scale * F, scale * G).row_normalized()
    expected = factored(F, G, "causal", "row")
    # Sums of at most N products of one sign, twice.
    np.testing.assert_allclose(normalized.dense(), expected, rtol=2 * gamma(42), atol=0)
    assert 5 < (~expected.any(axis=1)).sum() < 35


@pytest.mark.parametrize("scale", [1.0, 2.0**-1000, 2.0**1000])
def test_rows_that_cancel_have_no_normalization(scale):
    F, G = np.full((3, 1), scale), scale * np.array([[1.0], [2.0], [-3.0]])
    A = semiseparable(F, G)
    with pytest.raises(ZeroDivisionError, match="the entries of row 2 sum to zero"):
        A.row_normalized()


@pytest.mark.parametrize(
    ("F", "G", "gates", "message"),
    [
        (np.ones((3, 2)), np.ones((2, 2)), None, r"shapes \(3, 2\) and \(2, 2\)"),
        (np.ones(3), np.ones(3), None, "are no pair"),
        (np.ones((0, 2)), np.ones((0, 2)), None, "are no pair"),
        (np.ones((3, 2)), np.ones((3, 2)), np.ones(2), "fit neither"),
        (np.ones((3, 2)), np.ones((3, 2)), np.zeros(3), "not between"),
        (np.ones((3, 2)), np.ones((3, 2)), np.full(3, 1.5), "not between"),
        (np.ones((3, 2)), np.ones((3, 2)), np.full(3, np.nan), "not between"),
        (np.ones((3, 2)), np.array([[1, 1], [0, 1], [1e-150, 1]]), None, "row 2 of a factor"),
    ],
)
def test_what_is_no_operator_is_refused(F, G, gates, message):
    with pytest.raises(ValueError, match=message):
        semiseparable(F, G, gates)


def longhand_power(F: np.ndarray, G: np.ndarray, rounds: int = 4) -> float:
    """log10 ||A^-1||_2 by power iteration, token by token, the state brought to norm one each."""

    def solve(F, G, y, y_log):
        s, log, x, x_log = np.zeros(F.shape[1]), -math.inf, np.empty(len(F)), np.empty(len(F))
        for i, (f, g) in enumerate(zip(F, G, strict=True)):
            top = max(log, y_log[i])
            s = s * math.exp(log - top)
            x[i] = (y[i] * math.exp(y_log[i] - top) - f @ s) / (f @ g)
            x_log[i] = top
            s = s + x[i] * g
            norm = math.sqrt(s @ s)
            s, log = s / norm, top + math.log(norm)
        return x, x_log

    x, x_log, log_norms = np.random.default_rng(99).standard_normal(len(F)), np.zeros(len(F)), []
    for k in range(2 * rounds):
        pair = (F, G) if k % 2 == 0 else (G[::-1], F[::-1])
        x, x_log = (z[::-1] for z in solve(*pair, x, x_log))
        with np.errstate(divide="ignore"):
            logs = np.log(np.abs(x)) + x_log
        top = logs.max()
        log_norms.append(top + math.log(np.exp(2 * (logs - top)).sum()) / 2)
        x_log = x_log - log_norms[-1]
    return log_norms[-1] / math.log(10)
