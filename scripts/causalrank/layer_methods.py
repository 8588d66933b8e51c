"""What may stand in for a layer's softmax attention: matrices of shape (H, N, N), by method."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from .bound import noisy, truncations
from .feature_maps import FEATURE_MAPS
from .mixing import factored
from .precision import rounded


@dataclass(frozen=True)
class Method:
    """A method's name and strength, and its attention of shape (H, N, N)."""

    name: str
    strength: object
    attention: np.ndarray


def linear_attention(q: np.ndarray, k: np.ndarray, mask: str, scale: float) -> np.ndarray:
    """Row-normalized phi(q') phi(k')^T with phi = elu + 1, for q and k of shape (H, N, w).

    q' and k' are q and k times the root of scale / sqrt(w), so that q' . k' is the score.
    """
    share = np.sqrt(scale / np.sqrt(q.shape[2]))
    phi = FEATURE_MAPS["elu_plus_one"]
    heads = zip(phi(share * q), phi(share * k), strict=True)
    return np.stack([factored(F, G, mask, "row") for F, G in heads])


def uniform_attention(heads: int, N: int, mask: str) -> np.ndarray:
    """The mean of the tokens that the mask allows: attention without scores, shape (H, N, N)."""
    A = factored(np.ones((N, 1)), np.ones((N, 1)), mask, "row")
    return np.repeat(A[None], heads, axis=0)


def methods(
    A: np.ndarray,
    q: np.ndarray,
    k: np.ndarray,
    mask: str,
    scale: float,
    noise: list[float],
    ranks: list[int],
    seed: np.random.SeedSequence,
) -> Iterator[Method]:
    """Every method's attention for softmax attention A of shape (H, N, N), and A itself.

    The same `seed` gives the same noise on another A. Truncation heeds no mask: it fills the zeros
    above the diagonal.
    """
    yield Method("exact", "", A)
    for precision in ("float32", "bfloat16"):
        yield Method("rounding", precision, rounded(A, precision))
    for strength in noise:
        generator = np.random.Generator(np.random.PCG64(seed))
        yield Method("noise", strength, noisy(A, strength, generator))
    if ranks:
        cut = zip(*(truncations(A_h, ranks) for A_h in A), strict=True)
        for rank, heads in zip(ranks, cut, strict=True):
            yield Method("truncation", rank, np.stack(heads))
    yield Method("linear", "elu_plus_one", linear_attention(q, k, mask, scale))
    yield Method("uniform", "", uniform_attention(len(A), A.shape[1], mask))
