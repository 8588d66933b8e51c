"""Measure time, memory and error of the structured engine and of what else could be called.

Every run is a process of its own (benchmark_run.py). Within a repeat the methods take turns, so
that whatever else the machine does falls on all of them. A run that took SHORT seconds or more is
not repeated; a method that ran out of time is not run on larger matrices.

Factors are never read here: a process inherits the largest resident set of the one that starts it.
"""

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
from pathlib import Path

import numpy as np

from benchmark_run import METHODS, Method
from whole_files import intact, write_csv

SHORT = 20.0
RUN = Path(__file__).with_name("benchmark_run.py")
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
WHOLE_SPECTRUM = ("numpy_svd", "scipy_svdvals")
RESOLVED = 1e-3
"""The largest N eps kappa at which LAPACK's sigma_min is a reference."""
SIGMA = ("sigma_max", "sigma_min")
FOUND = ("log10_sigma_max", "log10_sigma_min", "log10_condition", "stable_rank")
ERRORS = ("error_sigma_max", "error_sigma_min", "error_log10_condition")
HEADER = (
    *("N", "d", "method", "threads", "repeats", "seconds", "seconds_min", "seconds_max", "speedup"),
    *("mb_before", "mb_peak", *FOUND, *ERRORS),
    *("reference_sigma_max", "reference_sigma_min", "reference_uncertainty", "cannot"),
)

Row = dict[str, float | str]


def run(name: str, path: Path, threads: int, seconds: float) -> Row:
    """One run, as benchmark_run.py reports it, or why there is nothing to report."""
    command = [sys.executable, str(RUN), "--method", name, "--matrix", str(path)]
    command += ["--seconds", str(seconds)]
    environ = os.environ | dict.fromkeys(THREAD_VARIABLES, str(threads))
    done = subprocess.run(command, env=environ, capture_output=True, text=True)
    if done.returncode == -signal.SIGALRM:
        return {"cannot": f"over {seconds:g} s", "ran_out": True}
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        return {"cannot": f"ended with status {done.returncode}: {last}"}
    return json.loads(done.stdout.splitlines()[-1])


def beyond_memory(method: Method, N: int, d: int, memory_mb: int) -> str:
    """Why the method's matrices, factors and vectors do not fit, or nothing."""
    needed_mb = 8 * N * (method.matrices * N + 2 * d + 64) / 1e6
    have_mb = memory_mb * 2**20 / 1e6
    if needed_mb <= have_mb:
        return ""
    return f"needs {needed_mb / 1e3:.3g} GB, and there are {have_mb / 1e3:.3g} GB"


def summary(runs: list[Row]) -> Row:
    """One row of several runs: what the first found, its memory, and the spread of times."""
    times = [run["seconds"] for run in runs if "seconds" in run]
    if not times:
        return runs[0]
    spread = {"seconds": statistics.median(times), "repeats": len(times)}
    return runs[0] | spread | {"seconds_min": min(times), "seconds_max": max(times)}


def measure(
    path: Path, N: int, d: int, ran_out: dict[str, str], options: argparse.Namespace
) -> dict[str, Row]:
    """The rows of one matrix, by method, without what compares them."""
    threads = {name: method.threads or options.threads for name, method in METHODS.items()}
    runs: dict[str, list[Row]] = {}
    for turn in range(options.repeats):
        for name, method in METHODS.items():
            if turn == 0:
                reason = ran_out.get(name) or beyond_memory(method, N, d, options.memory_mb)
                runs[name] = [{"cannot": reason}] if reason else []
            elif runs[name][0].get("seconds", SHORT) >= SHORT:
                continue
            if turn or not runs[name]:
                runs[name].append(run(name, path, threads[name], options.seconds))
                print(f"N = {N}, turn {turn + 1}, {name}: {runs[name][-1]}", file=sys.stderr)
    for name, (first, *_) in runs.items():
        if first.get("ran_out"):
            ran_out[name] = f"{first['cannot']} at N = {N}"
    rows = {name: summary(done) for name, done in runs.items()}
    for name, row in rows.items():
        row |= {"N": N, "d": d, "method": name, "threads": threads[name]}
        row.setdefault("cannot", METHODS[name].lacks)
        if "log10_sigma_max" in row and "log10_sigma_min" in row:
            row["log10_condition"] = row["log10_sigma_max"] - row["log10_sigma_min"]
    return rows


