"""A grid of ten thousand cells: how many jobs it has, and the memory of a dry run of it."""

import os
import subprocess

import pytest
import yaml

import batches
from conftest import Repository, planned_jobs

STUDY = {
    "results": "results/grid",
    "sources": {"drawn": {"kind": "gaussian", "members": 5}},
    "cells": [
        {
            "source": "drawn",
            "N": [*range(64, 576, 32), 1024, 4096, 16384, 65536],
            "d": [*range(1, 126)],
            "feature_map": ["elu_plus_one", "exp", "relu", "softmax"],
        }
    ],
    "limits": {"memory_mb": 100_000},
}
COMMAND = ("--configfile", "grid.yaml")


def make_empty(repository: Repository) -> None:
    """Every file that a job of the study makes, without its content."""
    lines = repository.snakemake("--summary", *COMMAND).stdout.splitlines()
    for line in lines:
        if line.startswith("results/"):
            path = repository.folder / line.split("\t")[0]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()


@pytest.mark.workflow
def test_ten_thousand_cells_are_500_jobs_at_most_and_a_dry_run_takes_a_gibibyte(repository):
    """Of a finished study: Snakemake records all jobs, and then finds nothing to do."""
    repository.write("grid.yaml", yaml.safe_dump(STUDY))
    make_empty(repository)
    recorded = repository.snakemake("--touch", "--forceall", "--cores", "1", *COMMAND).stdout
    jobs = planned_jobs(recorded)
    batched, most = jobs["measure_rank"], batches.ALONE + batches.SHARED
    assert 20 < batched <= most
    assert sum(jobs.values()) + 7 * (most - batched) <= 500, "with as many batches as there can be"
    with (repository.folder / "dry.txt").open("w+", encoding="utf-8") as output:
        run = subprocess.Popen(
            repository.command("-n", *COMMAND),
            cwd=repository.folder,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        _, status, used = os.wait4(run.pid, 0)
        run.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        text = output.read()
    assert run.returncode == 0 and "Nothing to be done" in text, text
    assert "missing provenance" not in text  # or it would compare less than after a run
    assert used.ru_maxrss <= 2**20  # in KiB
