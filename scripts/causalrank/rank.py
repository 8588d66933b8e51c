"""Exact rank, with its certificate, of the matrix that stored doubles define.

A double is a dyadic rational, so a row times a power of two is a row of integers and its residues
modulo a prime p are exact. The rank modulo p never exceeds the rank over the rationals: it is a
proved lower bound. It falls short only when p divides a certain nonzero minor; for p drawn
at random from the primes between 2^60 and 2^61 the probability of that is bounded below 1e-9
for every size used here, and is stated with the result.
"""

import math
from dataclasses import dataclass

import flint
import numpy as np

from .diagonal import zero_diagonal

PRIME_BITS = 61
PRIMES_AT_LEAST = 3 * 2**60 / (5 * 60 * math.log(2))
"""pi(2 x) - pi(x) > 3 x / (5 log x) for x >= 20.5 (Rosser and Schoenfeld 1962, corollary 3)."""


@dataclass(frozen=True)
class ExactRank:
    """A rank, proved where lower = upper, and otherwise right but for `certificate`'s error."""

    value: int | None
    lower: int | None
    upper: int
    certificate: str


def random_prime(generator: np.random.Generator) -> int:
    """A prime, uniform among those between 2^60 and 2^61."""
    while True:
        candidate = int(generator.integers(2 ** (PRIME_BITS - 1), 2**PRIME_BITS)) | 1
        if flint.fmpz(candidate).is_prime():
            return candidate


def _times(a: np.ndarray, b: np.ndarray, p: int) -> np.ndarray:
    """a b modulo p, for int64 entries 0 <= a < 2^27 and 0 <= b < p < 2^61.

    The rounded quotient errs by one at most, so the remainder, taken modulo 2^64, is in (-p, 2p).
    """
    quotient = (a * (b / p)).astype(np.int64)
    return (a * b - quotient * p) % p


def residues(X: np.ndarray, p: int) -> tuple[list[list[int]], int]:
    """The rows of X, each times a power of two that makes it whole, modulo p < 2^61.

    X has shape (rows, columns). Also returns the number of bits of the largest integer entry.
    """
    mantissa, exponent = np.frexp(X)
    whole = np.ldexp(mantissa, 53).astype(np.int64)
    lowest = np.where(whole != 0, exponent, np.iinfo(np.int32).max).min(axis=1, keepdims=True)
    shift = np.where(whole != 0, exponent - lowest, 0)
    powers = np.array([pow(2, s, p) for s in range(int(shift.max(initial=0)) + 1)])[shift]
    high, low = np.divmod(np.abs(whole), 2**27)
    rows = (
        _times(np.array(2**26), 2 * _times(high, powers, p) % p, p) + _times(low, powers, p)
    ) % p
    rows = np.where(whole < 0, -rows % p, rows)
    return rows.tolist(), 53 + int(shift.max(initial=0))


def error_probability(N: int, entry_bits: float) -> float:
    """A bound on the probability that a random 61-bit prime gives too small a rank.

    A minor of order r <= N of integers below 2^entry_bits is below
    (sqrt(N) 2^entry_bits)^N (Hadamard), so fewer than its number of bits over 60 of the primes
    above 2^60 divide it.
    """
    bits = N * (entry_bits + math.log2(N) / 2)
    return bits / (PRIME_BITS - 1) / PRIMES_AT_LEAST


def _judged(N: int, lower: int, upper: int, entry_bits: float) -> ExactRank:
    if lower == upper:
        return ExactRank(lower, lower, upper, "bounds meet")
    power = math.floor(math.log10(error_probability(N, entry_bits))) + 1
    return ExactRank(lower, lower, upper, f"modular, error below 1e{power}")


def _modular(rows: list[list[int]], p: int) -> flint.nmod_mat:
    return flint.nmod_mat(flint.fmpz_mat(rows), p)  # a third faster than without the detour


