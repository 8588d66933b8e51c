"""Pairs of heads that are redundant in one respect and not in another: q, k, v of (2, N, w)."""

import numpy as np

Heads = tuple[np.ndarray, np.ndarray, np.ndarray]


def same_attention(N: int, w: int, generator: np.random.Generator) -> Heads:
    """The same q and k, and so the same A; different values. [A v_1, A v_2] has rank 2 w."""
    q, k, v, other = generator.standard_normal((4, N, w))
    return np.stack([q, q]), np.stack([k, k]), np.stack([v, other])


def same_values(N: int, w: int, generator: np.random.Generator) -> Heads:
    """Different q and k; the same values, which differ between tokens: outputs differ."""
    q, k = generator.standard_normal((2, 2, N, w))
    v = generator.standard_normal((N, w))
    return q, k, np.stack([v, v])


def same_identical_values(N: int, w: int, generator: np.random.Generator) -> Heads:
    """Different q and k; one value for all tokens of both heads: the same outputs, of rank one."""
    q, k = generator.standard_normal((2, 2, N, w))
    v = np.repeat(generator.standard_normal((1, w)), N, axis=0)
    return q, k, np.stack([v, v])


def same_everything(N: int, w: int, generator: np.random.Generator) -> Heads:
    """The same q, k and v: one head twice."""
    q, k, v = generator.standard_normal((3, N, w))
    return np.stack([q, q]), np.stack([k, k]), np.stack([v, v])


PAIRS = {
    "same_attention": same_attention,
    "same_values": same_values,
    "same_identical_values": same_identical_values,
    "same_everything": same_everything,
}
