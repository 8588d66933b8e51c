"""Exact ranks and their certificates against the rank over the rationals."""

import math
from fractions import Fraction
from itertools import permutations

import flint
import mpmath
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from causalrank.ensembles import gaussian
from causalrank.feature_maps import FEATURE_MAPS
from causalrank.rank import (
    PRIMES_AT_LEAST,
    bidirectional_rank,
    causal_rank,
    dense_rank,
    error_probability,
    kernel_recursion,
    off_diagonal_ranks,
    product_ranks,
    random_prime,
    residues,
    splits,
    structural_rank,
)

P = random_prime(np.random.default_rng(0))
SMALL_PRIMES = st.sampled_from([3, 5, 7, 11])
MASKS = st.sampled_from(["bidirectional", "causal"])
small = st.integers(-2, 2).map(float)
any_double = st.floats(allow_nan=False, allow_infinity=False)
entries = st.one_of(st.just(0.0), small, any_double, any_double.map(lambda x: x * 1e-300))


@st.composite
def matrices(draw, rows: int, columns: int) -> np.ndarray:
    """Many zeros, repeated rows, and any finite doubles, subnormal ones included."""
    X = draw(arrays(float, (rows, columns), elements=draw(st.sampled_from([small, entries]))))
    return X[draw(st.lists(st.integers(0, rows - 1), min_size=rows, max_size=rows))]


@st.composite
def factors(draw) -> tuple[np.ndarray, np.ndarray]:
    N, D = draw(st.integers(1, 6)), draw(st.integers(1, 4))
    return draw(matrices(N, D)), draw(matrices(N, D))


def fractions(X: np.ndarray) -> list[list[Fraction]]:
    return [[Fraction(x) for x in row] for row in X.tolist()]


def exactly(F: np.ndarray, G: np.ndarray, mask: str) -> list[list[Fraction]]:
    """F G^T or its lower triangle, without rounding."""
    rows = [
        [sum(a * b for a, b in zip(f, g, strict=True)) for g in fractions(G)] for f in fractions(F)
    ]
    if mask == "causal":
        rows = [[x if j <= i else Fraction(0) for j, x in enumerate(r)] for i, r in enumerate(rows)]
    return rows


def rational(rows: list[list[Fraction]]) -> flint.fmpq_mat:
    return flint.fmpq_mat([[flint.fmpq(x.numerator, x.denominator) for x in row] for row in rows])


def certified(F: np.ndarray, G: np.ndarray, mask: str, p: int):
    return {"bidirectional": bidirectional_rank, "causal": causal_rank}[mask](F, G, p)


@given(factors(), MASKS)
def test_rank_is_the_rational_rank(pair, mask):
    A = exactly(*pair, mask)
    got = certified(*pair, mask, P)
    assert got.value == got.lower == rational(A).rank() <= got.upper
    assert mask == "causal" or got.upper == min(pair[0].shape)
    if mask == "causal" and all(A[i][i] for i in range(len(A))):
        assert got.certificate == "triangular" and got.lower == got.upper
    elif got.lower == got.upper:
        assert got.certificate == "bounds meet"
    else:
        assert got.certificate.startswith("modular, error below ")


@given(factors(), MASKS, SMALL_PRIMES)
def test_bounds_hold_for_any_prime(pair, mask, p):
    """A small prime often loses rank; what it proves is still true."""
    got = certified(*pair, mask, p)
    assert got.lower <= rational(exactly(*pair, mask)).rank() <= got.upper


def test_a_bad_prime_loses_rank_and_says_that_it_may():
    F = np.array([[1.0, 1.0], [1.0, 8.0]])
    got = bidirectional_rank(F, np.eye(2), 7)
    assert (got.lower, got.upper) == (1, 2) and "modular" in got.certificate


@pytest.mark.parametrize("mask", ["bidirectional", "causal"])
def test_zero_matrix(mask):
    got = certified(np.zeros((3, 2)), np.ones((3, 2)), mask, P)
    assert (got.value, got.lower) == (0, 0)


@pytest.mark.parametrize("name", ["relu", "identity"])
@pytest.mark.parametrize("d", [1, 3, 5])
def test_rank_of_drawn_cells(name, d):
    q, k, _ = gaussian("test_rank", 32, d, 0, 1.0)
    F, G = FEATURE_MAPS[name](q), FEATURE_MAPS[name](k)
    for mask in ("bidirectional", "causal"):
        got = certified(F, G, mask, P)
        assert got.value == rational(exactly(F, G, mask)).rank()
        assert got.lower <= got.value <= got.upper


@given(st.data(), st.integers(1, 8), st.integers(1, 4), SMALL_PRIMES)
def test_kernel_recursion_is_the_rank_modulo_p(data, N, D, p):
    rows = st.lists(st.lists(st.integers(0, p - 1), min_size=D, max_size=D), min_size=N, max_size=N)
    f, g = data.draw(rows), data.draw(rows)
    masked = [
        [sum(a * b for a, b in zip(x, y, strict=True)) if j <= i else 0 for j, y in enumerate(g)]
        for i, x in enumerate(f)
    ]
    assert kernel_recursion(f, g, p) == flint.nmod_mat(masked, p).rank()