def _row_space(rows: list[list[int]], p: int) -> list[list[int]]:
    reduced, rank = _modular(rows, p).rref()
    D = reduced.ncols()
    if rank == D:  # the identity, without reading it entry by entry
        return np.eye(D, dtype=int).tolist()
    return [[int(reduced[i, j]) for j in range(D)] for i in range(rank)]


def _product_rank(F: np.ndarray, G: np.ndarray, p: int) -> tuple[int, float]:
    """The rank of F G^T modulo p, and the bits of its entries once their rows are whole."""
    f_rows, f_bits = residues(F, p)
    g_rows, g_bits = residues(G, p)
    bits = f_bits + g_bits + math.log2(F.shape[1])
    if min(len(F), len(G)) <= F.shape[1]:  # the product is no larger than a basis
        product = _modular(f_rows, p) * _modular(g_rows, p).transpose()
        return int(product.rank()), bits
    f_basis, g_basis = _row_space(f_rows, p), _row_space(g_rows, p)
    rank = 0
    if f_basis and g_basis:
        product = flint.nmod_mat(f_basis, p) * flint.nmod_mat(g_basis, p).transpose()
        rank = int(product.rank())
    return rank, bits


def bidirectional_rank(F: np.ndarray, G: np.ndarray, p: int) -> ExactRank:
    """The rank of F G^T, for F of shape (M, D) and G of shape (N, D), in O((M + N) D^2).

    rank(F G^T) = rank(R_F R_G^T), where the rows of R_F and R_G are bases of the row spaces of
    F and G. The upper bound is min(M, N, D). The leading 2 D rows of F and G prove a lower bound
    as well; where it meets the upper one, which it nearly always does, the others are not read.
    """
    size, D = max(len(F), len(G)), F.shape[1]
    upper = min(len(F), len(G), D)
    lower, bits = _product_rank(F[: 2 * D], G[: 2 * D], p)
    if lower < upper and size > 2 * D:
        lower, bits = _product_rank(F, G, p)
    return _judged(size, lower, upper, bits)


def causal_rank(F: np.ndarray, G: np.ndarray, p: int) -> ExactRank:
    """The rank of tril(F G^T), for F and G of shape (N, D).

    Triangular with a nonzero diagonal: N, proved in O(N D). Otherwise the rank modulo p
    (`kernel_recursion`), under the structural rank, the largest number of nonzero entries of which
    no two share a row or a column, as the upper bound.
    """
    N, D = F.shape
    if not zero_diagonal(F, G).any():
        return ExactRank(N, N, N, "triangular")
    f_rows, f_bits = residues(F, p)
    g_rows, g_bits = residues(G, p)
    lower = kernel_recursion(f_rows, g_rows, p)
    return _judged(N, lower, structural_rank(F, G), f_bits + g_bits + math.log2(D))


