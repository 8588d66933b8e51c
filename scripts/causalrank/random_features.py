"""Feature maps whose inner products approximate the kernel exp(q . k / sqrt(d)) of softmax."""

import math

import numpy as np


def gaussian_directions(m: int, d: int, generator: np.random.Generator) -> np.ndarray:
    """m independent standard normal vectors, shape (m, d)."""
    return generator.standard_normal((m, d))


def orthogonal_directions(m: int, d: int, generator: np.random.Generator) -> np.ndarray:
    """m standard normal vectors, shape (m, d), orthogonal within each block of d.

    Directions are rows of Haar-distributed orthogonal matrices, norms are drawn anew with d degrees
    of freedom, so each vector is as normal as an independent one (Yu et al. 2016; Choromanski et
    al. 2021, section 2.4).
    """
    blocks = generator.standard_normal((-(-m // d), d, d))
    Q, R = np.linalg.qr(blocks)
    Q *= np.sign(np.diagonal(R, axis1=1, axis2=2))[:, None, :]
    norms = np.sqrt(generator.chisquare(d, m))
    return norms[:, None] * Q.transpose(0, 2, 1).reshape(-1, d)[:m]


def positive_features(x: np.ndarray, directions: np.ndarray) -> np.ndarray:
    """exp(w . x' - ||x'||^2 / 2) / sqrt(m) for every direction w, x' = x / d^(1/4), shape (N, m).

    For normal w the inner product of two of them has the mean exp(q . k / sqrt(d)): the positive
    features of FAVOR+ (Choromanski et al. 2021, lemma 1), which takes orthogonal directions and
    adds a small stabilizing constant.
    """
    m, d = directions.shape
    scaled = x / d**0.25
    return np.exp(scaled @ directions.T - (scaled * scaled).sum(axis=1)[:, None] / 2) / np.sqrt(m)


def taylor(S: np.ndarray, order: int) -> np.ndarray:
    """sum_{j <= order} S^j / j!, entry by entry: positive for an even order."""
    terms = np.ones_like(S)
    for j in range(order, 0, -1):
        terms = 1.0 + S * terms / j
    return terms


def taylor_features(x: np.ndarray) -> np.ndarray:
    """Features of shape (N, 1 + d + d (d + 1) / 2) with inner products 1 + s + s^2 / 2.

    s = x . y / sqrt(d). Of the squares, x_i x_j and x_j x_i are one feature, times sqrt(2)
    (Arora et al. 2024, which keeps both).
    """
    N, d = x.shape
    scaled = x / d**0.25
    i, j = np.triu_indices(d)
    weights = np.where(i == j, math.sqrt(0.5), 1.0)
    return np.hstack([np.ones((N, 1)), scaled, weights * scaled[:, i] * scaled[:, j]])
