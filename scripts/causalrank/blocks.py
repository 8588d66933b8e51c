"""Products and solves of tril(F G^T) with one vector, where rows need no exponents and no gates.

What a Krylov method does most. With the tokens in chunks, A = tril(F G^T) has triangular blocks
T_c = tril(F_c G_c^T) and, below them, F_c G_b^T: A x has the parts

    y_c = T_c x_c + F_c s_c,    s_c = sum_{b<c} G_b^T x_b,

so that a product has no recurrence but a running sum, and is a few batched products. In a solve,
x_c = T_c^-1 (y_c - F_c s_c) is needed for s_{c+1}, one chunk after the other. The transpose has F
and G in each other's places and runs from the last chunk to the first.
"""

from collections.abc import Iterator
from functools import cache, cached_property
from typing import NamedTuple

import numpy as np

from .scaled import Scaled

SLAB = 64
"""Chunks whose blocks are formed at once."""
KEPT = 2**24
"""Bytes of blocks that are kept from one product to the next, whatever N: a cache's worth."""
UNCHECKED = 8
"""Chunks of a solve between looks at how large it has become."""
HUGE = 2.0**150
"""A state beyond this is rescaled; a solution beyond its square is not found here."""


class Slab(NamedTuple):
    """Tokens start to stop: n chunks of C tokens. F and G of shape (n, C, D), T of (n, C, C)."""

    start: int
    stop: int
    F: np.ndarray
    G: np.ndarray
    T: np.ndarray


class Blocks:
    """F and G of shape (N, D), entries between 2^-300 and 2^300, and the blocks of A."""

    def __init__(self, F: np.ndarray, G: np.ndarray, chunk: int) -> None:
        self.F, self.G = np.ascontiguousarray(F), np.ascontiguousarray(G)
        self.N, self.chunk = len(F), chunk

    def product(self, x: np.ndarray, transposed: bool = False) -> Scaled:
        """A x, or A^T x, for x of shape (N,)."""
        y, state = np.empty(self.N), np.zeros((self.F.shape[1], 1))
        for slab in self._slabs(transposed):
            n, C, _ = slab.F.shape
            F, G, T = self._seen(slab, transposed)
            X = x[slab.start : slab.stop].reshape(n, C, 1)
            sums = G.transpose(0, 2, 1) @ X
            before = self._running(sums, state, transposed)
            y[slab.start : slab.stop] = (T @ X + F @ before).ravel()
            last = 0 if transposed else -1
            state = before[last] + sums[last]
        return Scaled(y, np.zeros(self.N, dtype=np.int64))

    def solve(self, y: np.ndarray, transposed: bool = False) -> Scaled | None:
        """A^-1 y, or A^-T y, for y of shape (N,) and A with a diagonal without zeros.

        The state grows past the range of any float, so it and the solution carry an exponent. None
        if the solution grows by more than 2^150 within UNCHECKED chunks.
        """
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is not returned
            return self._substitute(y, transposed)

    def _substitute(self, y: np.ndarray, transposed: bool) -> Scaled | None:
        from scipy.linalg.blas import dtrsv  # not before it is needed: it takes a third of a second

        x, exponents = np.empty(self.N), np.zeros(self.N, dtype=np.int64)
        state, exponent = np.zeros(self.F.shape[1]), 0
        for slab in self._slabs(transposed):
            n, C, _ = slab.F.shape
            F, G, _ = self._seen(slab, transposed)
            order = range(n)[:: -1 if transposed else 1]
            for few in (order[i : i + UNCHECKED] for i in range(0, n, UNCHECKED)):
                rows = slice(slab.start + min(few) * C, slab.start + (max(few) + 1) * C)
                right = np.ldexp(y[rows], -exponent) if exponent else y[rows]
                right, parts = right.reshape(-1, C), x[rows].reshape(-1, C)
                for c in few:
                    place = c - min(few)
                    rest = right[place] - F[c] @ state
                    parts[place] = dtrsv(slab.T[c].T, rest, trans=0 if transposed else 1)
                    state = state + parts[place] @ G[c]
                exponents[rows] = exponent
                square = state @ state
                if not (x[rows] @ x[rows] < HUGE**4 and square < np.inf):
                    return None
                if not square < HUGE**2 or (exponent and square < HUGE**-2):
                    shift = max(int(np.frexp(np.abs(state).max())[1]), -exponent)
                    state, exponent = np.ldexp(state, -shift), exponent + shift
        return Scaled(x, exponents)

    def squared_frobenius_norm(self) -> float:
        """||A||_F^2, the sum over chunks of ||T_c||_F^2 + tr(F_c (sum_{b<c} G_b^T G_b) F_c^T)."""
        total, state = 0.0, np.zeros((self.F.shape[1],) * 2)
        for slab in self._slabs():
            total += np.vdot(slab.T, slab.T)
            for F, G in zip(slab.F, slab.G, strict=True):
                total += np.vdot(F @ state, F)
                state = state + G.T @ G
        return float(total)

    @staticmethod
    def _seen(slab: Slab, transposed: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """F, G and T of the matrix, or of its transpose."""
        return (slab.G, slab.F, slab.T.transpose(0, 2, 1)) if transposed else slab[2:]

    @staticmethod
    def _running(sums: np.ndarray, state: np.ndarray, backwards: bool = False) -> np.ndarray:
        """The state before each chunk, shape (n, ...): `state` and what earlier chunks added."""
        order = slice(None, None, -1 if backwards else 1)
        before = np.concatenate([state[None], sums[order][:-1]])
        return np.cumsum(before, axis=0)[order]

    def _slabs(self, backwards: bool = False) -> Iterator[Slab]:
        """All tokens, those that fill no chunk being a last one of their own."""
        if 8 * self.N * self.chunk <= KEPT:
            return iter(self._kept[:: -1 if backwards else 1])
        return (self._slab(*span) for span in self._spans[:: -1 if backwards else 1])

    @cached_property
    def _kept(self) -> list[Slab]:
        return [self._slab(*span) for span in self._spans]

    @property
    def _spans(self) -> list[tuple[int, int]]:
        step, whole = SLAB * self.chunk, self.N - self.N % self.chunk
        spans = [(start, min(start + step, whole)) for start in range(0, whole, step)]
        return spans + ([(whole, self.N)] if whole < self.N else [])

    def _slab(self, start: int, stop: int) -> Slab:
        chunk = min(self.chunk, stop - start)
        F, G = (X[start:stop].reshape(-1, chunk, X.shape[1]) for X in (self.F, self.G))
        T = F @ G.transpose(0, 2, 1)
        T *= _lower_triangle(chunk)
        return Slab(start, stop, F, G, T)


@cache
def _lower_triangle(n: int) -> np.ndarray:
    return np.tri(n)
