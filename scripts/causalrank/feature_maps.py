"""Feature maps phi of linear attention, by name."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class FeatureMap:
    """An entrywise map phi from R^d to R^D, with what is known of its signs."""

    function: Callable[[np.ndarray], np.ndarray]
    nonnegative: bool
    strictly_positive: bool

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """phi(x), of shape (..., D), for x of shape (..., d).

        Raises OverflowError when a value leaves the range of float64.
        """
        with np.errstate(over="ignore"):
            values = self.function(x)
        if not np.isfinite(values).all():
            worst = x[~np.isfinite(values)]
            raise OverflowError(
                f"overflows float64 at the entry {worst[np.argmax(np.abs(worst))]:.6g}"
            )
        return values

    @staticmethod
    def feature_dim(d: int) -> int:
        """The number D of features of a head of dimension d."""
        return d


def _elu_plus_one(x: np.ndarray) -> np.ndarray:
    return np.where(x > 0, x + 1.0, np.exp(np.minimum(x, 0.0)))


def _softplus(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0.0) + np.log1p(np.exp(-np.abs(x)))


FEATURE_MAPS: dict[str, FeatureMap] = {
    "elu_plus_one": FeatureMap(_elu_plus_one, nonnegative=True, strictly_positive=True),
    "exp": FeatureMap(np.exp, nonnegative=True, strictly_positive=True),
    "relu": FeatureMap(lambda x: np.maximum(x, 0.0), nonnegative=True, strictly_positive=False),
    "softplus": FeatureMap(_softplus, nonnegative=True, strictly_positive=True),
    "squared_relu": FeatureMap(
        lambda x: np.maximum(x, 0.0) ** 2, nonnegative=True, strictly_positive=False
    ),
    "identity": FeatureMap(lambda x: x, nonnegative=False, strictly_positive=False),
}
"""elu_plus_one: Katharopoulos et al. 2020. squared_relu: So et al. 2021 (Primer). The others are
the textbook functions."""
