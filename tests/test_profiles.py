"""What the profiles share, and what an option says of the machines that jobs run on."""

import re
from collections import Counter

import numpy as np
import pytest
import yaml

from conftest import ROOT

SLURM, DEFAULT = (
    yaml.safe_load((ROOT / "workflow" / "profiles" / name / "config.yaml").read_text())
    for name in ("slurm", "default")
)


def test_the_slurm_profile_has_all_of_the_default_one():
    """One replaces the other: Snakemake reads a single profile of the workflow."""
    assert DEFAULT.items() <= SLURM.items()


def test_a_submission_has_one_core():
    """Or a batch would ask for as many as it has steps side by side, and all of their memory."""
    assert SLURM["cores"] == 1 and SLURM["jobs"] > 1


def test_a_lost_job_is_submitted_by_snakemake_alone():
    assert SLURM["retries"] > 0 and SLURM["slurm-no-requeue"]


@pytest.mark.workflow
def test_a_cell_must_fit_the_stated_node(repository):
    run = repository.snakemake(
        "-n", "--configfile", "config/smoke.yaml", "--resources", "mem_mb=101", expect=1
    )
    assert re.search(r"needs \d+ MB.*, and there are 101 MB", run.stdout)
    assert "Traceback" not in run.stdout


MANY = {"N": [*range(64, 145, 4)], "d": [*range(4, 65, 4)]}
LARGER = {"N": 256, "d": [*range(1, 337)]}
OF_TWENTY = {"N": [64, 96, 128], "d": [*range(1, 7)]}
"""A thousand small cells with three maps, the last ones of twenty sources; the second ones take two
seconds each, in 32 batches."""
MAPS = ["elu_plus_one", "exp", "softmax"]


def submissions(repository, sources: dict[str, dict], cells: dict) -> tuple[int, Counter[str]]:
    """How many groups, and how many others by rule, a study on those cells of each source sends."""
    pytest.importorskip("snakemake_executor_plugin_slurm")
    blocks = [{"source": sorted(sources), **cells, "feature_map": MAPS}]
    text = yaml.safe_dump({"sources": sources, "cells": blocks})
    profile = ("--workflow-profile", "slurm", "--resources", "mem_mb=64000")
    run = repository.snakemake("-n", *profile, "--configfile", repository.write("many.yaml", text))
    cluster = (ROOT / "workflow" / "rules" / "cluster.smk").read_text(encoding="utf-8")
    local = {"all", *re.findall(r"^    (\w+),$", cluster, re.M)}
    alone = [name for name in re.findall(r"^rule (\w+):", run.stdout, re.M) if name not in local]
    groups = re.findall(r"^\[.*\] Group job batch ", run.stdout, re.M)
    assert len(re.findall(r"^ +rule (\w+):", run.stdout, re.M)) == 7 * len(groups)
    assert not {"build_cell", "check_bound"} & set(alone)
    return len(groups), Counter(alone)


@pytest.mark.workflow
@pytest.mark.parametrize(
    ("cells", "sources", "batches"),
    [(MANY, 1, 16), (LARGER, 1, 32), (OF_TWENTY, 20, 16)],
)
def test_a_thousand_small_cells_are_few_submissions(repository, cells, sources, batches):
    """Of the whole study, whatever sources are drawn: a group is one, and what is local none."""
    drawn = {f"s{n}": {"kind": "gaussian", "members": 5} for n in range(sources)}
    groups, alone = submissions(repository, drawn, cells)
    assert groups == batches and groups + alone.total() <= 60


@pytest.mark.workflow
def test_what_a_source_that_is_read_adds(repository):
    """A submission to read it, its batch, its growth and its horizons."""
    q = np.random.default_rng(0).standard_normal((1, 144, 16))
    sources = {}
    for n in range(8):
        np.savez(repository.folder / f"q{n}.npz", q=q, k=q, v=q)
        sources[f"s{n}"] = {"kind": "file", "path": f"q{n}.npz"}
    groups, alone = submissions(repository, sources, {"N": [*range(103, 145)], "d": 16})
    read = {
        name: alone.pop(name) for name in ("read_user_file", "estimate_growth", "find_horizons")
    }
    assert groups == 8 and set(read.values()) == {8}
    assert groups + sum(read.values()) + alone.total() <= 60


@pytest.mark.workflow
def test_a_users_file_must_fit_the_stated_node(repository):
    """Not the machine on which Snakemake runs."""
    q = np.zeros((70_000, 1))
    np.savez(repository.folder / "heads.npz", q=q, k=q)
    repository.write(
        "study.yaml",
        "sources: {mine: {kind: file, path: heads.npz}}\n"
        "cells: [{source: mine, N: 4, d: 1, feature_map: relu}]\n",
    )
    run = repository.snakemake(
        "-n", "--configfile", "study.yaml", "--resources", "mem_mb=1", expect=1
    )
    assert "heads.npz: its arrays take 1.12 MB as float64, more than the 1 MB allowed" in run.stdout
    assert "Traceback" not in run.stdout
