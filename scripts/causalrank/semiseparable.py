"""The causal mixing matrix as an operator: products and solves in O(N D), without forming it.

A = tril(F G^T) is lower-triangular semiseparable. With gates,

    A_ij = sum_k F_ik G_jk gate_{j+1,k} ... gate_{i,k}    for j <= i

(RetNet and Mamba-2 have one gate a step, gated linear attention one a step and feature).
Product and inverse both carry D numbers from token to token,

    s_i = gate_i s_{i-1} + g_i x_i,    y_i = f_i . s_i,

the inverse by solving the second equation for x_i: forward substitution. Here a chunk of tokens is
taken at once: y = T x + F s, then s + G^T x, where the chunk's triangular block T = tril(F G^T) is
formed when it is needed. The transpose is the same recurrence from the last token back.

The state of a solve grows or decays exponentially with N, past the range of any float, so it
carries a binary exponent, and so does every result.

Forward substitution commits at token i an error of about eps |f_i| . |s_{i-1}| / |f_i . g_i|, and
an error grows no faster than a solution can. So where the entries left of the diagonal do not
dwarf it, a solve whose solution grows as fast as A^-1 allows, as a Krylov method's do, is accurate
relative to its norm, even where A is numerically singular. Where they do, it is not, and nothing
in the solution shows it: `rounding_of_solve` does.

Covered are rows of any size, whose entries span no more than 2^450 each, and gates between 2^-300
and 1. Features share the state's exponent: what is below 2^-1000 of the largest is lost.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property

import numpy as np

from .blocks import Blocks
from .diagonal import cancelling, zero_diagonal
from .scaled import Scaled, row_dots

CHUNK = 64
"""Tokens a chunk: shorter ones cost interpreter time, longer ones arithmetic."""
WIDTH = 450
"""How many binary orders of magnitude the entries of one row may span: no product underflows."""
BLOCK = 2**14
"""Rows looked at a time where all of them have to be."""
EPSILON = np.finfo(float).eps
SPREAD = 300
"""How many binary orders of magnitude the rows of one chunk may span; beyond, it is split."""
HUGE = 2.0**300
"""A state beyond this, or below its inverse, is rescaled; a solution beyond it is found anew."""


@dataclass(frozen=True)
class Semiseparable:
    """A causal mixing matrix: made by `semiseparable`, changed by `row_normalized`.

    Row i of F counts times 2^f_exponent_i, row j of G times 2^g_exponent_j, where exponents are
    given; log2_gates has shape (N, 1) or (N, D); `zeros`, (N,), says which diagonal entries are
    exactly zero, and `cancelling` which others doubles do not resolve. Vectors are doubles of
    shape (N,) or (N, m), m columns at once.
    """

    F: np.ndarray
    G: np.ndarray
    f_exponent: np.ndarray | None
    g_exponent: np.ndarray | None
    log2_gates: np.ndarray | None
    zeros: np.ndarray
    cancelling: np.ndarray
    chunk: int

    @property
    def N(self) -> int:
        return len(self.F)

    def product(self, x: np.ndarray) -> Scaled:
        """A x."""
        return self._apply(x, solving=False, transposed=False)

    def solve(self, y: np.ndarray) -> Scaled:
        """A^-1 y. Raises as `require_solvable`."""
        self.require_solvable()
        return self._apply(y, solving=True, transposed=False)

    def transposed_product(self, x: np.ndarray) -> Scaled:
        """A^T x."""
        return self._apply(x, solving=False, transposed=True)

    def transposed_solve(self, y: np.ndarray) -> Scaled:
        """A^-T y. Raises as `require_solvable`."""
        self.require_solvable()
        return self._apply(y, solving=True, transposed=True)

    def leading(self, n: int) -> "Semiseparable":
        """The leading principal submatrix of A, of shape (n, n)."""
        parts = {
            name: None if getattr(self, name) is None else getattr(self, name)[:n]
            for name in ("F", "G", "f_exponent", "g_exponent", "log2_gates", "zeros", "cancelling")
        }
        return replace(self, **parts)

    def rounding_of_solve(self, x: Scaled, generator: np.random.Generator) -> float:
        """An estimate of the relative error, in norm, of a solution x of A x = y, shape (N,).

        The computed x solves (A + E) x = y with |E| of about eps |F| |G|^T under A's mask and
        gates, entry by entry (Higham 2002, section 8.1), so its error is A^-1 E x to first order.
        E x is taken at random, normal for each row: with signs alone, as |A| |x| is A |x| here,
        rows of one sign would undo each other. Its growth with D and N is left out, as rounding
        errors mostly cancel.
        """
        bound = self._modulus()._times_powers(None, x.exponent).product(np.abs(x.mantissa))
        errors = generator.standard_normal(self.N) * bound.mantissa
        rows = self._times_powers(-bound.exponent, None)
        return EPSILON * max(1.0, rows.solve(errors).norm_over(x))

    def _times_powers(self, rows: np.ndarray | None, columns: np.ndarray | None) -> "Semiseparable":
        """A with row i times 2^rows_i and column j times 2^columns_j."""
        exponents = {}
        for name, more in (("f_exponent", rows), ("g_exponent", columns)):
            if more is not None and more.any():
                own = getattr(self, name)
                exponents[name] = more if own is None else own + more
        return replace(self, **exponents) if exponents else self

    def _modulus(self) -> "Semiseparable":
        """The same with the moduli of the factors."""
        if min(self.F.min(), self.G.min()) >= 0:
            return self
        return replace(self, F=np.abs(self.F), G=np.abs(self.G))

    def diagonal(self) -> Scaled:
        """The entries f_i . g_i, shape (N,)."""
        parts = [
            row_dots(self.F[a:b], self.G[a:b])
            for a, b in zip(range(0, self.N, 4096), range(4096, self.N + 4096, 4096), strict=True)
        ]
        exponent = np.concatenate([part.exponent for part in parts])
        for shift in (self.f_exponent, self.g_exponent):
            exponent = exponent if shift is None else exponent + shift
        mantissa = np.concatenate([part.mantissa for part in parts])
        return Scaled(np.where(self.zeros, 0.0, mantissa), exponent)

    def dense(self) -> np.ndarray:
        """A itself, shape (N, N); entries beyond a double's range are zero or infinite."""
        return self.product(np.eye(self.N)).over_power(0)

    def squared_frobenius_norm(self) -> Scaled:
        """||A||_F^2, of shape (), in O(N D^2): sum_i f_i^T (sum_{j<=i} g_j g_j^T) f_i, gated."""
        if self._blocks is not None:
            return Scaled(np.float64(self._blocks.squared_frobenius_norm()), np.int64(0))
        total, M = _Sum(0.0), _Sum(np.zeros((self.F.shape[1],) * 2))
        for c in self.chunks(self.chunk):
            block = _lower_block(c)
            if c.enter is not None:
                M.value = M.value * (c.enter[:, None] * c.enter)
            total.add(np.vdot(block, block), 2 * (c.f_shift + c.g_shift))
            total.add(np.vdot(c.F @ M.value, c.F), 2 * c.f_shift + M.exponent)
            M.add(c.G.T @ c.G, 2 * c.g_shift)
            if c.leave is not None:
                M.value = M.value * (c.leave[:, None] * c.leave)
        return Scaled(np.float64(total.value), np.int64(total.exponent))

    def row_normalized(self) -> "Semiseparable":
        """A with each row divided by its sum; a row of zeros stays.

        Raises ZeroDivisionError when the entries of a row cancel, or their sum underflows.
        """
        sums = self.product(np.ones(self.N))
        empty = sums.mantissa == 0.0
        if empty.any():
            reached = np.logical_or.accumulate(self.G != 0, axis=0)
            for row in np.flatnonzero(empty & ((self.F != 0) & reached).any(axis=1)):
                columns = self.G[: row + 1]
                if row_dots(np.broadcast_to(self.F[row], columns.shape), columns).mantissa.any():
                    raise ZeroDivisionError(f"the entries of row {row} sum to zero")
        F = self.F / np.where(empty, 1.0, sums.mantissa)[:, None]
        exponent = np.where(empty, 0, -sums.exponent)
        if self.f_exponent is not None:
            exponent = exponent + self.f_exponent
        F, exponent = _tamed(F, exponent)
        return replace(self, F=F, f_exponent=exponent)

    def require_solvable(self) -> None:
        """Raise what keeps A from being inverted.

        numpy.linalg.LinAlgError where A is singular, ArithmeticError where an entry of its
        diagonal is a sum that cancels, so that double precision does not tell how large it is.
        """
        if self.zeros.any():
            row = int(np.flatnonzero(self.zeros)[0])
            raise np.linalg.LinAlgError(f"singular: the diagonal entry of row {row} is zero")
        if self.cancelling.any():
            row = int(np.flatnonzero(self.cancelling)[0])
            raise ArithmeticError(f"the diagonal entry of row {row} cancels, or underflows")

    def _reversed(self) -> "Semiseparable":
        """A^T with rows and columns in reverse order, which is of the same kind."""
        gates = self.log2_gates
        if gates is not None:
            gates = np.concatenate([np.zeros((1, gates.shape[1])), gates[:0:-1]])
        flip = [None if x is None else x[::-1] for x in (self.f_exponent, self.g_exponent)]
        return Semiseparable(
            *(self.G[::-1], self.F[::-1], flip[1], flip[0], gates),
            *(self.zeros[::-1], self.cancelling[::-1], self.chunk),
        )

    def chunks(self, size: int) -> Iterator["Chunk"]:
        """The factors, at most `size` tokens at a time."""
        return (self._chunk(*span) for span in self._spans(size))

    def _spans(self, size: int) -> Iterator[tuple[int, int]]:
        """The chunks, as (start, stop): those whose rows span too much are split."""
        for start in range(0, self.N, size):
            stop = min(start + size, self.N)
            pending = [(start, stop)]
            while pending:
                start, stop = pending.pop()
                if stop - start > 1 and self._spread(start, stop) > SPREAD:
                    pending += _halves(start, stop)
                else:
                    yield start, stop

    def _spread(self, start: int, stop: int) -> float:
        """Binary orders of magnitude that the rows of a chunk span."""
        exponents = [x for x in (self.f_exponent, self.g_exponent) if x is not None]
        spread = max((float(np.ptp(x[start:stop])) for x in exponents), default=0.0)
        if self.log2_gates is not None:
            spread += float(np.abs(self.log2_gates[start + 1 : stop]).sum(axis=0).max(initial=0.0))
        return spread

    def _chunk(self, start: int, stop: int) -> "Chunk":
        F, G = (np.ascontiguousarray(X[start:stop]) for X in (self.F, self.G))
        f_shift = g_shift = 0
        if self.f_exponent is not None:
            F, f_shift = _aligned(F, self.f_exponent[start:stop])
        if self.g_exponent is not None:
            G, g_shift = _aligned(G, self.g_exponent[start:stop])
        if self.log2_gates is None:
            return Chunk(F, G, f_shift, g_shift, None, None)
        decay = np.cumsum(self.log2_gates[start:stop], axis=0)
        decay -= decay[0]
        width = np.ones(F.shape[1])
        enter, leave = np.exp2(self.log2_gates[start]) * width, np.exp2(decay[-1]) * width
        return Chunk(F * np.exp2(decay), G * np.exp2(-decay), f_shift, g_shift, enter, leave)

    @cached_property
    def _blocks(self) -> Blocks | None:
        """For the faster way, where there is one."""
        if self.f_exponent is self.g_exponent is self.log2_gates is None:
            return Blocks(self.F, self.G, self.chunk)
        return None

    def _apply(self, x: np.ndarray, solving: bool, transposed: bool) -> Scaled:
        """A x, or another of the four, by the faster way or the general one."""
        if x.ndim == 1 and self._blocks is not None and _is_moderate(x):
            apply = self._blocks.solve if solving else self._blocks.product
            done = apply(x, transposed)
            if done is not None:
                return done
        if transposed:
            return self._reversed()._recur(x[::-1], solving).reversed()
        return self._recur(x, solving)

    def _recur(self, x: np.ndarray, solving: bool) -> Scaled:
        """Carry the state over all chunks: A x, or A^-1 x if `solving`."""
        columns, unit = _moderate(np.ascontiguousarray(x).reshape(self.N, -1))
        mantissa = np.empty(columns.shape)
        exponent = np.zeros(columns.shape, dtype=np.int64)
        state = _State(np.zeros((self.F.shape[1], columns.shape[1])))
        step = _substitute if solving else _multiply
        pending = []
        with np.errstate(over="ignore", invalid="ignore"):  # a chunk that overflows is redone
            for span in self._spans(self.chunk):
                pending.append(span)
                while pending:
                    start, stop = pending.pop()
                    chunk = self._chunk(start, stop)
                    done = step(chunk, columns[start:stop], state)
                    if done is None:
                        pending += _halves(start, stop)
                        continue
                    mantissa[start:stop], power = done
                    if not state.plain or power:
                        exponent[start:stop] = power
        if np.any(unit):
            exponent += unit
        return Scaled(mantissa.reshape(x.shape), exponent.reshape(x.shape))


