"""The time that a batch's submissions ask for: what the steps that are in them need, once started.

Snakemake adds up the steps' times, as its dry run says them.
"""

import re

import pytest
import yaml

import resources
from conftest import Repository

pytestmark = pytest.mark.workflow
STUDY = {
    "results": "results/submitted",
    "sources": {"a": {"kind": "gaussian", "members": 9}, "b": {"kind": "gaussian", "members": 1}},
    "cells": [{"source": ["a", "b"], "N": [8, 16], "d": 2, "feature_map": "exp"}],
    "approximations": {"noise": [0.1]},
}
BATCH = "results/submitted/batches/drawn/shared~00"
SLURM = ("--workflow-profile", "slurm", "--resources", "mem_mb=64000")
TABLES = [f"results/submitted/tables/{name}.csv" for name in ("rank", "baselines", "bound")]


@pytest.fixture(scope="module")
def repository(tmp_path_factory) -> Repository:
    pytest.importorskip("snakemake_executor_plugin_slurm")
    made = Repository(tmp_path_factory.mktemp("submitted") / "repository")
    made.write("study.yaml", yaml.safe_dump(STUDY))
    return made


def submitted(repository: Repository, *options: str) -> dict[tuple[str, ...], int]:
    """The minutes that each group asks for, by its steps."""
    options = (*SLURM, *options, "--configfile", "study.yaml")
    text = repository.snakemake("-n", *options, "--", *TABLES).stdout
    found = {}
    for group in text.split("Group job batch ")[1:]:
        steps = re.findall(r"^ +rule (\w+):", group, re.M)
        times = re.findall(r"^ +resources: .*runtime=(\d+)", group, re.M)
        assert len(times) == len(steps)
        found[tuple(sorted(steps))] = sum(map(int, times))
    return found


ALL = tuple(sorted(resources.STEPS))


def test_a_batch_starts_once(repository):
    assert submitted(repository) == {ALL: resources.STARTING_MINUTES + 1}
    assert submitted(repository, "runtime=7") == {ALL: 7}


@pytest.mark.parametrize("attempt", [1, 2, 3])
def test_a_retry_has_twice_the_time_up_to_the_longest_there_is(repository, attempt):
    """As an attempt of Snakemake's own has it within a job."""
    again = ("--attempt", str(attempt))
    assert submitted(repository, *again) == {ALL: 11 * 2 ** (attempt - 1)}
    assert submitted(repository, "runtime=30", *again) == {ALL: min(11 * 2 ** (attempt - 1), 30)}


def test_what_is_left_of_a_batch_starts_again(repository):
    """In as many submissions as hang together."""
    done = [f"{BATCH}/{name}.txt" for name in ("compute_singular_values", "compute_extremes")]
    repository.snakemake("--cores", "2", "--configfile", "study.yaml", "--", *done)
    assert submitted(repository) == {
        ("check_bound",): 11,
        ("measure_rank",): 11,
        ("measure_baselines", "measure_spectrum"): 11,
    }
