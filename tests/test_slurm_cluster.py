"""No Slurm is a reason to skip its tests; one that is installed and does not start is none."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import slurm_cluster
from conftest import ROOT


def test_a_daemon_that_ends_is_named_with_its_last_lines(tmp_path):
    cluster = slurm_cluster.Cluster(tmp_path)
    cluster._run("sleep", "60", name="slurmctld")
    (tmp_path / "node1.log").write_text("error: no such plugin\n")
    cluster._run("sh", "-c", "seq 100; exit 3", name="node1")
    with pytest.raises(slurm_cluster.DoesNotStart) as caught:
        cluster._until(lambda: False)
    cluster.daemons["slurmctld"].kill()
    lines = str(caught.value).split("\n  ")
    assert lines == ["node1 ended with 3:", *map(str, range(91, 101)), "error: no such plugin"]


def test_only_what_a_cluster_wrote_is_removed_when_it_stops(tmp_path, monkeypatch):
    """Nor are jobs cancelled of the Slurm that a configuration of another is of."""
    monkeypatch.setattr(slurm_cluster, "CONFIGURATION", tmp_path / "slurm.conf")
    cluster, asked = slurm_cluster.Cluster(tmp_path), []
    monkeypatch.setattr(cluster, "ask", lambda *command: asked.append(command))
    cluster.stop()
    (tmp_path / "slurm.conf").write_text("")
    cluster.stop()
    cluster.configuration = "its own\n"
    (tmp_path / "slurm.conf").write_text("another's\n")
    cluster.stop()
    assert (tmp_path / "slurm.conf").exists() and not asked
    (tmp_path / "slurm.conf").write_text("its own\n")
    cluster.stop()
    assert not (tmp_path / "slurm.conf").exists() and asked == [("scancel", "--partition=main")]


def started(programs: Path) -> subprocess.CompletedProcess:
    """The script, where there are no other programs."""
    command = [sys.executable, str(ROOT / "tests" / "slurm_cluster.py"), "true"]
    environment = os.environ | {"PATH": str(programs)}
    return subprocess.run(command, env=environment, capture_output=True, text=True)


def test_no_slurm_is_a_skip(tmp_path):
    run = started(tmp_path)
    assert run.returncode == slurm_cluster.SKIPPED and "no Slurm here: " in run.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start one")
def test_a_slurm_that_does_not_start_is_a_failure(tmp_path):
    if slurm_cluster.CONFIGURATION.exists():
        pytest.skip(f"{slurm_cluster.CONFIGURATION} is there, of another Slurm")
    for name in ("sh", "setpriv"):
        (tmp_path / name).symlink_to(shutil.which(name))
    for name in (*slurm_cluster.PROGRAMS, "scancel"):
        program = tmp_path / name
        program.write_text("#!/bin/sh\necho out of order\nexit 3\n")
        program.chmod(0o755)
    run = started(tmp_path)
    assert run.returncode == 1 and "munged ended with 3:\n  out of order" in run.stderr