@dataclass(slots=True)
class Chunk:
    """A chunk's factors with its gates multiplied in, over 2^f_shift and 2^g_shift.

    The state is multiplied by `enter` before the chunk and by `leave` after it, both of shape (D,).
    """

    F: np.ndarray
    G: np.ndarray
    f_shift: int
    g_shift: int
    enter: np.ndarray | None
    leave: np.ndarray | None


class _State:
    """s, of shape (D, m), over 2^exponent, of shape (m,); `plain` while all exponents are zero."""

    __slots__ = ("exponent", "plain", "s")

    def __init__(self, s: np.ndarray) -> None:
        self.s, self.exponent, self.plain = s, np.zeros(s.shape[1], dtype=np.int64), True

    def enter(self, chunk: Chunk, x: np.ndarray, unit: int) -> tuple[np.ndarray, np.ndarray | int]:
        """x, which counts times 2^unit, over the exponent that it then has in common with s."""
        if chunk.enter is not None:
            self.s = self.s * chunk.enter[:, None]
            self._rescale()
        if self.plain and unit == 0:
            return x, 0
        common = np.where(self.s.any(axis=0), self.exponent, np.iinfo(np.int64).min)
        common = np.where(x.any(axis=0), np.maximum(common, unit), common)
        common = np.where(common == np.iinfo(np.int64).min, unit, common)
        self.s = np.ldexp(self.s, self.exponent - common)
        self.exponent, self.plain = common, False
        return np.ldexp(x, unit - common), common

    def leave(self, chunk: Chunk) -> None:
        """Past a chunk, bring s back to moderate size."""
        if chunk.leave is not None:
            self.s = self.s * chunk.leave[:, None]
        self._rescale()

    def _rescale(self) -> None:
        entries = self.s.ravel()
        square = float(entries @ entries)
        if len(entries) == len(self.s) and HUGE**-2 < square < HUGE**2:
            return
        largest = np.abs(self.s).max(axis=0)
        if ((largest > HUGE) | ((largest < 1 / HUGE) & (largest > 0))).any():
            shift = np.where(largest > 0, np.frexp(largest)[1], 0)
            self.s = np.ldexp(self.s, -shift)
            self.exponent, self.plain = self.exponent + shift, False