def references(bounds: np.ndarray, rows: dict[str, Row], again: Row) -> tuple[Row, Row]:
    """What to compare with: log10 of both ends, and the columns that say whence they are.

    The enclosure, where there is one; else LAPACK, for sigma_max always and for sigma_min where
    N eps kappa is small; else the engine `again`.
    """
    if np.isfinite(bounds).all():
        values = dict(zip(SIGMA, np.log10(bounds).mean(axis=1), strict=True))
        widths = (bounds[:, 1] - bounds[:, 0]) / bounds[:, 0]
        sources = dict.fromkeys((f"reference_{end}" for end in SIGMA), "enclosure")
        return values, sources | {"reference_uncertainty": widths[1]}
    lapack = next((name for name in WHOLE_SPECTRUM if "seconds" in rows[name]), None)
    dense = rows[lapack] if lapack else {}
    uncertainty = np.inf
    if lapack:
        uncertainty = dense["N"] * np.finfo(float).eps * 10 ** dense["log10_condition"]
    seen = {"sigma_max": lapack is not None, "sigma_min": uncertainty < RESOLVED}
    values, sources = {}, {}
    for end in SIGMA:
        chosen = dense if seen[end] else again
        if f"log10_{end}" in chosen:
            values[end] = chosen[f"log10_{end}"]
            sources[f"reference_{end}"] = lapack if seen[end] else "engine_again"
    sources["reference_uncertainty"] = (
        uncertainty if seen["sigma_min"] else again.get("residual_min", "")
    )
    return values, sources


def compare(rows: dict[str, Row], values: Row, sources: Row) -> None:
    """Add errors and speedups; a reference has no error of its own."""
    times = [rows[name]["seconds"] for name in WHOLE_SPECTRUM if "seconds" in rows[name]]
    for name, row in rows.items():
        row |= sources
        own = {end for end in SIGMA if sources.get(f"reference_{end}") == name}
        for end in values.keys() - own:
            if f"log10_{end}" in row:
                with np.errstate(over="ignore"):
                    ratio = np.float64(10.0) ** (row[f"log10_{end}"] - values[end])
                row[f"error_{end}"] = abs(ratio - 1)
        if "log10_condition" in row and len(values) == 2 and "sigma_min" not in own:
            condition = values["sigma_max"] - values["sigma_min"]
            row["error_log10_condition"] = abs(row["log10_condition"] / condition - 1)
        if times and "log10_condition" in row:
            row["speedup"] = min(times) / row["seconds"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--matrices", nargs="+", required=True, help="files of benchmark_matrix.py")
    parser.add_argument("--seconds", type=float, default=300.0, help="what a run may take")
    parser.add_argument("--repeats", type=int, default=3, help="of short runs")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="of BLAS")
    parser.add_argument("--memory-mb", type=int, required=True, help="memory that a run may take")
    parser.add_argument("--output", required=True, help="the table, a CSV")
    options = parser.parse_args()
    ran_out: dict[str, str] = {}
    table: list[Row] = []
    for path in map(Path, options.matrices):
        with np.load(intact(path)) as archive:
            (N, d), bounds = archive["shape"].tolist(), archive["bounds"]
        rows = measure(path, N, d, ran_out, options)
        again: Row = {}
        if np.isnan(bounds).any():
            again = run("reference", path, options.threads, options.seconds)
        compare(rows, *references(bounds, rows, again))
        table += rows.values()
    write_csv(options.output, HEADER, ([row.get(name) for name in HEADER] for row in table))


if __name__ == "__main__":
    main()
