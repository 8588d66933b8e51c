"""Tabulate time and memory of approximations as they are deployed, as N grows."""

import argparse
import json
import subprocess
import sys
from itertools import product
from pathlib import Path

import numpy as np

from approximation_cost_run import MATRIX, STRENGTHS, D
from causalrank.approximations import APPROXIMATIONS
from causalrank.deployed import DEPLOYED
from causalrank.head import Head
from causalrank.mixing import MASKS
from whole_files import write_csv

RUN = Path(__file__).with_name("approximation_cost_run.py")
MATRICES = 8
"""N x N arrays of doubles that a method on the matrix holds at once, at most."""
HEADER = (
    *("approximation", "strength", "mask", "N", "d", "form"),
    *("seconds", "mb_before", "mb_peak", "cannot"),
)


def reason(name: str, mask: str, N: int, memory_mb: int) -> str:
    """Why there is nothing to run, or nothing."""
    if name in APPROXIMATIONS:
        head = Head(np.empty((N, 0)), np.empty((N, 0)), "softmax", mask, "row")
        if lacks := APPROXIMATIONS[name].lacks(head, STRENGTHS[name]):
            return lacks
    needed_mb = 8 * MATRICES * N * N / 2**20
    if name not in DEPLOYED and needed_mb > memory_mb:
        return f"needs {needed_mb:.0f} MB, and there are {memory_mb} MB"
    return ""


def run(name: str, mask: str, N: int, seconds: float) -> dict[str, float | str]:
    """One run, as approximation_cost_run.py reports it, or why there is nothing to report."""
    command = [sys.executable, str(RUN), "--approximation", name, "--mask", mask, "--N", str(N)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return {"cannot": f"over {seconds:g} s"}
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        return {"cannot": f"ended with status {done.returncode}: {last}"}
    return json.loads(done.stdout)


def rows(sizes: list[int], seconds: float, memory_mb: int) -> list[tuple]:
    """A row for each approximation, mask and N; one that ran out of time is not run at larger N."""
    table = []
    for name, mask in product(STRENGTHS, MASKS):
        out_of_time = ""
        for N in sizes:
            cannot = out_of_time or reason(name, mask, N, memory_mb)
            found = {"cannot": cannot} if cannot else run(name, mask, N, seconds)
            if found.get("cannot", "").startswith("over"):
                out_of_time = found["cannot"]
            form = DEPLOYED[name].form if name in DEPLOYED else MATRIX
            measured = [found.get(column) for column in HEADER[6:]]
            table.append((name, STRENGTHS[name], mask, N, D, form, *measured))
            print(f"{name}, {mask}, N = {N}: {found}", file=sys.stderr, flush=True)
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", required=True, help="the lengths N")
    parser.add_argument("--seconds", type=float, default=120.0, help="what one process may take")
    parser.add_argument("--memory-mb", type=int, required=True, help="memory that a run may take")
    parser.add_argument("--output", required=True, help="the table, a CSV")
    args = parser.parse_args()
    write_csv(args.output, HEADER, rows(sorted(args.sizes), args.seconds, args.memory_mb))


if __name__ == "__main__":
    main()
