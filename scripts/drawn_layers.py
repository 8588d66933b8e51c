"""The drawn layers of the evaluation, and the keys that their rows carry in every table."""

from dataclasses import dataclass

import numpy as np

from causalrank.attention_layer import Projections, projections
from causalrank.ensembles import seed_of

LAYER_KEYS = ("d_model", "N", "heads", "width", "parameters", "score_scale", "seed")
TOKENS = 0, 1
"""What the contrast tells apart; under the causal mask every later token sees both."""


@dataclass(frozen=True)
class Layer:
    """A layer's place in the tables, its tokens X, (N, d_model), and a direction, (d_model,)."""

    columns: tuple
    scale: float
    X: np.ndarray
    direction: np.ndarray

    @property
    def key(self) -> tuple:
        """What is its own: an identity for seeds."""
        return *self.columns[:-2], repr(self.scale), self.columns[-1]


def draw_layer(
    d_model: int, N: int, heads: int, scale: float, seed: int
) -> tuple[Layer, Projections]:
    """Standard normal tokens and a layer. Parameters, tokens and direction are those of the seed,
    whatever the heads and the scale: the same matrices, cut otherwise."""

    def generator(part: str) -> np.random.Generator:
        return np.random.Generator(np.random.PCG64(seed_of("drawn_layer", part, N, d_model, seed)))

    W = projections(d_model, heads, generator("projections"))
    columns = (d_model, N, heads, d_model // heads, W.parameters, scale, seed)
    X = generator("tokens").standard_normal((N, d_model))
    return Layer(columns, scale, X, generator("direction").standard_normal(d_model)), W
