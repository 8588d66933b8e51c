"""Forward pass of a BERT encoder in double precision, kept for its queries, keys and values.

With X_0 = LN(word + position + token type 0), layer l computes (Devlin et al. 2019, after
Vaswani et al. 2017: layer normalisation follows each residual sum)

    q, k, v = X W^T + b, split by columns into heads
    Y = LN(X + concat_h softmax(q_h k_h^T / sqrt(d)) v_h W_o^T + b_o)
    X = LN(Y + gelu(Y W_1^T + b_1) W_2^T + b_2)

Weights carry the names that Hugging Face's `BertModel` gives them, any float type.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from scipy.special import erf

Weights = Mapping[str, np.ndarray]


class Encoding(NamedTuple):
    """What the heads of every layer see, and what the encoder returns. All float64."""

    q: np.ndarray  # (layers, heads, N, head_dim), with bias, before the 1/sqrt(head_dim)
    k: np.ndarray  # (layers, heads, N, head_dim)
    v: np.ndarray  # (layers, heads, N, head_dim)
    last_hidden_state: np.ndarray  # (N, hidden)


def layer_count(weights: Weights) -> int:
    """One more than the largest layer number among the names; ValueError if there is none."""
    numbers = [re.match(r"encoder\.layer\.(\d+)\.", name) for name in weights]
    if not any(numbers):
        raise ValueError("no weight's name begins with 'encoder.layer.' and a number")
    return max(int(number[1]) for number in numbers if number) + 1


def layer_norm(x: np.ndarray, scale: np.ndarray, shift: np.ndarray, eps: float) -> np.ndarray:
    """Each row of x (N, hidden) minus its mean, over sqrt(variance + eps), scaled and shifted."""
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = np.mean(centred**2, axis=-1, keepdims=True)
    return centred / np.sqrt(variance + eps) * scale + shift


def gelu(x: np.ndarray) -> np.ndarray:
    """x times the standard normal distribution function at x: the erf form, not the tanh one."""
    return 0.5 * x * (1 + erf(x / np.sqrt(2)))


def attention_weights(q: np.ndarray, k: np.ndarray) -> np.ndarray:
    """Row softmax of q k^T / sqrt(d) for q, k (..., N, d): (..., N, N), rows sum to one."""
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def encode(weights: Weights, input_ids: np.ndarray, heads: int, layer_norm_eps: float) -> Encoding:
    """Run the encoder on one sequence of token numbers (N,), special tokens included.

    Raises ValueError for a missing weight, a token number outside the vocabulary, more tokens
    than positions, and a hidden size that `heads` does not divide.
    """

    def weight(name: str) -> np.ndarray:
        if name not in weights:
            raise ValueError(f"missing weight {name!r}")
        return np.asarray(weights[name])

    def dense(x: np.ndarray, name: str) -> np.ndarray:
        matrix = weight(f"{name}.weight").astype(np.float64)
        return x @ matrix.T + weight(f"{name}.bias")

    def norm(x: np.ndarray, name: str) -> np.ndarray:
        scale, shift = weight(f"{name}.weight"), weight(f"{name}.bias")
        return layer_norm(x, scale, shift, layer_norm_eps)

    ids = np.asarray(input_ids)
    words = weight("embeddings.word_embeddings.weight")
    positions = weight("embeddings.position_embeddings.weight")
    token_types = weight("embeddings.token_type_embeddings.weight")
    count, hidden = ids.size, words.shape[1]
    if ids.ndim != 1 or count == 0:
        raise ValueError(f"input_ids has shape {ids.shape}; it must be (N,) with N >= 1")
    outside = ids[(ids < 0) | (ids >= len(words))]
    if outside.size:
        raise ValueError(f"token {outside[0]} is outside the vocabulary of {len(words)}")
    if count > len(positions):
        raise ValueError(f"{count} tokens, but the encoder has {len(positions)} positions")
    if hidden % heads:
        raise ValueError(f"hidden size {hidden} is not a multiple of {heads} heads")

    layers = layer_count(weights)
    q, k, v = np.empty((3, layers, heads, count, hidden // heads))
    x = words[ids].astype(np.float64) + positions[:count] + token_types[0]
    x = norm(x, "embeddings.LayerNorm")
    for layer in range(layers):
        block = f"encoder.layer.{layer}"
        for part, name in ((q, "query"), (k, "key"), (v, "value")):
            columns = dense(x, f"{block}.attention.self.{name}")
            part[layer] = columns.reshape(count, heads, -1).swapaxes(0, 1)
        mixed = attention_weights(q[layer], k[layer]) @ v[layer]
        mixed = mixed.swapaxes(0, 1).reshape(count, hidden)
        mixed = dense(mixed, f"{block}.attention.output.dense")
        x = norm(x + mixed, f"{block}.attention.output.LayerNorm")
        inner = gelu(dense(x, f"{block}.intermediate.dense"))
        inner = dense(inner, f"{block}.output.dense")
        x = norm(x + inner, f"{block}.output.LayerNorm")
    return Encoding(q, k, v, x)
