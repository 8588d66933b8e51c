"""Run one method of the benchmark on one matrix, in this fresh process, and print what it took.

What is timed begins with the factors and ends with the singular values: a method that needs the
matrix forms it within that time, one that needs products gets those of the structured operator.
Imports and reading the factors come before. Memory is the largest resident set of this process.

A computation over its time is ended by SIGALRM, which compiled code cannot put off: the process
dies, even if the one that started it is gone.
"""

import argparse
import importlib
import json
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass

import no_garbage_collection  # noqa: F401

import numpy as np

from causalrank.extremes import extremes
from causalrank.semiseparable import CHUNK, semiseparable
from resident_memory import resident_mb
from whole_files import load_arrays

Result = dict[str, float]
Solver = Callable[[np.ndarray, np.ndarray], Result]
LARGEST_ONLY = "sigma_min: only asked for the largest"
SMALLEST_ONLY = "sigma_max: only asked for the smallest"


@dataclass(frozen=True)
class Method:
    """`prepare(*arguments)` imports what is needed and returns what is timed.

    `matrices` is how many N x N arrays of doubles it holds at once, `lacks` what it leaves out,
    `threads` how many it gets, if not all.
    """

    prepare: Callable[..., Solver]
    arguments: tuple = ()
    matrices: int = 0
    lacks: str = ""
    threads: int | None = None


def log10(sigma: float) -> float:
    with np.errstate(divide="ignore"):
        return float(np.log10(sigma))


def matrix(F: np.ndarray, G: np.ndarray) -> np.ndarray:
    return np.tril(F @ G.T)


def engine(chunk: int, seed: int) -> Solver:
    importlib.import_module("scipy.linalg")  # which the engine imports when it needs it

    def solve(F: np.ndarray, G: np.ndarray) -> Result:
        start = np.random.default_rng(seed).standard_normal(len(F))
        ends = extremes(semiseparable(F, G, chunk=chunk), start)
        return {
            "log10_sigma_max": ends.log10_sigma_max,
            "log10_sigma_min": ends.log10_sigma_min,
            "stable_rank": ends.stable_rank,
            "residual_max": ends.residual_max,
            "residual_min": ends.residual_min,
        }

    return solve


def lapack(values: Callable[[np.ndarray], np.ndarray]) -> Solver:
    """From all singular values of the matrix, in falling order."""

    def solve(F: np.ndarray, G: np.ndarray) -> Result:
        sigma = values(matrix(F, G))
        return {
            "log10_sigma_max": log10(sigma[0]),
            "log10_sigma_min": log10(sigma[-1]),
            "stable_rank": float(np.sum((sigma / sigma[0]) ** 2)),
        }

    return solve


def numpy_svd() -> Solver:
    return lapack(lambda A: np.linalg.svd(A, compute_uv=False))


def scipy_svdvals() -> Solver:
    from scipy.linalg import svdvals

    return lapack(svdvals)


def svds(module: str, operator: bool, which: str) -> Solver:
    """One end of the spectrum by `svds` of scipy or of PRIMME, with their own defaults.

    PRIMME is imported by name: it is no part of the environment, but is measured where it is found.
    """
    from scipy.sparse.linalg import LinearOperator

    values = importlib.import_module(module).svds
    name = "log10_sigma_max" if which == "LM" else "log10_sigma_min"

    def products(F: np.ndarray, G: np.ndarray) -> LinearOperator:
        A = semiseparable(F, G)
        return LinearOperator(
            (A.N, A.N),
            matvec=lambda x: A.product(np.ravel(x)).over_power(0),
            rmatvec=lambda y: A.transposed_product(np.ravel(y)).over_power(0),
            dtype=float,
        )

    def solve(F: np.ndarray, G: np.ndarray) -> Result:
        A = products(F, G) if operator else matrix(F, G)
        start = np.random.default_rng(0).standard_normal(len(F))
        options = {"v0": start} if module.startswith("scipy") else {}
        sigma = values(A, k=1, which=which, return_singular_vectors=False, **options)
        return {name: log10(sigma[0])}

    return solve


def randomized_svd() -> Solver:
    from sklearn.utils.extmath import randomized_svd

    def solve(F: np.ndarray, G: np.ndarray) -> Result:
        _, sigma, _ = randomized_svd(matrix(F, G), n_components=1, random_state=0)
        return {"log10_sigma_max": log10(sigma[0])}

    return solve


SCIPY = "scipy.sparse.linalg"
METHODS = {
    "engine": Method(engine, (CHUNK, 0)),
    "engine_one_thread": Method(engine, (CHUNK, 0), threads=1),
    "numpy_svd": Method(numpy_svd, matrices=2),
    "scipy_svdvals": Method(scipy_svdvals, matrices=2),
    "randomized_svd": Method(randomized_svd, matrices=2, lacks=LARGEST_ONLY),
    "svds_matrix_LM": Method(svds, (SCIPY, False, "LM"), 2, LARGEST_ONLY),
    "svds_matrix_SM": Method(svds, (SCIPY, False, "SM"), 2, SMALLEST_ONLY),
    "svds_operator_LM": Method(svds, (SCIPY, True, "LM"), 0, LARGEST_ONLY),
    "svds_operator_SM": Method(svds, (SCIPY, True, "SM"), 0, SMALLEST_ONLY),
    "primme_matrix_LM": Method(svds, ("primme", False, "LM"), 2, LARGEST_ONLY),
    "primme_matrix_SM": Method(svds, ("primme", False, "SM"), 2, SMALLEST_ONLY),
    "primme_operator_LM": Method(svds, ("primme", True, "LM"), 0, LARGEST_ONLY),
    "primme_operator_SM": Method(svds, ("primme", True, "SM"), 0, SMALLEST_ONLY),
}
REFERENCE = Method(engine, (41, 1))
"""The engine again, with other chunks and another start vector."""


def run(method: Method, path: str, seconds: float) -> dict[str, float | str]:
    """What the method found, its seconds and its memory; or only why it found nothing."""
    try:
        solve = method.prepare(*method.arguments)
    except ImportError as error:
        return {"cannot": f"not installed: {error.name}"}
    arrays = load_arrays(path)
    F, G = arrays["F"], arrays["G"]
    before = resident_mb()
    signal.setitimer(signal.ITIMER_REAL, seconds)
    start = time.perf_counter()
    try:
        found = solve(F, G)
    except Exception as error:  # whatever a library raises is its answer
        first_line = (str(error).splitlines() or [""])[0]
        return {"cannot": f"{type(error).__name__}: {first_line}"}
    finally:
        took = time.perf_counter() - start
        signal.setitimer(signal.ITIMER_REAL, 0)
    return found | {"seconds": took, "mb_before": before, "mb_peak": resident_mb()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--method", required=True, choices=[*METHODS, "reference"])
    parser.add_argument("--matrix", required=True, help="an .npz of benchmark_matrix.py")
    parser.add_argument("--seconds", type=float, default=300.0, help="what it may take")
    args = parser.parse_args()
    method = REFERENCE if args.method == "reference" else METHODS[args.method]
    print(json.dumps(run(method, args.matrix, args.seconds)))


if __name__ == "__main__":
    main()