@given(factors())
def test_structural_rank_is_the_largest_matching_of_the_pattern(pair):
    F, G = pair
    N = len(F)
    pattern = np.tril([[((f != 0) & (g != 0)).any() for g in G] for f in F])
    matchings = (sum(pattern[i, j] for i, j in enumerate(p)) for p in permutations(range(N)))
    assert structural_rank(F, G) == max(matchings)


def is_prime(n: int) -> bool:
    """Miller and Rabin's test, with bases that decide all n < 3.3e24 (Sorenson, Webster 2015)."""
    odd, twos = n - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    return all(
        pow(a, odd, n) == 1 or any(pow(a, odd << i, n) == n - 1 for i in range(twos))
        for a in (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41)
    )


def test_random_primes():
    primes = [random_prime(np.random.default_rng(seed)) for seed in range(40)]
    assert all(2**60 < p < 2**61 and is_prime(p) for p in primes)
    assert len(set(primes)) == 40
    assert primes[7] == random_prime(np.random.default_rng(7))
    # Uniform: an absolute mean below 5 standard deviations of 40 draws from (-1/2, 1/2).
    assert abs(np.mean([p / 2**60 - 1.5 for p in primes])) < 5 / math.sqrt(12 * 40)


@given(st.integers(1, 4).flatmap(lambda n: matrices(n, 3)), SMALL_PRIMES | st.just(P))
def test_residues_are_those_of_rows_of_integers(X, p):
    rows, bits = residues(X, p)
    for row, x in zip(rows, fractions(X), strict=True):
        # The power of two is free as long as the row is whole and of at most `bits` bits.
        shift = math.lcm(*(value.denominator for value in x))
        whole = [int(value * shift) for value in x]
        common = math.gcd(*whole)
        odd = [value // (common & -common or 1) for value in whole]
        spare = bits - max(map(abs, odd)).bit_length()
        assert any(row == [(value << s) % p for value in odd] for s in range(spare + 1))


def test_error_probability_is_hadamards_bound_over_the_primes():
    """log2 of a minor, over the bits of a prime, over the number of primes there are."""
    assert pytest.approx(float(3 * mpmath.mpf(2) ** 60 / (5 * mpmath.log(2**60)))) == (
        PRIMES_AT_LEAST
    )
    generator = np.random.default_rng(0)
    for N, b in ((1, 1), (4, 3), (8, 10)):
        bits = error_probability(N, b) * 60 * PRIMES_AT_LEAST
        for _ in range(20):
            A = generator.integers(-(2**b) + 1, 2**b, (N, N))
            det = abs(int(flint.fmpz_mat(A.tolist()).det()))
            assert det == 0 or math.log2(det) <= bits
    # A Hadamard matrix attains the bound.
    H = np.array([[1]])
    for _ in range(3):
        H = np.block([[H, H], [H, -H]])
    assert abs(int(flint.fmpz_mat(H.tolist()).det())) == 2 ** round(8 * math.log2(8) / 2)
    assert error_probability(8, 0) * 60 * PRIMES_AT_LEAST == pytest.approx(12)


def test_error_probability_of_every_size_used_is_below_1e_9():
    # Any two doubles are at most 2^2098 apart, so 53 + 2098 bits hold a row.
    assert error_probability(4096, 2 * (53 + 2098) + 12) < 1e-9


@given(factors())
def test_a_certificate_states_no_smaller_error_than_it_has(pair):
    F, G = pair
    got = bidirectional_rank(F, G, P)
    assume("modular" in got.certificate)
    bits = residues(F, P)[1] + residues(G, P)[1] + math.log2(F.shape[1])
    stated = float(got.certificate.removeprefix("modular, error below "))
    assert error_probability(len(F), bits) <= stated < 1e-9


@given(st.integers(1, 5).flatmap(lambda n: matrices(n, n)))
def test_dense_rank(A):
    got = dense_rank(A, P)
    assert got.value == got.lower == rational(fractions(A)).rank() <= got.upper == len(A)


def test_dense_rank_sees_what_double_precision_cannot():
    A = np.array([[1.0, 1.0], [1.0, np.nextafter(1.0, 2.0)]])
    assert np.linalg.matrix_rank(A) == 1
    assert dense_rank(A, P).value == 2 and dense_rank(A, P).certificate == "bounds meet"


@given(factors(), st.data(), MASKS)
def test_product_ranks(pair, data, mask):
    v = data.draw(matrices(len(pair[0]), data.draw(st.integers(1, 3))))
    A, V = rational(exactly(*pair, mask)), rational(fractions(v))
    assert product_ranks(*pair, v, mask, P) == (A.rank(), V.rank(), (A * V).rank())


def test_product_ranks_keep_the_proportions_of_rows():
    F, G, v = np.ones((3, 1)), np.array([[1.0], [2.0], [4.0]]), np.array([[2.0], [1.0], [-1.0]])
    assert product_ranks(F, G, v, "bidirectional", P) == (1, 1, 0)
    assert product_ranks(F, G, v, "causal", P) == (3, 1, 1)


@given(st.integers(1, 4), st.data(), SMALL_PRIMES | st.just(P))
def test_a_leading_block_decides_nothing_wrongly(D, data, p):
    """Many rows, the leading 2 D of which may be zero, equal or enough."""
    N = 2 * D + data.draw(st.integers(0, 6))
    F, G = data.draw(matrices(N, D)), data.draw(matrices(N, D))
    zeros = data.draw(st.integers(0, 2 * D))
    F[:zeros] = 0
    exact = rational(exactly(F, G, "bidirectional")).rank()
    got = bidirectional_rank(F, G, p)
    assert got.lower <= exact <= got.upper == D
    assert p != P or got.value == exact
    f, g = flint.nmod_mat(residues(F, p)[0], p), flint.nmod_mat(residues(G, p)[0], p)
    assert got.lower == (f * g.transpose()).rank()


def test_rows_beyond_the_leading_block_are_read_only_where_needed():
    """They hold what no residue has; min(M, N, D) is met without them."""
    F, G = np.eye(2)[[0, 1, 0, 1, 0]], np.eye(2)[[0, 1, 0, 1]]
    F[4] = np.nan
    assert bidirectional_rank(F, G, P).value == 2
    F, G = np.eye(2)[[0, 0, 0, 0, 1]], np.eye(2)[[0, 1]]
    assert bidirectional_rank(F, G, P).value == 2
    A = np.array([[1.0, 1.0, 1.0], [1.0, 1.0, 2.0]])
    assert dense_rank(A, P).value == dense_rank(A.T, P).value == 2


@pytest.mark.parametrize(
    ("N", "expected"),
    [(1, []), (2, [1]), (3, [1, 2]), (4, [1, 2, 3]), (512, [64, 128, 256, 384, 448])],
)
def test_splits(N, expected):
    assert splits(N) == expected


def blocks_of(A: list[list[Fraction]], i: int) -> tuple[flint.fmpq_mat, flint.fmpq_mat]:
    return rational([row[:i] for row in A[i:]]), rational([row[i:] for row in A[:i]])


@given(factors(), st.data())
def test_off_diagonal_ranks_are_the_rational_ranks(pair, data):
    F, G = pair
    N, D = F.shape
    assume(N > 1)
    i = data.draw(st.integers(1, N - 1))
    blocks = blocks_of(exactly(F, G, "bidirectional"), i)
    for got, block in zip(off_diagonal_ranks(F, G, i, P), blocks, strict=True):
        assert got.value == got.lower == block.rank() <= got.upper == min(D, i, N - i)
        assert got.certificate.startswith("bounds meet" if got.lower == got.upper else "modular")
    assert (
        off_diagonal_ranks(F, G, i, P)[0].value == blocks_of(exactly(F, G, "causal"), i)[0].rank()
    )


@pytest.mark.parametrize("name", ["elu_plus_one", "exp", "relu", "identity"])
@pytest.mark.parametrize("d", [1, 3, 6])
def test_off_diagonal_ranks_of_drawn_cells(name, d):
    q, k, _ = gaussian("test_rank", 24, d, 0, 1.0)
    F, G = FEATURE_MAPS[name](q), FEATURE_MAPS[name](k)
    A = exactly(F, G, "causal")
    for i in splits(24):
        below, above = off_diagonal_ranks(F, G, i, P)
        assert below.value == blocks_of(A, i)[0].rank()
        if name != "relu":
            assert below.lower == below.upper == above.value == min(d, i, 24 - i)


def test_off_diagonal_ranks_below_the_number_of_features():
    """relu with rows and a column of zeros, and duplicate rows."""
    F = np.array([[0.0, 0, 0], [1, 2, 0], [1, 2, 0], [0, 0, 0], [1, 2, 0], [2, 4, 0]])
    G = np.array([[1.0, 0, 3], [0, 0, 0], [0, 2, 1], [1, 1, 0], [1, 1, 0], [0, 0, 1]])
    below, above = off_diagonal_ranks(F, G, 3, P)
    assert (below.value, below.upper, above.value, above.upper) == (1, 3, 1, 3)
    assert "modular" in below.certificate and "modular" in above.certificate


@given(st.integers(1, 5), st.integers(1, 5), st.data(), SMALL_PRIMES | st.just(P))
def test_dense_rank_of_rectangles(M, N, data, p):
    A = data.draw(matrices(M, N))
    got, exact = dense_rank(A, p), rational(fractions(A)).rank()
    assert got.lower <= exact <= got.upper == min(M, N)
    assert got.lower == flint.nmod_mat(residues(A, p)[0], p).rank()
    assert p != P or got.value == exact
