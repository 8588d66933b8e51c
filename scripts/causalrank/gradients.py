"""Frobenius norms of the Jacobians of softmax attention's output, in closed form.

Row i of a head's output is o_i = sum_j a_ij v_j with a_i the softmax of the scores
s_i = scale q_i k^T / sqrt(w). The derivative of a softmax, diag(a) - a a^T, makes
do_i / ds_ij = a_ij (v_j - o_i), so

    do_i / dq_i   = scale / sqrt(w) sum_j a_ij (v_j - o_i) k_j^T,
    do_i / dk_j   = scale / sqrt(w) a_ij (v_j - o_i) q_i^T,
    do_i / dv_j   = a_ij I,
    do_i / dscale = sum_j a_ij (v_j - o_i) (q_i . k_j) / sqrt(w),

and all other blocks are zero. A Jacobian of N^2 w^2 entries is never formed: a head takes
O(N^2 w^2) operations and O(N^2 w) memory. Row i of the first is the covariance, under the weights
a_i, of values and keys: it vanishes where the attention is one token's or the values are equal.
"""

from dataclasses import dataclass

import numpy as np

from .attention_layer import Passage


@dataclass(frozen=True)
class GradientNorms:
    """||dO/dS||_F, ||dO/dq||_F, ||dO/dk||_F, ||dO/dv||_F and ||dO/dscale||_F, O the outputs of all
    heads and S their scores."""

    scores: float
    q: float
    k: float
    v: float
    scale: float


def gradient_norms(passage: Passage, scale: float) -> GradientNorms:
    """The norms at a passage of H heads; each head's output depends on its own q, k, v alone."""
    A, q, k, v = passage.attention, passage.q, passage.k, passage.v
    w = q.shape[2]
    away = v[:, None, :, :] - passage.outputs[:, :, None, :]  # v_j - o_i, shape (H, N, N, w)
    covariance = (A[..., None] * away).mT @ k[:, None]
    by_score = A * A * (away * away).sum(axis=3)
    by_key = np.einsum("hij,hi->", by_score, (q * q).sum(axis=2))
    by_scale = np.einsum("hicd,hid->hic", covariance, q) / np.sqrt(w)
    return GradientNorms(
        scores=float(np.sqrt(by_score.sum())),
        q=float(abs(scale) * np.linalg.norm(covariance) / np.sqrt(w)),
        k=float(abs(scale) * np.sqrt(by_key / w)),
        v=float(np.sqrt(v.shape[2]) * np.linalg.norm(A)),
        scale=float(np.linalg.norm(by_scale)),
    )
