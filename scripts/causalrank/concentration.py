"""How concentrated a spectrum is: which share of its sum the first singular values carry.

Linformer (Wang et al. 2020, figure 1) plots, for singular values sigma_1 >= ... >= sigma_N, the
cumulative share (sigma_1 + ... + sigma_j) / (sigma_1 + ... + sigma_N) against j, and as a heatmap
its value at j = 128 of N = 512. Of sigma, not of sigma squared.
"""

import numpy as np

from .feature_maps import FEATURE_MAPS
from .inertia import Counts
from .mixing import factored, normalized_factors, softmax
from .spectrum import factored_singular_values, summarize

FRACTIONS = (1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2)
QUANTITIES = (
    *(("cumulative", fraction) for fraction in FRACTIONS),
    ("index_of_90", None),
    ("stable_rank", None),
    ("effective_rank", None),
)
"""What `read_off` gives, in its order: a name, and for a share of which fraction of N."""


def gram_singular_values(A: np.ndarray) -> np.ndarray:
    """The singular values of A, shape (N,), largest first, from the eigenvalues of A^T A.

    Half the time of a singular value decomposition. Product and eigenvalues err by about
    delta = N eps sigma_1^2 (Weyl's inequality), so sigma_i errs by at most
    min(sqrt(delta), delta / sigma_i), which `gram_error` sums up: at N = 512 a singular value
    may be wrong by 3.4e-7 sigma_1, and none is resolved below. That is too little for a
    condition number and enough for a cumulative share.
    """
    eigenvalues = np.linalg.eigvalsh(A.T @ A)[::-1]
    return np.sqrt(np.maximum(eigenvalues, 0.0))


def gram_error(sigma: np.ndarray) -> float:
    """How far a cumulative share of `gram_singular_values`, shape (N,), may be from the true one.

    With E the sum of the errors of all values and X their sum, a share errs by at most 2 E / X:
    E in its numerator, and as much by its denominator.
    """
    delta = len(sigma) * np.finfo(float).eps * sigma[0] ** 2
    with np.errstate(divide="ignore"):
        errors = np.minimum(np.sqrt(delta), delta / sigma)
    return float(2 * errors.sum() / sigma.sum())


def cumulative_share(sigma: np.ndarray, fraction: float) -> float:
    """The share of the first floor(fraction N) of singular values of shape (N,), at least one."""
    return float(sigma[: max(1, int(fraction * len(sigma)))].sum() / sigma.sum())


def index_of_share(sigma: np.ndarray, share: float) -> int:
    """The smallest j for which the first j of singular values, shape (N,), carry the share."""
    return 1 + int(np.argmax(np.cumsum(sigma) >= share * sigma.sum()))


def head_singular_values(
    q: np.ndarray, k: np.ndarray, feature_map: str, mask: str, normalization: str
) -> np.ndarray:
    """The singular values, shape (N,), of the mixing matrix of a head's q, k of shape (N, d).

    Those of linear attention without a mask come from its factors, all others from the Gram
    matrix. Raises what forming the matrix raises.
    """
    if feature_map == "softmax":
        return gram_singular_values(softmax(q, k, mask, normalization))
    F, G = FEATURE_MAPS[feature_map](q), FEATURE_MAPS[feature_map](k)
    if mask == "bidirectional" and F.shape[1] < len(F):
        if normalization == "row":
            F, G = normalized_factors(F, G)
        return factored_singular_values(F, G)
    return gram_singular_values(factored(F, G, mask, normalization))


def read_off(sigma: np.ndarray) -> list[float]:
    """The `QUANTITIES` of singular values of shape (N,); NaN if all are zero.

    index_of_90 is the smallest j whose first j values carry 90 % of the sum, over N.
    """
    if sigma[0] == 0.0:
        return [float("nan")] * len(QUANTITIES)
    shares = [cumulative_share(sigma, fraction) for fraction in FRACTIONS]
    ranks = summarize(sigma)
    index = index_of_share(sigma, 0.9) / len(sigma)
    return [*shares, index, ranks.stable_rank, ranks.effective_rank]


def counted_share(counts: Counts, fraction: float) -> tuple[float, float]:
    """Bounds of `cumulative_share` where only counts above levels are known.

    The share rises with its own singular values and falls with all others, so it is smallest
    with its own at the lower ends of their bins and the others at the upper ends.
    """
    lower, upper = _ends(counts)
    j = max(1, int(fraction * counts.N))
    low, high = lower[:j].sum(), upper[:j].sum()
    return float(low / (low + upper[j:].sum())), float(high / (high + lower[j:].sum()))


def counted_index(counts: Counts, share: float) -> tuple[int, int]:
    """Bounds of `index_of_share` where only counts above levels are known; reasons as above."""
    lower, upper = (np.cumsum(values) for values in _ends(counts))
    most = upper / (upper + lower[-1] - lower)
    least = lower / (lower + upper[-1] - upper)
    return 1 + int(np.argmax(most >= share)), 1 + int(np.argmax(least >= share))


def _ends(counts: Counts) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper bounds of each of the N singular values, over the largest."""
    lower, upper, numbers = counts.bins()
    return np.repeat(lower, numbers), np.repeat(upper, numbers)
