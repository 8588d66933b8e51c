"""What the two steps that test Linformer's theorem share: how much is drawn, and the columns."""

import numpy as np

from causalrank.ensembles import seed_of
from causalrank.intervals import clopper_pearson
from causalrank.projection import Column, draw_errors, failure_bounds, theorem_k
from causalrank.projection_uniform import predicted_frobenius, row_column_bound, uniform_errors

EPSILON = 0.5
DRAWS = 500
FORMS = ("relative", "norm", "rows")
KEYS = ("source", "N", "d")
HEADS = (
    *(*KEYS, "layer", "head", "column", "epsilon", "k", "draws", "amplification"),
    "predicted_rms_error",
    *(f"{form}_{x}" for form in FORMS for x in ("frequency", "low", "high", "bound")),
)
UNIFORM = (
    *(*KEYS, "layer", "head", "columns", "epsilon", "k", "draws"),
    *(f"{form}_{x}" for form in ("relative", "entry") for x in ("frequency", "low", "high")),
    *("entry_bound", "frobenius_rms", "frobenius_predicted"),
)


def generator_of(*identity: str | int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(seed_of("projection", *identity)))


def frequency(exceeds: np.ndarray) -> tuple[float, float, float]:
    """How often, with its 95 % interval, of booleans of shape (draws,)."""
    failures = int(np.count_nonzero(exceeds))
    return failures / len(exceeds), *clopper_pearson(failures, len(exceeds))


def form_frequencies(
    column: Column, k: int, epsilon: float, generator: np.random.Generator
) -> dict[str, tuple[float, ...]]:
    """By form: how often it fails, with its interval and with the bound of the probability."""
    errors = draw_errors(column, k, generator)
    bounds = failure_bounds(column, k, epsilon)
    return {
        form: (*frequency(getattr(errors, form) > epsilon), bound)
        for form, bound in zip(FORMS, bounds, strict=True)
    }


def uniform_row(
    key: tuple,
    columns: str,
    P: np.ndarray,
    W: np.ndarray,
    generator: np.random.Generator,
    draws: int,
) -> tuple:
    """A row of `UNIFORM`: all columns of W, shape (n, columns), at once, at the theorem's k."""
    n, k = len(P), theorem_k(len(P), EPSILON)
    PW = P @ W
    errors = [
        uniform_errors(P, W, PW, generator.standard_normal((k, n)) / np.sqrt(k))
        for _ in range(draws)
    ]
    relative = np.array([error.worst_relative > EPSILON for error in errors])
    entry = np.array([error.worst_entry > EPSILON for error in errors])
    rms = float(np.sqrt(np.mean([error.frobenius**2 for error in errors])))
    return (
        *(*key, columns, EPSILON, k, draws, *frequency(relative), *frequency(entry)),
        *(row_column_bound(n, W.shape[1], k, EPSILON), rms, predicted_frobenius(P, W, PW, k)),
    )
