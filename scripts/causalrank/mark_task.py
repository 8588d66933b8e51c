"""Two tasks on one kind of sequence: which of two tokens carries a mark, and whether one does.

Token j of a draw is p_j + noise, plus the mark u if it carries it. The reader sees the layer's
output at the last token, and reads it linearly. *location* needs the contrast between tokens 0 and
1, since with either label the mean of the tokens is the same; *presence* does not.

With uniform attention the output is the mean of the values. Location is then invisible, whatever
the attention's rank, and presence is read with accuracy Phi(|u| / (2 sigma sqrt(N))) if W_v is
invertible: the Bayes rate of two normal distributions |u| / N apart, of deviation sigma / sqrt(N).
"""

from dataclasses import dataclass

import numpy as np

from .attention_layer import Projections, concatenated

KINDS = ("location", "presence")
NOISE = 0.25
"""Standard deviation of the noise, beside positions and marks of standard normal entries."""


@dataclass(frozen=True)
class Task:
    """Positions p, shape (N, d_model), and a mark u, shape (d_model,)."""

    positions: np.ndarray
    mark: np.ndarray


def drawn_task(N: int, d_model: int, generator: np.random.Generator) -> Task:
    entries = generator.standard_normal((N + 1, d_model))
    return Task(entries[:-1], entries[-1])


def draws(
    task: Task, kind: str, count: int, generator: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Sequences, shape (count, N, d_model), and their labels, +1 or -1, shape (count,).

    Labels alternate, so each has half of the draws. *location*: token 0 (+1) or 1 (-1) is marked.
    *presence*: token 0 or 1 in turn is marked (+1), or none (-1).
    """
    labels = np.where(np.arange(count) % 2 == 0, 1.0, -1.0)
    X = task.positions + NOISE * generator.standard_normal((count, *task.positions.shape))
    if kind == "location":
        token, marked = np.where(labels > 0, 0, 1), np.arange(count)
    else:
        marked = np.flatnonzero(labels > 0)
        token = np.arange(len(marked)) % 2
    X[marked, token] += task.mark
    return X, labels


def last_outputs(X: np.ndarray, W: Projections, scale: float) -> np.ndarray:
    """The concatenated output at the last token, shape (count, d_model), of X (count, N, d_model).

    The causal mask hides nothing from the last token: it is the same with it and without.
    """
    q = scale * (X[:, -1] @ W.query)  # (H, count, w)
    reach = (q @ W.key.mT / np.sqrt(W.key.shape[2])).transpose(1, 0, 2)
    S = reach @ X.mT  # (count, H, N)
    A = np.exp(S - S.max(axis=2, keepdims=True))
    A /= A.sum(axis=2, keepdims=True)
    seen = (A @ X).transpose(1, 0, 2)
    return concatenated(seen @ W.value)


def readout_accuracy(
    features: np.ndarray, labels: np.ndarray, new_features: np.ndarray, new_labels: np.ndarray
) -> float:
    """The share of new labels that a linear readout gets right, fitted by least squares.

    Features have shape (count, d_model). The fit, with an intercept, is to the labels +1 and -1:
    for two classes of equal size its direction is Fisher's discriminant.
    """

    def affine(Y: np.ndarray) -> np.ndarray:
        return np.column_stack([Y, np.ones(len(Y))])

    weights = np.linalg.lstsq(affine(features), labels, rcond=None)[0]
    return float(np.mean(np.sign(affine(new_features) @ weights) == new_labels))
