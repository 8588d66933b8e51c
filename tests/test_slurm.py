"""The pipeline on a real Slurm: the bytes of a local run, through whatever happens to its jobs."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator

import pytest

import slurm_cluster
import slurm_setup
from conftest import ROOT, Repository

pytestmark = pytest.mark.cluster

SMOKE = ("--configfile", "config/smoke.yaml")
RESULTS = "results/smoke"
ON_SLURM = ("--workflow-profile", "slurm", "--resources", f"mem_mb={slurm_setup.NODE_MB}")
CONTROLS = ("two_token", "running_sum", "all_ones", "product_rank")
FEW = (*SMOKE, "--", *(f"{RESULTS}/tables/{name}.csv" for name in CONTROLS))
"""A job each, beside nothing else."""
PATIENCE = 300.0  # seconds


@pytest.fixture(scope="session")
def slurm() -> Iterator[slurm_cluster.Cluster]:
    try:
        with slurm_cluster.cluster() as cluster:
            yield cluster
    except slurm_setup.NoSlurm as reason:
        pytest.skip(f"no Slurm here: {reason}")


@pytest.fixture
def few(smoke_repository: Repository) -> dict[str, bytes]:
    outputs = smoke_repository.outputs(RESULTS)
    return {path: outputs[path] for path in (f"tables/{name}.csv" for name in CONTROLS)}


def misbehaving(repository: Repository, **kinds: str) -> None:
    """Have steps, by the names of their scripts, misbehave the first time."""
    folder = repository.folder / "scripts"
    (folder / "misbehave.py").write_text((ROOT / "tests" / "misbehave.py").read_text())
    for name, kind in kinds.items():
        script = folder / f"{name}.py"
        line = f"import misbehave; misbehave.once({kind!r}, {name!r})\n"
        script.write_text(line + script.read_text(encoding="utf-8"), encoding="utf-8")


def start(repository: Repository) -> subprocess.Popen:
    return subprocess.Popen(
        repository.command(*ON_SLURM, *FEW),
        cwd=repository.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def noted(repository: Repository, name: str, run: subprocess.Popen) -> list[str]:
    """The job, node and threads of a step that misbehaves, once it does."""
    path = repository.folder / "faults" / name
    wait_for(path.exists, run)
    return path.read_text(encoding="utf-8").split()


def wait_for(there: Callable[[], bool], run: subprocess.Popen) -> None:
    deadline = time.monotonic() + PATIENCE
    while not there():
        assert run.poll() is None, run.stdout.read()[-4000:]
        assert time.monotonic() < deadline
        time.sleep(0.1)


def history(slurm: slurm_cluster.Cluster, control: str, field: str) -> list[str]:
    """A field of all jobs of a control, in the order of their submission."""
    lines = slurm.ask("squeue", "--states=all", "--noheader", "--sort=i", f"--format=%k|{field}")
    jobs = [line.rpartition("|") for line in lines.splitlines()]
    return [value for comment, _, value in jobs if comment.endswith(f"wildcards_{control}")]


def test_bytes_are_those_of_a_local_run(slurm, smoke_repository, repository):
    run = repository.snakemake(*ON_SLURM, *SMOKE)
    assert "submitted with SLURM jobid" in run.stdout
    assert "No wall time" not in run.stdout and "No job memory" not in run.stdout
    assert repository.outputs(RESULTS) == smoke_repository.outputs(RESULTS)
    assert not repository.planned(SMOKE[1])


def test_what_happens_to_jobs_costs_a_retry(slurm, few, repository):
    misbehaving(
        repository,
        two_token="memory",
        running_sum="hang",
        all_ones="hang",
        product_rank="late",
    )
    run = start(repository)
    long, _, threads = noted(repository, "running_sum", run)
    assert threads == "1"
    slurm.ask("scontrol", "update", f"jobid={long}", "TimeLimit=1")
    slurm.ask("scancel", noted(repository, "all_ones", run)[0])
    slurm.lose(noted(repository, "product_rank", run)[1])
    output = run.communicate(timeout=PATIENCE)[0]
    assert run.returncode == 0, output[-4000:]
    assert repository.outputs(RESULTS) == few
    for control, state in {
        "two_token": "FAILED",
        "running_sum": "TIMEOUT",
        "all_ones": "CANCELLED",
        "product_rank": "NODE_FAIL",
    }.items():
        assert history(slurm, control, "%T")[-2:] == [state, "COMPLETED"]
    job, node, _ = noted(repository, "two_token", run)
    log = (slurm.folder / f"{node}.log").read_text(encoding="utf-8")
    assert [line for line in log.splitlines() if f"StepId={job}." in line and "memory" in line], log
    first, second = (int(value.rstrip("M")) for value in history(slurm, "two_token", "%m")[-2:])
    assert second == 2 * first
    assert history(slurm, "running_sum", "%l")[-2:] == ["1:00", "10:00"]


def test_a_killed_run_is_resumed_by_the_same_command(slurm, few, repository, tmp_path):
    misbehaving(repository, two_token="hang")
    run = start(repository)
    left = noted(repository, "two_token", run)[0]
    elsewhere = ("sbatch", "--parsable", "--job-name=causalrank_x", f"--chdir={tmp_path}")
    other = slurm.ask(*elsewhere, "--output=/dev/null", "--wrap=sleep 600")
    os.killpg(run.pid, signal.SIGKILL)
    run.wait()
    state = ("squeue", "--states=all", "--noheader", "--format=%T", "--jobs")
    assert slurm.ask(*state, left) == "RUNNING"
    resumed = repository.snakemake(*ON_SLURM, *FEW)
    assert "cancelling the jobs that an earlier run left" in resumed.stdout
    assert slurm.ask(*state, left) == "CANCELLED"
    assert slurm.ask(*state, other) == "RUNNING"
    assert repository.outputs(RESULTS) == few
