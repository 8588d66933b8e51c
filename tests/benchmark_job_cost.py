"""What a job costs beyond its mathematics: each step on a cell too small to take time.

Measured in turns: the bare interpreter, by a shell as Snakemake does; the same after activating
each environment that a run has deployed here; the interpreter with numpy; and every step.
Run as `make benchmark`; it prints a table and decides nothing.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ROUNDS = 5
CLAIM = """
- {id: c, origin: o, statement: s, expected: 1, tolerance: 0, table: two_token, select: {},
   column: a, statistic: mean, relation: one_more_member}
"""
CELL = "--source g --N 8 --d 2"
ACTIVATE = ROOT / "envs" / "frontend" / "bin" / "activate"
ENVIRONMENTS = {
    f"activated {folder.name[:6]}": f"source {ACTIVATE} {folder}; python -c pass"
    for folder in sorted((ROOT / ".snakemake" / "conda").glob("*_"))
}
STEPS = {
    "bare interpreter": f"{sys.executable} -c pass",
    **ENVIRONMENTS,
    "numpy alone": "-c import+numpy",
    "draw_ensemble": f"{CELL} --members 1 --scale 1 --output source.npz",
    "build_cell": f"{CELL} --feature-map exp --input source.npz --output factors.npz",
    "compute_singular_values": "--max-N 8 --max-N-rounded 8 --rounded-members 1"
    " --input factors.npz --output s.npz",
    "compute_extremes": "--max-N-dense 8 --max-N-sums 8 --input factors.npz --output e.npz",
    "measure_rank": "--max-N-dense 8 --input factors.npz --singular-values s.npz --output rank.csv"
    " --block-rank block_rank.csv",
    "measure_spectrum": "--input factors.npz --singular-values s.npz --extremes e.npz"
    " --spectrum spectrum.csv --numerical-rank numerical_rank.csv --decay decay.csv"
    " --density density.csv --methods methods.csv",
    "measure_baselines": "--max-N-dense 8 --max-N-sums 8 --input factors.npz"
    " --spectrum spectrum.csv --output baselines.csv",
    "check_bound": "--max-N 8 --members 1 --noise 0.1 --truncation 1 --input factors.npz"
    " --output bound.csv",
    "two_token": "--output two_token.csv",
    "plot_two_token, without drawing": "-c import+plot_two_token",
    "judge_claims": "--claims claims.yaml --tables two_token.csv --output l.csv --markdown l.md",
    "all_ones": "--output all_ones.csv",
    "list_left_cells": "--output left.csv",
}


def seconds(name: str, folder: Path) -> float:
    script = [] if STEPS[name].startswith("-c") else [str(ROOT / "scripts" / f"{name}.py")]
    arguments = [word.replace("+", " ") for word in STEPS[name].split()]
    by_shell = name == "bare interpreter" or name in ENVIRONMENTS
    start = time.perf_counter()
    subprocess.run(
        ["bash", "-c", STEPS[name]] if by_shell else [sys.executable, *script, *arguments],
        cwd=folder,
        check=True,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(ROOT / "scripts")},
    )
    return time.perf_counter() - start


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "claims.yaml").write_text(CLAIM, encoding="utf-8")
        rounds = [{name: seconds(name, Path(folder)) for name in STEPS} for _ in range(ROUNDS)]
    bare = statistics.median(turn["bare interpreter"] for turn in rounds)
    print(f"{'step':34}{'median':>9}{'smallest':>10}{'of bare':>9}")
    for name in STEPS:
        times = [turn[name] for turn in rounds]
        median = statistics.median(times)
        print(f"{name:34}{median:8.2f}s{min(times):9.2f}s{median / bare:8.1f}x")


if __name__ == "__main__":
    main()
