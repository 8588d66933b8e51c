"""Apply one approximation of softmax attention to V, in this fresh process; print what it took.

Timed from q, k, v to the output; the median of RUNS if the first takes less than SHORT seconds.
Memory is the largest resident set of this process.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable

import no_garbage_collection  # noqa: F401

import numpy as np

from causalrank.approximations import APPROXIMATIONS
from causalrank.deployed import DEPLOYED
from causalrank.ensembles import gaussian
from causalrank.head import Head
from resident_memory import resident_mb

RUNS, SHORT, D = 3, 5.0, 64
STRENGTHS = {
    **{"exact": "", "exact_matrix": "", "truncation": 64, "nystrom": 64},
    **{"nystromformer": 64, "linformer": 256},
    **{"projection": 256, "performer": 256, "performer_orthogonal": 256, "taylor": 2},
    **{"window": 128, "top_k": 64, "decay": 0.99, "rounding": "bfloat16", "quantization": 8},
}
MATRIX = "N x N matrix"


def output_of(name: str, head: Head, v: np.ndarray) -> np.ndarray:
    """A_hat V as deployed, or by the matrix where there is no other form. Shape (N, d_v)."""
    generator = np.random.default_rng(0)
    if name in DEPLOYED:
        return DEPLOYED[name].function(head, v, STRENGTHS[name], generator)
    if name == "exact_matrix":
        return head.A @ v
    return APPROXIMATIONS[name].function(head, STRENGTHS[name], generator) @ v


def seconds_of(compute: Callable[[], object]) -> float:
    start = time.perf_counter()
    compute()
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--approximation", required=True, choices=list(STRENGTHS))
    parser.add_argument("--mask", required=True, choices=["bidirectional", "causal"])
    parser.add_argument("--N", type=int, required=True, help="tokens")
    args = parser.parse_args()
    name = args.approximation
    q, k, v = gaussian("benchmark", args.N, D, 0, 1.0)

    def compute() -> np.ndarray:
        rank = STRENGTHS["truncation"] if name == "truncation" else 0
        return output_of(name, Head(q, k, "softmax", args.mask, "row", rank), v)

    before = resident_mb()
    times = [seconds_of(compute)]
    if times[0] < SHORT:
        times += [seconds_of(compute) for _ in range(RUNS - 1)]
    found = {"seconds": statistics.median(times), "mb_before": before, "mb_peak": resident_mb()}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
