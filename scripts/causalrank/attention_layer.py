"""A multi-head attention layer, from tokens to the residual stream, one array per station.

With tokens X, N x d_model, and head h's projections, q_h = X Wq_h, k_h = X Wk_h and v_h = X Wv_h,

    S_h = scale q_h k_h^T / sqrt(w),  A_h = softmax of S_h's rows,  O_h = A_h v_h,

the layer's output is [O_1, ..., O_H] and the residual stream X + [O_1, ..., O_H] (Vaswani et al.
2017, without their output projection: it adds as many parameters whatever the heads, and an
invertible one changes no rank). H heads of width w = d_model / H have 3 d_model^2 parameters for
every H.
"""

from dataclasses import dataclass

import numpy as np

from .mixing import scores, softmax


@dataclass(frozen=True)
class Projections:
    """Wq, Wk and Wv of all heads, shape (H, d_model, w) each."""

    query: np.ndarray
    key: np.ndarray
    value: np.ndarray

    @property
    def parameters(self) -> int:
        return self.query.size + self.key.size + self.value.size


def projections(d_model: int, heads: int, generator: np.random.Generator) -> Projections:
    """Three d_model x d_model matrices of N(0, 1 / d_model) entries, cut into `heads` by columns.

    A generator in the same state gives the same parameters for every number of heads. Raises
    ValueError if `heads` does not divide d_model.
    """
    if d_model % heads:
        raise ValueError(f"{heads} heads do not divide d_model = {d_model}")
    W = generator.standard_normal((3, d_model, d_model)) / np.sqrt(d_model)
    return Projections(*W.reshape(3, d_model, heads, d_model // heads).transpose(0, 2, 1, 3))


@dataclass(frozen=True)
class Passage:
    """What a layer computes on its way: q, k, v and outputs of shape (H, N, w), scores and
    attention of shape (H, N, N); concatenated and residual of shape (N, H w).

    `residual` is None for heads that are given by q, k and v, without tokens.
    """

    q: np.ndarray
    k: np.ndarray
    v: np.ndarray
    scores: np.ndarray
    attention: np.ndarray
    outputs: np.ndarray
    residual: np.ndarray | None

    @property
    def concatenated(self) -> np.ndarray:
        return concatenated(self.outputs)


def concatenated(outputs: np.ndarray) -> np.ndarray:
    """[O_1, ..., O_H], shape (N, H w), of outputs of shape (H, N, w)."""
    return np.concatenate(list(outputs), axis=1)


def attend(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, mask: str, scale: float, X: np.ndarray | None
) -> Passage:
    """Softmax attention of heads with q, k and v of shape (H, N, w), and tokens X, (N, H w)."""
    S = np.stack([scores(scale * q_h, k_h) for q_h, k_h in zip(q, k, strict=True)])
    A = np.stack([softmax(scale * q_h, k_h, mask, "row") for q_h, k_h in zip(q, k, strict=True)])
    outputs = A @ v
    residual = None if X is None else X + concatenated(outputs)
    return Passage(q, k, v, S, A, outputs, residual)


def forward(X: np.ndarray, W: Projections, mask: str, scale: float) -> Passage:
    """The passage of tokens X, shape (N, d_model), through a layer."""
    return attend(X @ W.query, X @ W.key, X @ W.value, mask, scale, X)
