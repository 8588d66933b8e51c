"""Approximations of a head's mixing matrix, by name: functions of head, strength and generator."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from . import landmarks, low_rank, perturbation, quantization, random_features, sparsity
from .head import Head
from .mixing import scores
from .precision import rounded

NO_CAUSAL_FORM = "no causal form: it mixes later tokens into earlier ones"
"""Said of landmarks too, means of many tokens. Truncation mixes tokens as well, but is kept under
the mask as an analysis of the matrix, the best of its rank: no method could run it by the token."""
SOFTMAX_ONLY = "approximates exp(q . k): softmax only"
ROWS_ONLY = "its rows are softmaxes: row-normalized only"
FEW_TOKENS = "more landmarks than tokens"
NOT_FINITE = "an entry is beyond the largest number of the format"

Strength = int | float | str


Generator = np.random.Generator
Function = Callable[[Head, Strength, Generator | None], np.ndarray]


def _truncation(head: Head, r: int, _: Generator | None) -> np.ndarray:
    return low_rank.truncation(head.A, r, head.right_vectors)


def _nystrom(head: Head, m: int, _: Generator | None) -> np.ndarray:
    L, R = landmarks.nystrom_factors(head, m)
    return head.of_kernel(L @ R.T)


def _nystromformer(head: Head, m: int, _: Generator | None) -> np.ndarray:
    L, R = landmarks.nystromformer_factors(head, m)
    return L @ R.T


def _linformer(head: Head, k: int, generator: Generator) -> np.ndarray:
    P, F = low_rank.linformer_factors(head.F, head.G, k, generator)
    return P @ F


def _performer(head: Head, m: int, generator: Generator, directions: Callable) -> np.ndarray:
    W = directions(m, head.F.shape[1], generator)
    return head.of_kernel(
        random_features.positive_features(head.F, W)
        @ random_features.positive_features(head.G, W).T
    )


def _no_form(head: Head, _: Strength) -> str:
    return ""


def _softmax_only(head: Head, _: Strength) -> str:
    return "" if head.feature_map == "softmax" else SOFTMAX_ONLY


def _bidirectional_only(head: Head, _: Strength) -> str:
    return NO_CAUSAL_FORM if head.mask == "causal" else ""


def _row_softmax_only(head: Head, k: Strength) -> str:
    lacks = _bidirectional_only(head, k) or _softmax_only(head, k)
    return lacks or ("" if head.normalization == "row" else ROWS_ONLY)


def _landmarks_lack(head: Head, m: int) -> str:
    return _bidirectional_only(head, m) or (FEW_TOKENS if m > len(head.F) else "")


def _never(strength: Strength, N: int, mask: str) -> bool:
    return False


def _every_token(k: int, N: int, _: str) -> bool:
    return k >= N


def _window_of_all(width: int, N: int, mask: str) -> bool:
    return width >= N if mask == "causal" else width // 2 >= N - 1


@dataclass(frozen=True)
class Approximation:
    """A_hat, shape (N, N), as `function(head, strength, generator)`.

    `lacks(head, strength)` says in words why there is no such approximation, or nothing. `strength`
    is what a strength is called, `kind` its type. `complete(strength, N, mask)` says whether
    nothing of N tokens is left out, so that there is nothing to gain. Where `values` is not None,
    the approximation comes with values of its own, `values(E, v)`. Where it does not say that it
    `draws`, the generator may be None. A function raises OverflowError
    or ZeroDivisionError where its matrix does not exist in float64.
    """

    strength: str
    kind: type
    function: Function
    lacks: Callable[[Head, Strength], str] = _no_form
    complete: Callable[[Strength, int, str], bool] = _never
    values: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None
    draws: bool = False


def _noise(head: Head, strength: float, generator: Generator) -> np.ndarray:
    return perturbation.noisy(head.A, strength, generator)


gaussian, orthogonal = random_features.gaussian_directions, random_features.orthogonal_directions
APPROXIMATIONS: dict[str, Approximation] = {
    "truncation": Approximation("rank", int, _truncation, complete=_every_token),
    "nystrom": Approximation("landmarks", int, _nystrom, _landmarks_lack, _every_token),
    "nystromformer": Approximation(
        "landmarks",
        int,
        _nystromformer,
        lambda head, m: _row_softmax_only(head, m) or _landmarks_lack(head, m),
        _every_token,
    ),
    "linformer": Approximation(
        "projected tokens", int, _linformer, _row_softmax_only, _every_token, draws=True
    ),
    "projection": Approximation(
        "projected tokens",
        int,
        lambda head, k, generator: low_rank.projection(head.A, k, generator),
        _bidirectional_only,
        _every_token,
        draws=True,
    ),
    "performer": Approximation(
        "random features", int, partial(_performer, directions=gaussian), _softmax_only, draws=True
    ),
    "performer_orthogonal": Approximation(
        "random features",
        int,
        partial(_performer, directions=orthogonal),
        _softmax_only,
        draws=True,
    ),
    "taylor": Approximation(
        "order",
        int,
        lambda head, order, _: head.of_kernel(
            random_features.taylor(scores(head.F, head.G), order)
        ),
        _softmax_only,
    ),
    "window": Approximation(
        "width in tokens",
        int,
        lambda head, width, _: head.of_entries(sparsity.window(head.A, width, head.mask)),
        complete=_window_of_all,
    ),
    "top_k": Approximation(
        "keys per row",
        int,
        lambda head, k, _: head.of_entries(sparsity.top_k(head.A, k)),
        complete=_every_token,
    ),
    "decay": Approximation(
        "factor per token",
        float,
        lambda head, gamma, _: head.of_entries(sparsity.decay(head.A, gamma)),
    ),
    "rounding": Approximation("format", str, lambda head, name, _: rounded(head.A, name)),
    "quantization": Approximation(
        "bits per entry", int, lambda head, bits, _: quantization.quantized(head.A, bits)
    ),
    "noise": Approximation("relative standard deviation", float, _noise, draws=True),
    "adversary": Approximation(
        "relative standard deviation",
        float,
        _noise,
        values=perturbation.adversarial_values,
        draws=True,
    ),
}


def approximate(
    name: str, head: Head, strength: Strength, generator: Generator | None
) -> tuple[np.ndarray | None, str]:
    """The approximation of the head's matrix, shape (N, N), or None and why there is none."""
    approximation = APPROXIMATIONS[name]
    if reason := approximation.lacks(head, strength):
        return None, reason
    try:
        A_hat = approximation.function(head, strength, generator)
    except (OverflowError, ZeroDivisionError) as error:
        return None, str(error)
    return (A_hat, "") if np.isfinite(A_hat).all() else (None, NOT_FINITE)
