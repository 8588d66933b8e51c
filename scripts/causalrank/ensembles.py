"""Drawn ensembles of q, k, v."""

import hashlib

import numpy as np


def seed_of(*identity: str | int) -> np.random.SeedSequence:
    """The seed that belongs to an identity, such as (source, N, d, member).

    The identity itself is the entropy, so no other cell of a grid changes it. Words are hashed
    with SHA-256; integers stay as they are.
    """
    entropy: list[int] = []
    for part in identity:
        if isinstance(part, str):
            entropy.extend(np.frombuffer(hashlib.sha256(part.encode()).digest(), "<u4").tolist())
        else:
            entropy.append(part)
    return np.random.SeedSequence(entropy)


def gaussian(
    source: str, N: int, d: int, member: int, scale: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """q, k, v of shape (N, d), with independent N(0, scale^2) entries.

    The feature map is not part of the identity: all maps of a study see the same draws, so
    that a difference between them is theirs.
    """
    generator = np.random.Generator(np.random.PCG64(seed_of(source, N, d, member)))
    q, k, v = scale * generator.standard_normal((3, N, d))
    return q, k, v


def ensemble(
    source: str, N: int, d: int, members: int, scale: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The draws of all members, q, k, v of shape (members, N, d)."""
    draws = [gaussian(source, N, d, member, scale) for member in range(members)]
    q, k, v = map(np.stack, zip(*draws, strict=True))
    return q, k, v
