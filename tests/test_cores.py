"""Jobs never have more threads than there are cores: each says how many it had, and when."""

from pathlib import Path

import numpy as np
import pytest
import yaml

from conftest import Repository

pytestmark = pytest.mark.workflow
STUDY = {
    "results": "results/cores",
    "sources": {
        "one": {"kind": "gaussian", "members": 1},
        "two": {"kind": "file", "path": "two.npz"},
    },
    "cells": [{"source": ["one", "two"], "N": [8, 9], "d": 2, "feature_map": ["exp", "softmax"]}],
    "approximations": {"noise": [0.1]},
}
TARGETS = [
    f"results/cores/tables/{name}.csv" for name in ("rank", "spectrum", "bound", "two_token")
]
RECORDING = """
import atexit, os, sys, time

def end():
    status = open("/proc/self/status").read()
    threads = next(line.split()[1] for line in status.splitlines() if line.startswith("Threads"))
    blas = os.environ.get("OPENBLAS_NUM_THREADS")
    with open(os.environ["RECORD"], "a") as file:
        file.write(f"{step} {start} {time.monotonic()} {threads} {blas}\\n")

step = next((word for word in sys.orig_argv[1:2] if "scripts/" in word), None)
start = time.monotonic()
if step:
    atexit.register(end)
"""
"""Every interpreter imports it. OpenBLAS's threads stay to the end; the clock is the machine's."""


def test_cores_are_never_oversubscribed(repository: Repository, tmp_path: Path, monkeypatch):
    (tmp_path / "recording").mkdir()
    (tmp_path / "recording" / "sitecustomize.py").write_text(RECORDING)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "recording"))
    monkeypatch.setenv("RECORD", str(tmp_path / "record"))
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    q, k, v = np.random.default_rng(0).standard_normal((3, 1, 9, 2))
    np.savez(repository.folder / "two.npz", q=q, k=k, v=v)
    study = repository.write("study.yaml", yaml.safe_dump(STUDY))
    repository.snakemake("--cores", "2", "--configfile", study, "--", *TARGETS)
    jobs = [line.split() for line in (tmp_path / "record").read_text().splitlines()]
    assert len(jobs) == 1 + 2 * 6 + len(TARGETS)
    assert {job[4] for job in jobs} == {"1"}, "what Snakemake allots is what BLAS may take"
    changes = []
    for _, start, end, threads, _ in jobs:
        changes += [(float(start), int(threads)), (float(end), -int(threads))]
    at_once, most = 0, 0
    for _, change in sorted(changes):
        at_once += change
        most = max(most, at_once)
    assert most == 2
