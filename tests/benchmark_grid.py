"""What a grid of many small cells costs beside their mathematics.

    python tests/benchmark_grid.py trivial 10000
    python tests/benchmark_grid.py small 1000

print seconds, CPU seconds (user and system, with all children) and the largest process's memory,
and decide nothing. Each takes half an hour or more.

`trivial` is of cells with next to no mathematics, N = 4 to 13 of one member: every step of them;
gathering three tables; the rest of the whole study; dry runs of it with nothing to do; and one N
more. `small` is of a study that somebody might want, N = 64 to 144 of five members, every target.

What is mathematics, and what a step does of a cell, mathematics_clock.py says and measures within
the steps. Snakemake, interpreters and their imports, and receipts are what all processes took, less
the second. What no clock sees counts as not being mathematics, so its share is a lower bound.
"""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

from conftest import ROOT, Repository

ROUNDS = 3
RESULTS = "results/grid"
LAST_STEPS = ("measure_rank", "measure_baselines", "check_bound")
MEASURING = """
import resource, subprocess, sys, time
start = time.perf_counter()
code = subprocess.run(sys.argv[1:]).returncode
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print("MEASURED", time.perf_counter() - start, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)
sys.exit(code)
"""


def trivial(cells: int, longest: int = 13) -> dict:
    """Ten N a d: two maps with d = 1 to 10, so that growth has little to do, and softmax."""
    lengths, dimensions = [*range(4, longest + 1)], range(1, max(2, cells // 10 - 19))
    linear = {"d": [*range(1, 11)], "feature_map": ["elu_plus_one", "relu"]}
    softmax = {"d": [*dimensions], "feature_map": "softmax"}
    return {
        "results": RESULTS,
        "sources": {"drawn": {"kind": "gaussian", "members": 1}},
        "cells": [{"source": "drawn", "N": lengths, **block} for block in (linear, softmax)],
        "limits": {"horizon_N": 1, "bound_N": 1},
        "evaluation": {"d_model": 8, "N": 8, "heads": [1, 2], "score_scales": [0, 1], "seeds": 2},
    }


def small(cells: int) -> dict:
    """21 N and three maps a d, up to 64, all else as it is by default."""
    dimensions = [*range(4, 65, 4)][: -(-cells // 63)]
    maps = ["elu_plus_one", "exp", "softmax"]
    block = {"source": "drawn", "N": [*range(64, 145, 4)], "d": dimensions, "feature_map": maps}
    return {
        "results": RESULTS,
        "sources": {"drawn": {"kind": "gaussian", "members": 5}},
        "cells": [block],
    }


class Grid:
    """A repository in which the library tells how long it was at work."""

    def __init__(self, folder: Path):
        self.repository = Repository(folder / "repository")
        self.clock = folder / "clock"
        scripts = self.repository.folder / "scripts"
        shutil.copy(ROOT / "tests" / "mathematics_clock.py", scripts)
        with (scripts / "causalrank" / "__init__.py").open("a", encoding="utf-8") as file:
            file.write("\nimport mathematics_clock\n")

    def measured(self, study: dict, *arguments: str) -> tuple[float, float, float]:
        """Seconds, CPU seconds and the largest process's MB of a Snakemake run."""
        path = self.repository.write("grid.yaml", yaml.safe_dump(study))
        options = ("--cores", "2", "--quiet", "rules", "--configfile", path)
        command = [sys.executable, "-c", MEASURING, *self.repository.command(*options, *arguments)]
        self.clock.write_text("")
        run = subprocess.run(
            command,
            cwd=self.repository.folder,
            env=os.environ | {"CLOCK": str(self.clock)},
            capture_output=True,
            text=True,
        )
        if run.returncode:
            mathematics, work = self.clocked()
            print(f"failed, after {mathematics:.1f} s of mathematics and {work:.1f} s of cells")
            raise SystemExit(run.stdout[-3000:] + run.stderr[-3000:])
        line = next(x for x in run.stdout.splitlines() if x.startswith("MEASURED"))
        return tuple(map(float, line.split()[1:]))

    def clocked(self) -> tuple[float, float]:
        """CPU seconds of mathematics, and of what steps did of cells, in the last run."""
        rows = [map(float, line.split()) for line in self.clock.read_text().splitlines()]
        return tuple(map(sum, zip(*rows, strict=True))) if rows else (0.0, 0.0)


def report(name: str, *runs: tuple[float, float, float]) -> None:
    wall, cpu, memory = map(statistics.median, zip(*runs, strict=True))
    print(f"{name:44}{wall:9.1f} s{cpu:9.1f} CPU-s{memory:8.0f} MB", flush=True)


def measure_trivial(grid: Grid, cells: int) -> None:
    study = trivial(cells)
    first = grid.measured(study, "--until", *LAST_STEPS)
    report("all steps of the cells", first)
    mathematics, work = (seconds / cells * 1e3 for seconds in grid.clocked())
    whole = first[1] / cells * 1e3
    print(
        f"of a cell {whole:.1f} ms of CPU: {whole - work:.1f} ms Snakemake, start-up and receipts,"
        f" {work - mathematics:.1f} ms reading and writing, {mathematics:.1f} ms mathematics",
        flush=True,
    )
    for name in ("rank", "numerical_rank", "spectrum"):
        table = f"{RESULTS}/tables/{name}.csv"
        report(f"gathering {name}.csv", grid.measured(study, "--", table))
    report("the rest of the study", grid.measured(study))
    report("dry run, nothing to do", *(grid.measured(study, "-n") for _ in range(ROUNDS)))
    report("one N more", grid.measured(trivial(cells, 14), "--until", *LAST_STEPS))


def measure_small(grid: Grid, cells: int) -> None:
    run = grid.measured(small(cells))
    report("the whole study", run)
    mathematics, _ = grid.clocked()
    print(f"{mathematics / run[1]:.1%} of CPU time is mathematics: {mathematics:.1f} s", flush=True)


def main() -> None:
    kind, cells = sys.argv[1], int(sys.argv[2])
    with tempfile.TemporaryDirectory() as folder:
        grid = Grid(Path(folder))
        {"trivial": measure_trivial, "small": measure_small}[kind](grid, cells)


if __name__ == "__main__":
    main()
