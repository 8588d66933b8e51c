"""What a grid of many small cells costs beside their mathematics.

Of a grid of so many trivial cells: every step, gathering, a dry run with nothing to do, and one d
more. `python tests/benchmark_grid.py 10000` takes some minutes; it prints seconds, CPU seconds
(user and system, with children) and the largest process's memory, and decides nothing.
"""

import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

from conftest import Repository

ROUNDS = 3
RESULTS = "results/grid"
MEASURING = """
import resource, subprocess, sys, time
start = time.perf_counter()
code = subprocess.run(sys.argv[1:]).returncode
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print("MEASURED", time.perf_counter() - start, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)
sys.exit(code)
"""


def study(cells: int) -> dict:
    """Trivial cells: N = 4 to 13, two maps, and as many d as it takes; no growth beyond a token."""
    return {
        "results": RESULTS,
        "sources": {"drawn": {"kind": "gaussian", "members": 1}},
        "cells": [
            {
                "source": "drawn",
                "N": list(range(4, 14)),
                "d": list(range(1, cells // 20 + 1)),
                "feature_map": ["elu_plus_one", "relu"],
            }
        ],
        "limits": {"horizon_N": 1, "bound_N": 1},
    }


def measured(repository: Repository, *arguments: str) -> tuple[float, float, float]:
    """Seconds, CPU seconds and the largest process's MB of a Snakemake run."""
    command = [sys.executable, "-c", MEASURING, *repository.command(*arguments)]
    run = subprocess.run(command, cwd=repository.folder, capture_output=True, text=True)
    if run.returncode:
        raise SystemExit(run.stdout[-3000:] + run.stderr[-3000:])
    line = next(x for x in run.stdout.splitlines() if x.startswith("MEASURED"))
    return tuple(map(float, line.split()[1:]))


def report(name: str, runs: list[tuple[float, float, float]]) -> None:
    wall, cpu, memory = map(statistics.median, zip(*runs, strict=True))
    print(f"{name:44}{wall:9.1f} s{cpu:9.1f} CPU-s{memory:8.0f} MB", flush=True)


def main() -> None:
    cells = int(sys.argv[1])
    steps = [*("build_cell", "compute_singular_values", "compute_extremes", "measure_rank")]
    steps += ["measure_spectrum", "measure_baselines", "check_bound"]
    tables = [f"{RESULTS}/tables/{name}.csv" for name in ("rank", "numerical_rank", "spectrum")]
    with tempfile.TemporaryDirectory() as folder:
        repository = Repository(Path(folder) / "repository")
        path = repository.write("grid.yaml", yaml.safe_dump(study(cells)))
        options = ("--cores", "2", "--quiet", "all", "--configfile", path)
        report("first run, all steps", [measured(repository, *options, "--until", *steps)])
        for table in tables:
            report(f"gathering {Path(table).name}", [measured(repository, *options, "--", table)])
        dry = ("-n", "--quiet", "all", "--configfile", path)
        runs = [measured(repository, *dry, "--until", "gather_table") for _ in range(ROUNDS)]
        report("dry run", runs)
        repository.write("grid.yaml", yaml.safe_dump(study(cells + 20)))
        report("one d more", [measured(repository, *options, "--until", *steps)])


if __name__ == "__main__":
    main()
