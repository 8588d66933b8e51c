"""Approximate softmax attention as it is deployed: the output A_hat V without the N x N matrix.

Row-normalized, in double precision. Each function gives what `approximations` gives as a matrix,
times V, for the same generator.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from .approximations import Strength
from .head import Head
from .landmarks import nystrom_factors, nystromformer_factors
from .low_rank import linformer_factors
from .mixing import softmax
from .random_features import (
    gaussian_directions,
    orthogonal_directions,
    positive_features,
    taylor_features,
)

CHUNK = 128
"""Rows that are computed at once where not all are."""


def linear_attention(F: np.ndarray, G: np.ndarray, v: np.ndarray, mask: str) -> np.ndarray:
    """Row-normalized attention, shape (N, d_v), of the kernel F G^T for factors of shape (N, D).

    A row without any entry stays zero. Without a mask, F (G^T v) over F (G^T 1). Under the causal
    one the sums run (Katharopoulos et al. 2020), CHUNK tokens at a time, of which the first sees
    those before and each its chunk.
    """
    values = np.hstack([v, np.ones((len(v), 1))])
    if mask == "bidirectional":
        products = F @ (G.T @ values)
    else:
        products = np.empty_like(values)
        state = np.zeros((G.shape[1], values.shape[1]))
        for a in range(0, len(F), CHUNK):
            f, g, x = (X[a : a + CHUNK] for X in (F, G, values))
            products[a : a + CHUNK] = f @ state + np.tril(f @ g.T) @ x
            state += g.T @ x
    sums = products[:, -1:]
    return products[:, :-1] / np.where(sums == 0.0, 1.0, sums)


def exact_by_rows(q: np.ndarray, k: np.ndarray, v: np.ndarray, mask: str) -> np.ndarray:
    """Softmax attention itself, shape (N, d_v), CHUNK rows of the matrix at a time."""
    output = np.empty_like(v)
    for a in range(0, len(q), CHUNK):
        output[a : a + CHUNK] = softmax(q[a : a + CHUNK], k, mask, "row", a) @ v
    return output


def windowed(q: np.ndarray, k: np.ndarray, v: np.ndarray, mask: str, width: int) -> np.ndarray:
    """Softmax attention within a sliding window, shape (N, d_v); of each chunk its keys alone."""
    before, after = (width - 1, 0) if mask == "causal" else (width // 2, width // 2)
    output = np.empty_like(v)
    for a in range(0, len(q), CHUNK):
        first, last = max(0, a - before), min(len(k), a + CHUNK + after)
        S = q[a : a + CHUNK] @ k[first:last].T / np.sqrt(q.shape[1])
        distance = np.arange(first, last) - np.arange(a, a + len(S))[:, None]
        S = np.where((distance >= -before) & (distance <= after), S, -np.inf)
        P = np.exp(S - S.max(axis=1, keepdims=True))
        output[a : a + CHUNK] = P @ v[first:last] / P.sum(axis=1, keepdims=True)
    return output


Generator = np.random.Generator


def _window(head: Head, v: np.ndarray, width: int, _: Generator) -> np.ndarray:
    return windowed(head.F, head.G, v, head.mask, width)


def _exact(head: Head, v: np.ndarray, _: Strength, __: Generator) -> np.ndarray:
    return exact_by_rows(head.F, head.G, v, head.mask)


def _performer(
    head: Head, v: np.ndarray, m: int, generator: Generator, directions: Callable
) -> np.ndarray:
    W = directions(m, head.F.shape[1], generator)
    F, G = (positive_features(x, W) for x in (head.F, head.G))
    return linear_attention(F, G, v, head.mask)


def _taylor(head: Head, v: np.ndarray, _: Strength, __: Generator) -> np.ndarray:
    return linear_attention(taylor_features(head.F), taylor_features(head.G), v, head.mask)


def _nystrom(head: Head, v: np.ndarray, m: int, _: Generator) -> np.ndarray:
    return linear_attention(*nystrom_factors(head, m), v, head.mask)


def _nystromformer(head: Head, v: np.ndarray, m: int, _: Generator) -> np.ndarray:
    L, R = nystromformer_factors(head, m)
    return L @ (R.T @ v)


def _linformer(head: Head, v: np.ndarray, k: int, generator: Generator) -> np.ndarray:
    P, F = linformer_factors(head.F, head.G, k, generator)
    return P @ (F @ v)


@dataclass(frozen=True)
class Deployed:
    """The output, shape (N, d_v), as `function(head, v, strength, generator)`, and its form."""

    form: str
    function: Callable[[Head, np.ndarray, Strength, Generator], np.ndarray]


RECURRENT = "factored: running sums under the mask"
DEPLOYED: dict[str, Deployed] = {
    "exact": Deployed("rows in chunks", _exact),
    "nystrom": Deployed("factored", _nystrom),
    "nystromformer": Deployed("factored", _nystromformer),
    "linformer": Deployed("factored", _linformer),
    "performer": Deployed(RECURRENT, partial(_performer, directions=gaussian_directions)),
    "performer_orthogonal": Deployed(
        RECURRENT, partial(_performer, directions=orthogonal_directions)
    ),
    "taylor": Deployed(RECURRENT, _taylor),
    "window": Deployed("keys of the window", _window),
}
"""What has a form without the matrix; softmax with a decay, with the largest keys alone, truncated,
projected or rounded needs all of its entries first."""
