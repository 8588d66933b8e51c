"""How a contrast between two tokens passes a layer: exact directional derivatives.

The contrast X + eps D with D = (e_a - e_b) u^T / sqrt(2), ||D||_F = 1, tells token a from token b.
To first order in eps, with dq = D Wq, dk = D Wk, dv = D Wv,

    dS = scale (dq k^T + q dk^T) / sqrt(w),      dA_i = (diag(a_i) - a_i a_i^T) dS_i,
    dO = dA v + A dv,                            d(X + O) = D + dO,

where a_i is row i of A and scores off the mask's support count as fixed.
"""

from dataclasses import dataclass

import numpy as np

from .attention_layer import Passage, Projections, concatenated


def between(N: int, first: int, second: int, u: np.ndarray) -> np.ndarray:
    """D of tokens `first` and `second`, shape (N, d_model), for u of shape (d_model,)."""
    D = np.zeros((N, len(u)))
    D[first], D[second] = u, -u
    return D / np.linalg.norm(D)


@dataclass(frozen=True)
class Passed:
    """The derivative at each station: scores and attention (H, N, N), the others (N, d_model).

    The output's is `by_attention` + `by_values`, that of A times v and A times that of v.
    """

    scores: np.ndarray
    attention: np.ndarray
    by_attention: np.ndarray
    by_values: np.ndarray
    residual: np.ndarray

    @property
    def output(self) -> np.ndarray:
        return self.by_attention + self.by_values


def through_scores(
    passage: Passage, mask: str, scale: float, dq: np.ndarray, dk: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """dS and dA, shape (H, N, N), for dq and dk of shape (H, N, w)."""
    dS = scale * (dq @ passage.k.mT + passage.q @ dk.mT) / np.sqrt(passage.q.shape[2])
    if mask == "causal":
        dS = np.tril(dS)
    weighted = passage.attention * dS
    return dS, weighted - passage.attention * weighted.sum(axis=2, keepdims=True)


def passed(passage: Passage, W: Projections, mask: str, scale: float, D: np.ndarray) -> Passed:
    """The derivative in the direction D, shape (N, d_model), at a layer's `forward` passage."""
    dq, dk, dv = D @ W.query, D @ W.key, D @ W.value
    dS, dA = through_scores(passage, mask, scale, dq, dk)
    by_attention, by_values = concatenated(dA @ passage.v), concatenated(passage.attention @ dv)
    return Passed(dS, dA, by_attention, by_values, D + by_attention + by_values)