def _multiply(chunk: Chunk, x: np.ndarray, state: _State) -> tuple[np.ndarray, np.ndarray | int]:
    """The chunk's part of A x, and its exponent; moves the state past the chunk."""
    x, common = state.enter(chunk, x, chunk.g_shift)
    y = _lower_block(chunk) @ x + chunk.F @ state.s
    state.s = state.s + chunk.G.T @ x
    state.leave(chunk)
    return y, common + chunk.f_shift


def _substitute(
    chunk: Chunk, y: np.ndarray, state: _State
) -> tuple[np.ndarray, np.ndarray | int] | None:
    """The chunk's part of A^-1 y, and its exponent; moves the state past the chunk.

    None, and the state unmoved, if the part grows so far that the chunk is to be split.
    """
    from scipy.linalg.blas import dtrsm

    before = state.s, state.exponent, state.plain
    y, common = state.enter(chunk, y, -chunk.f_shift)
    rest = y - chunk.F @ state.s
    if len(rest) == 1:
        pivot = row_dots(chunk.F, chunk.G)
        x, power = rest / pivot.mantissa, common - pivot.exponent[0]
        top = np.where(x.any(axis=0), np.maximum(common, power), common)
        state.s = np.ldexp(state.s, common - top) + np.ldexp(chunk.G.T @ x, power - top)
        if np.any(top) or not state.plain:
            state.exponent, state.plain = top, False
    else:
        block = chunk.F @ chunk.G.T
        x, power = dtrsm(1.0, block.T, rest, lower=0, trans_a=1, overwrite_b=1), common
        entries = x.ravel()
        if not float(entries @ entries) < HUGE**2:
            state.s, state.exponent, state.plain = before
            return None
        state.s = state.s + chunk.G.T @ x
    state.leave(chunk)
    return x, power - chunk.g_shift


