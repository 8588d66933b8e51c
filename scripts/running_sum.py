"""Compare causal linear attention with its running-sum form and with the bidirectional output.

The published worked example: numpy's legacy generator with seed 42; Q, K, V drawn in that order,
n = 32, d = 16, cast to float32, Q and K times 0.5; elu + 1; 1e-6 added to the denominators.
"""

import argparse
from collections.abc import Iterator

import numpy as np

from causalrank.feature_maps import FEATURE_MAPS
from causalrank.mixing import factored, running_sum
from whole_files import write_csv

N, D, EPSILON = 32, 16, 1e-6
HEADER = ("position", "causal_to_bidirectional", "running_sum_to_masked", "rounding_bound")


def output(F: np.ndarray, G: np.ndarray, v: np.ndarray, mask: str) -> np.ndarray:
    A = factored(F, G, mask, "none")
    return A @ v / (A.sum(axis=1, keepdims=True) + np.asarray(EPSILON, A.dtype))


def rows() -> Iterator[tuple]:
    """Mean absolute difference of causal and bidirectional rows, and largest of both forms.

    Both forms sum at most N D nonnegative products times a value, so in float32 they differ by
    at most 2 gamma_{N + D + 2} max |v| each (Higham 2002, lemma 3.1).
    """
    legacy = np.random.RandomState(42)
    q, k, v = (legacy.randn(N, D).astype(np.float32) for _ in range(3))
    phi = FEATURE_MAPS["elu_plus_one"]
    F, G = phi(q * np.float32(0.5)), phi(k * np.float32(0.5))
    causal, both = output(F, G, v, "causal"), output(F, G, v, "bidirectional")
    recurrent = running_sum(F, G, v, EPSILON)
    u = np.finfo(np.float32).eps / 2
    bound = 4 * (N + D + 2) * u * float(np.abs(v).max())
    for i in range(N):
        far = float(np.abs(causal[i] - both[i]).mean(dtype=float))
        near = float(np.abs(causal[i] - recurrent[i]).max())
        yield i + 1, far, near, bound


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", required=True, help="the table, a CSV")
    write_csv(parser.parse_args().output, HEADER, rows())


if __name__ == "__main__":
    main()
