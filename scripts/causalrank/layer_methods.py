"""What may stand in for a layer's softmax attention: matrices of shape (H, N, N), by method."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from .approximations import APPROXIMATIONS, Strength, approximate
from .attention_layer import Passage
from .feature_maps import FEATURE_MAPS
from .head import Head
from .mixing import factored


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
    passage: Passage,
    mask: str,
    scale: float,
    ladders: dict[str, list[Strength]],
    generator_of: Callable[[str, Strength], np.random.Generator],
) -> Iterator[Method]:
    """A passage's softmax attention, every approximation of it that exists, and what ignores it.

    Every head is approximated by itself, at the strengths of `ladders` that leave something out.
    `generator_of(name, strength)` gives the draws, the same for another passage. An approximation
    that brings values of its own is none of attention alone.
    """
    yield Method("exact", "", passage.attention)
    largest_rank = max(ladders.get("truncation") or [0])
    share = np.sqrt(scale)  # random features and landmarks depend on how q and k share it
    heads = [
        Head(share * q, share * k, "softmax", mask, "row", largest_rank)
        for q, k in zip(passage.q, passage.k, strict=True)
    ]
    for name, ladder in ladders.items():
        if APPROXIMATIONS[name].values is not None:
            continue
        for strength in ladder:
            if APPROXIMATIONS[name].complete(strength, passage.q.shape[1], mask):
                continue
            generator = generator_of(name, strength) if APPROXIMATIONS[name].draws else None
            found = [approximate(name, head, strength, generator)[0] for head in heads]
            if all(A_hat is not None for A_hat in found):
                yield Method(name, strength, np.stack(found))
    yield Method("linear", "elu_plus_one", linear_attention(passage.q, passage.k, mask, scale))
    yield Method("uniform", "", uniform_attention(*passage.attention.shape[:2], mask))