def _lower_block(chunk: Chunk) -> np.ndarray:
    block = chunk.F @ chunk.G.T
    block *= _lower_triangle(len(block))
    return block


@cache
def _lower_triangle(n: int) -> np.ndarray:
    return np.tri(n)


def _halves(start: int, stop: int) -> list[tuple[int, int]]:
    """The halves of a chunk, to be popped from the end."""
    middle = (start + stop) // 2
    return [(middle, stop), (start, middle)]


class _Sum:
    """A sum of nonnegative numbers or matrices, over 2^exponent."""

    __slots__ = ("exponent", "value")

    def __init__(self, value: float | np.ndarray) -> None:
        self.value, self.exponent = value, 0

    def add(self, value: float | np.ndarray, exponent: int) -> None:
        """Add value * 2^exponent."""
        if not np.any(value):
            return
        if exponent != self.exponent:
            top = max(exponent, self.exponent) if np.any(self.value) else exponent
            self.value = np.ldexp(self.value, self.exponent - top)
            value, self.exponent = np.ldexp(value, exponent - top), top
        self.value = self.value + value
        largest = np.max(self.value)
        if not 1 / HUGE < largest < HUGE and largest > 0:
            shift = int(np.frexp(largest)[1])
            self.value, self.exponent = np.ldexp(self.value, -shift), self.exponent + shift


