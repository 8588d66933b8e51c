"""Ranks at each station of a layer: exact, and above an absolute and a relative threshold.

Exact ranks are those of what the stored doubles define. Scores are q k^T, outputs A v, the
concatenation [A_1, ..., A_H] diag(v_1, ..., v_H) and the residual X + that, each as an exact
product of the stored factors, so that the rounding of a product lifts no rank. But A is rounded:
its rows do not sum to one exactly, and where the real A v has a smaller rank for that reason, the
exact one is too large; thresholded ranks are not.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import block_diag

from .attention_layer import Passage
from .rank import ExactRank, bidirectional_rank, dense_rank
from .spectrum import numerical_rank, singular_values


@dataclass(frozen=True)
class StationRank:
    """The ranks of one station; `head` is None for what all heads make together."""

    station: str
    head: int | None
    exact: ExactRank
    absolute: int
    relative: int


def thresholded_ranks(X: np.ndarray, threshold: float) -> tuple[int, int]:
    """How many singular values of X, (M, N), exceed `threshold`, and threshold * sigma_max."""
    sigma = singular_values(X)
    return int(np.count_nonzero(sigma > threshold)), numerical_rank(sigma, threshold)


def attention_rank(A: np.ndarray, mask: str, p: int) -> ExactRank:
    """The rank of softmax attention A, shape (N, N); p is a prime below 2^61.

    Under the causal mask N, over the reals: a triangular matrix of exponentials. Without a mask
    that of the stored, rounded entries.
    """
    if mask == "causal":
        return ExactRank(len(A), len(A), len(A), "triangular (real exp)")
    rank = dense_rank(A, p)
    return replace(rank, certificate=f"{rank.certificate} (rounded exp)")


def station_ranks(
    passage: Passage, mask: str, scale: float, threshold: float, p: int, X: np.ndarray | None
) -> Iterator[StationRank]:
    """The ranks of scores, attention, values and output of each head, then of the concatenation
    and, with tokens X of shape (N, d_model), of the residual; p is a prime below 2^61."""
    for head, (q, k, v) in enumerate(zip(passage.q, passage.k, passage.v, strict=True)):
        A, S = passage.attention[head], passage.scores[head]
        exact = bidirectional_rank(scale * q, k, p)
        yield StationRank("scores", head, exact, *thresholded_ranks(S, threshold))
        exact = attention_rank(A, mask, p)
        yield StationRank("attention", head, exact, *thresholded_ranks(A, threshold))
        yield StationRank("values", head, dense_rank(v, p), *thresholded_ranks(v, threshold))
        exact, output = bidirectional_rank(A, v.T, p), passage.outputs[head]
        yield StationRank("output", head, exact, *thresholded_ranks(output, threshold))
    rows, values = np.hstack(list(passage.attention)), block_diag(*passage.v)
    exact = bidirectional_rank(rows, values.T, p)
    output = passage.concatenated
    yield StationRank("concatenated", None, exact, *thresholded_ranks(output, threshold))
    if X is not None:
        identity = np.eye(X.shape[1])
        exact = bidirectional_rank(np.hstack([X, rows]), np.vstack([identity, values]).T, p)
        output = passage.residual
        yield StationRank("residual", None, exact, *thresholded_ranks(output, threshold))