def structural_rank(F: np.ndarray, G: np.ndarray) -> int:
    """An upper bound on the rank of tril(F G^T), shape (N, N), from the zeros of F and G.

    It is the largest number of entries (i, j) that can be nonzero, no two of which share a row or
    a column, as a maximum flow: column j pours one unit into the reservoirs of the features c with
    g_jc != 0 at time j, reservoirs keep what they hold, and row i draws one unit from those with
    f_ic != 0 at time i >= j. The network has O(N D) edges.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_flow

    N, D = F.shape
    columns, rows = np.arange(N), N + np.arange(N)
    reservoirs = 2 * N + np.arange(N * D).reshape(N, D)
    source, sink = 2 * N + N * D, 2 * N + N * D + 1
    edges = [
        (np.full(N, source), columns),
        (np.nonzero(G)[0], reservoirs[G != 0]),
        (reservoirs[:-1].ravel(), reservoirs[1:].ravel()),
        (reservoirs[F != 0], N + np.nonzero(F)[0]),
        (rows, np.full(N, sink)),
    ]
    capacities = [np.full(len(tails), 1, np.int32) for tails, _ in edges]
    capacities[2][:] = N
    ends = tuple(np.concatenate(side).astype(np.int32) for side in zip(*edges, strict=True))
    network = csr_array((np.concatenate(capacities), ends), shape=(sink + 1, sink + 1))
    return int(maximum_flow(network, source, sink).flow_value)


def kernel_recursion(f_rows: list[list[int]], g_rows: list[list[int]], p: int) -> int:
    """The rank of tril(F G^T) modulo p, from rows of F and G modulo p.

    Costs O(N D^2), and O(D^3) more for every row whose f_i . g_i is zero.

    x is in the kernel when f_i . s_i = 0 for every i, where s_i = s_{i-1} + g_i x_i and s_0 = 0.
    Let W be the span of the s_{i-1} of all x that satisfy the first i - 1 equations. The next
    equation acts on W + span(g_i): if f_i is orthogonal to all of it, the equation says nothing;
    otherwise it raises the rank by one and cuts W + span(g_i) down to the part orthogonal to f_i.
    """
    rank = 0
    basis: list[list[int]] = []
    for f, g in zip(f_rows, g_rows, strict=True):
        span = [*basis, g]
        images = [sum(a * b for a, b in zip(f, w, strict=True)) % p for w in span]
        pivot = next((i for i in reversed(range(len(span))) if images[i]), None)
        if pivot is None:
            basis = _row_space(span, p)
            continue
        rank += 1
        inverse = pow(images[pivot], -1, p)
        cut = []
        for i, w in enumerate(span):
            if i == pivot:
                continue
            if images[i]:
                factor = images[i] * inverse % p
                w = [(a - factor * b) % p for a, b in zip(w, span[pivot], strict=True)]
            cut.append(w)
        basis = cut if pivot == len(span) - 1 else _row_space(cut, p)
    return rank


def dense_rank(A: np.ndarray, p: int) -> ExactRank:
    """The rank of the matrix whose entries are the doubles of A, shape (M, N), in O(M N min(M, N)).

    The leading square block proves a lower bound as well; where it has full rank, the rest of A
    is not read.
    """
    upper = min(A.shape)
    rows, bits = residues(A[:upper, :upper], p)
    lower = int(_modular(rows, p).rank())
    if lower < upper < max(A.shape):
        rows, bits = residues(A, p)
        lower = int(_modular(rows, p).rank())
    return _judged(max(A.shape), lower, upper, bits)


def splits(N: int) -> list[int]:
    """Where the off-diagonal blocks are cut: N/8, N/4, N/2, 3N/4 and 7N/8, rounded down, not 0."""
    return sorted({N // 8, N // 4, N // 2, 3 * N // 4, 7 * N // 8} - {0})


def off_diagonal_ranks(F: np.ndarray, G: np.ndarray, i: int, p: int) -> tuple[ExactRank, ExactRank]:
    """The ranks of A[i:, :i] and of A[:i, i:], for A = F G^T, F and G of shape (N, D), 0 < i < N.

    At most min(D, i, N - i): D is the size of the state that the recurrent form carries from the
    tokens before i to those after (Vandebril, Van Barel and Mastronardi 2008, on semiseparable
    matrices). The causal mask leaves the first block as it is and makes the second one zero.
    """
    return bidirectional_rank(F[i:], G[:i], p), bidirectional_rank(F[:i], G[i:], p)


def product_ranks(
    F: np.ndarray, G: np.ndarray, v: np.ndarray, mask: str, p: int
) -> tuple[int, int, int]:
    """The ranks of A, V and A V modulo p, for A = F G^T or tril(F G^T), in O(N^3).

    F and G have shape (N, D), v has shape (N, d_v). Scaling rows of G or of V would change A V,
    so each of them is scaled by one power of two.
    """
    f = _modular(residues(F, p)[0], p)
    g, V = (flint.nmod_mat(*X.shape, residues(X.reshape(1, -1), p)[0][0], p) for X in (G, v))
    A = f * g.transpose()
    if mask == "causal":
        rows = [[int(x) if j <= i else 0 for j, x in enumerate(r)] for i, r in enumerate(A.table())]
        A = flint.nmod_mat(rows, p)
    return int(A.rank()), int(V.rank()), int((A * V).rank())