def _is_moderate(x: np.ndarray) -> bool:
    """Whether the largest entry is near enough to 1."""
    return bool(2.0 ** (-SPREAD // 2) < np.abs(x).max() < 2.0 ** (SPREAD // 2))


def _is_moderate_and_positive(X: np.ndarray) -> bool:
    """Whether no entry is zero or negative, and none, hence no product of two, far from 1."""
    return bool(2.0 ** (-SPREAD // 2) < X.min() and X.max() < 2.0 ** (SPREAD // 2 - 1))


def _moderate(x: np.ndarray) -> tuple[np.ndarray, np.ndarray | int]:
    """Columns, shape (N, m), over powers of two if one's largest entry is far from 1; exponents."""
    exponent = _exponents(x, axis=0)
    if np.abs(exponent).max() < SPREAD // 2:
        return x, 0
    return np.ldexp(x, -exponent), exponent


def _exponents(X: np.ndarray, axis: int) -> np.ndarray:
    """Along an axis, the exponent of the largest entry; 0 where all are zero."""
    largest = np.maximum(X.max(axis=axis), -X.min(axis=axis))
    return np.where(largest > 0, np.frexp(largest)[1], 0).astype(np.int64)


def _widest_row(X: np.ndarray) -> int | None:
    """The first row whose nonzero entries span more than 2^WIDTH, if there is one."""
    for start in range(0, len(X), BLOCK):
        moduli = np.abs(X[start : start + BLOCK])
        largest = moduli.max(axis=1)
        moduli[moduli == 0.0] = np.inf
        with np.errstate(over="ignore", invalid="ignore"):
            wide = np.flatnonzero(moduli.min(axis=1) / 2.0**-WIDTH < largest)
        if wide.size:
            return start + int(wide[0])
    return None


def _tamed(X: np.ndarray, exponent: np.ndarray | None) -> tuple[np.ndarray, np.ndarray | None]:
    """The same rows; with exponents, and entries of at most one, only where doubles need it.

    A row of zeros has the exponent of a neighbour, so that no chunk is split or shifted for it.
    """
    own = _exponents(X, axis=1)
    total = own if exponent is None else own + exponent
    if np.abs(total).max() < SPREAD // 2:
        return (X if exponent is None else np.ldexp(X, exponent[:, None])), None
    rows = np.flatnonzero(X.any(axis=1))
    if rows.size:
        total = total[rows[np.searchsorted(rows[1:], np.arange(len(X)), side="right")]]
    return np.ldexp(X, -own[:, None]), total


def _aligned(X: np.ndarray, exponent: np.ndarray) -> tuple[np.ndarray, int]:
    """Rows that count times 2^exponent, over the largest of these powers, and its exponent."""
    top = int(exponent.max())
    return np.ldexp(X, (exponent - top)[:, None]), top


def semiseparable(
    F: np.ndarray, G: np.ndarray, gates: np.ndarray | None = None, chunk: int = CHUNK
) -> Semiseparable:
    """tril(F G^T), or the matrix with gates, for finite F and G of shape (N, D).

    `gates` of shape (N,) or (N, D) lie between 2^-300 and 1; the first step's multiplies nothing.
    Raises ValueError for anything else, and for rows whose entries span more than 2^450.
    """
    if F.ndim != 2 or F.shape != G.shape or 0 in F.shape:
        raise ValueError(f"factors of shapes {F.shape} and {G.shape} are no pair of (N, D)")
    log2_gates = None
    if gates is not None:
        if gates.shape not in (F.shape[:1], F.shape):
            raise ValueError(f"gates of shape {gates.shape} fit neither (N,) nor (N, D)")
        if not ((gates >= 2.0**-SPREAD) & (gates <= 1.0)).all():
            raise ValueError(f"a gate is not between 2^-{SPREAD} and 1")
        log2_gates = np.log2(gates).reshape(len(F), -1)
    if _is_moderate_and_positive(F) and _is_moderate_and_positive(G):
        none = np.zeros(len(F), dtype=bool)
        return Semiseparable(F, G, None, None, log2_gates, none, none, chunk)
    for X in (F, G):
        row = _widest_row(X)
        if row is not None:
            raise ValueError(f"the entries of row {row} of a factor span more than 2^{WIDTH}")
    (F_tame, f_exponent), (G_tame, g_exponent) = _tamed(F, None), _tamed(G, None)
    zeros, lost = zero_diagonal(F, G), cancelling(F_tame, G_tame)
    return Semiseparable(F_tame, G_tame, f_exponent, g_exponent, log2_gates, zeros, lost, chunk)
