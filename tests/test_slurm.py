"""The pipeline on a real Slurm: the bytes of a local run, through whatever happens to its jobs.

Waits are bounded, and long: each job starts two Snakemakes, half a minute on a busy machine.
"""

import contextlib
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import slurm_cluster
import slurm_setup
from conftest import ROOT, Repository

pytestmark = pytest.mark.cluster

SMOKE = ("--configfile", "config/smoke.yaml")
RESULTS = "results/smoke"
CELLS = f"{RESULTS}/cells/*/*/*/*"
ON_SLURM = ("--workflow-profile", "slurm", "--resources", f"mem_mb={slurm_setup.NODE_MB}")
AS_DOCUMENTED = (
    *("--default-resources", "slurm_partition=main", "slurm_account=mine"),
    *("--resources", f"mem_mb={slurm_setup.NODE_MB}", "runtime=30m"),
)
"""As config/cluster.md has it. Of two `--resources`, the last counts; without `runtime`, some
submissions would ask for an hour."""
CONTROLS = ("two_token", "running_sum", "all_ones", "product_rank", "rank_one_softmax")
"""Tables of a job each, beside nothing else."""
PATIENCE = 1200.0  # seconds, for a whole run
THREADS = {"OMP_NUM_THREADS": "7", "OPENBLAS_NUM_THREADS": "7", "MKL_NUM_THREADS": "7"}
"""As a login node may have them: no job may take them over."""


@pytest.fixture(scope="session")
def slurm() -> Iterator[slurm_cluster.Cluster]:
    try:
        with slurm_cluster.cluster() as cluster:
            yield cluster
    except slurm_setup.NoSlurm as reason:
        pytest.skip(f"no Slurm here: {reason}")


def only(controls: tuple[str, ...]) -> tuple[str, ...]:
    return (*SMOKE, "--", *(f"{RESULTS}/tables/{name}.csv" for name in controls))


def undisturbed(smoke_repository: Repository, controls: tuple[str, ...]) -> dict[str, bytes]:
    outputs = smoke_repository.outputs(RESULTS)
    forms = ("tables/{}.csv", "tables/receipts/{}.csv.sha256")
    return {path: outputs[path] for path in (x.format(name) for name in controls for x in forms)}


class Run:
    """Snakemake at work in a repository; what it says goes to a file there."""

    def __init__(self, repository: Repository, *arguments: str):
        self.repository = repository
        self.log = repository.folder / "said.txt"
        with self.log.open("w") as said:
            self.process = subprocess.Popen(
                repository.command(*ON_SLURM, *arguments),
                cwd=repository.folder,
                stdout=said,
                stderr=subprocess.STDOUT,
                env=os.environ | THREADS,
                start_new_session=True,
            )
        self.deadline = time.monotonic() + PATIENCE

    def said(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")

    def kill(self) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def until(self, there: Callable[[], object]) -> object:
        """What `there` becomes, which it must before the run ends."""
        while not (value := there()):
            assert self.process.poll() is None, self.said()[-4000:]
            self.patience()
            time.sleep(0.1)
        return value

    def finish(self) -> str:
        """What a run said that ends well."""
        while self.process.poll() is None:
            self.patience()
            time.sleep(0.1)
        assert self.process.returncode == 0, self.said()[-4000:]
        return self.said()

    def patience(self) -> None:
        if time.monotonic() > self.deadline:
            self.kill()
            pytest.fail(f"after {PATIENCE} s: {self.said()[-4000:]}")

    def noted(self, name: str) -> dict[str, str]:
        """What a step that misbehaves noted, once it does."""
        path = self.repository.folder / "faults" / name
        self.until(path.exists)
        keys = ("job", "node", "cores", *THREADS)
        return dict(zip(keys, path.read_text(encoding="utf-8").split(), strict=True))


def misbehaving(repository: Repository, **kinds: str) -> None:
    """Have steps, by the names of their scripts, misbehave the first time, or the first times."""
    folder = repository.folder / "scripts"
    (folder / "misbehave.py").write_text((ROOT / "tests" / "misbehave.py").read_text())
    for name, kind in kinds.items():
        script = folder / f"{name}.py"
        faults = [f"misbehave.once({x!r}, '{name}{n or ''}')" for n, x in enumerate(kind.split())]
        line = f"import misbehave; {'; '.join(faults)}\n"
        script.write_text(line + script.read_text(encoding="utf-8"), encoding="utf-8")


def at_work(repository: Repository) -> dict[int, str]:
    """The processes of jobs in a repository, with what each of them runs."""
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it ended
            if (process / "cwd").readlink() == repository.folder:
                words = (process / "cmdline").read_bytes().split(b"\0")
                found[int(process.name)] = b"".join(words[1:2]).decode()
    return found


def process_of(repository: Repository, script: str) -> int:
    """The process that runs a step in a repository."""
    for process, runs in at_work(repository).items():
        if runs.endswith(f"scripts/{script}.py"):
            return process
    raise AssertionError(f"nothing runs {script}")


def orphaned(repository: Repository, name: str) -> None:
    """Wait for the jobs of a lost node to end, of which a step that was late has written too."""
    deadline = time.monotonic() + PATIENCE
    while left := at_work(repository):
        assert time.monotonic() < deadline, left
        time.sleep(0.1)
    seen = (repository.folder / "faults" / f"{name}.late").read_text(encoding="utf-8")
    path, number = seen.rsplit(" ", 1)
    assert (repository.folder / path).stat().st_ino != int(number), "nothing was written late"


def history(slurm: slurm_cluster.Cluster, control: str, field: str) -> list[str]:
    """A field of all jobs of a control, in the order of their submission."""
    lines = slurm.ask("squeue", "--states=all", "--noheader", "--sort=i", f"--format=%k|{field}")
    jobs = [line.rpartition("|") for line in lines.splitlines()]
    return [value for comment, _, value in jobs if comment.endswith(f"wildcards_{control}")]


def test_bytes_are_those_of_a_local_run(slurm, smoke_repository, repository):
    said = Run(repository, "--slurm-keep-successful-logs", *AS_DOCUMENTED, *SMOKE).finish()
    assert "No wall time" not in said and "No job memory" not in said
    submitted = slurm.ask("squeue", "--states=all", "--noheader", "--format=%C|%P|%a|%l").split()
    assert 0 < len(submitted) == said.count("submitted with SLURM jobid") <= 60
    where, limits = zip(*(x.rsplit("|", 1) for x in submitted), strict=True)
    assert set(where) == {"1|main|mine"}, "cores, partition, account"
    assert "30:00" in limits and all(re.fullmatch("([12]?[0-9]|30):00", x) for x in limits)
    logs = list((repository.folder / ".snakemake" / "slurm_logs").rglob("*.log"))
    assert len(logs) == len(submitted)
    for log in logs:  # linuxproc binds no job to its core
        assert "Provided cores: 1 " in log.read_text(encoding="utf-8"), log
    assert repository.outputs(RESULTS) == smoke_repository.outputs(RESULTS)
    assert not repository.planned(SMOKE[1])


def test_what_happens_to_jobs_costs_a_retry(slurm, smoke_repository, repository):
    """One over its memory, one over its time, one cancelled, one killed, one whose node is lost."""
    misbehaving(
        repository,
        two_token="memory",
        running_sum="hang",
        all_ones="hang",
        rank_one_softmax="hang",
        product_rank="late",
    )
    before = {name: len(history(slurm, name, "%T")) for name in CONTROLS}
    run = Run(repository, *only(CONTROLS))
    slurm.ask("scontrol", "update", f"jobid={run.noted('running_sum')['job']}", "TimeLimit=1")
    slurm.ask("scancel", run.noted("all_ones")["job"])
    run.noted("rank_one_softmax")
    os.kill(process_of(repository, "rank_one_softmax"), signal.SIGKILL)
    slurm.lose(run.noted("product_rank")["node"])
    run.finish()
    orphaned(repository, "product_rank")
    assert repository.outputs(RESULTS) == undisturbed(smoke_repository, CONTROLS)

    def of(control: str, field: str) -> list[str]:
        return history(slurm, control, field)[before[control] :]

    for control, states in {
        "two_token": {"FAILED", "OUT_OF_MEMORY"},
        "running_sum": {"TIMEOUT"},
        "all_ones": {"CANCELLED"},
        "rank_one_softmax": {"FAILED"},
        "product_rank": {"NODE_FAIL"},
    }.items():
        first, *_, last = of(control, "%T")
        assert first in states and last == "COMPLETED", control
    job, node = (run.noted("two_token")[key] for key in ("job", "node"))
    log = (slurm.folder / f"{node}.log").read_text(encoding="utf-8")
    assert [line for line in log.splitlines() if f"StepId={job}." in line and "memory" in line], log
    first, second = (int(value.rstrip("M")) for value in of("two_token", "%m")[:2])
    assert second == 2 * first
    assert of("running_sum", "%l")[:2] == ["1:00", "10:00"]


def test_a_fault_in_a_batch_costs_its_submission(slurm, smoke_repository, repository):
    """A step over its memory, and then on a lost node, after others that are done: a group job."""
    misbehaving(repository, measure_rank="memory late")
    run = Run(repository, *only(("rank",)))
    run.noted("measure_rank")
    built = {path: path.stat().st_ino for path in repository.folder.glob(f"{CELLS}/factors.npz")}
    slurm.lose(run.noted("measure_rank1")["node"])
    run.finish()
    orphaned(repository, "measure_rank1")
    made, expected = (x.outputs(RESULTS) for x in (repository, smoke_repository))
    others = [path for path in made if made[path] != expected.get(path)]
    assert "tables/rank.csv" in made and len(others) == 9 + 1
    assert {Path(path).stem for path in others} == {"measure_rank"}, "receipts of other code"
    assert len(built) == 9 and built == {path: path.stat().st_ino for path in built}
    for step in ("build_cell", "compute_singular_values"):
        (log,) = repository.folder.glob(f"{RESULTS}/batches/*/*/logs/{step}.log")
        assert log.read_text(encoding="utf-8").endswith("0 computed, 9 reused, 0 failed\n")
    lines = slurm.ask("squeue", "--states=all", "--noheader", "--sort=i", "--format=%Z|%T|%m|%l")
    jobs = [line.split("|") for line in lines.splitlines()]
    states, memory, time_limits = zip(
        *(rest for folder, *rest in jobs if folder == str(repository.folder)), strict=True
    )
    assert states[0] in {"FAILED", "OUT_OF_MEMORY"} and states[1:] == ("NODE_FAIL", "COMPLETED")
    first, second, third = (int(value.rstrip("M")) for value in memory)
    assert second == 2 * first and third == min(4 * first, slurm_setup.NODE_MB)
    assert time_limits == ("11:00", "22:00", "44:00"), "of the whole group"


def test_a_killed_run_is_resumed_by_the_same_command(slurm, smoke_repository, repository, tmp_path):
    """In the middle of a batch, whose jobs remove its files as they are cancelled."""
    few = (*CONTROLS[:2], "rank")
    misbehaving(repository, two_token="hang", measure_rank="hang")
    run = Run(repository, *only(few))
    left = run.noted("two_token")
    run.noted("measure_rank")
    elsewhere = ("sbatch", "--parsable", "--job-name=causalrank_x", f"--chdir={tmp_path}")
    other = slurm.ask(*elsewhere, "--output=/dev/null", "--wrap=sleep 3000")
    run.kill()
    state = ("squeue", "--states=all", "--noheader", "--format=%T", "--jobs")
    assert slurm.ask(*state, left["job"]) == "RUNNING"
    said = Run(repository, *only(few)).finish()
    assert "cancelling the jobs that an earlier run left" in said
    assert slurm.ask(*state, left["job"]) == "CANCELLED"
    assert slurm.ask(*state, other) in ("PENDING", "RUNNING")
    assert undisturbed(smoke_repository, few).items() <= repository.outputs(RESULTS).items()
    assert {left[name] for name in THREADS} == {left["cores"]} == {"1"}


EDITED = """
results: results/edited
sources: {{drawn: {{kind: gaussian, members: 1}}}}
cells: [{{source: drawn, N: {N}, d: 2, feature_map: relu}}]
"""


def test_an_edit_waits_for_the_next_run(slurm, tmp_path):
    """Of the study and of a step, made before the first job has begun.

    In a folder that every program on the way to a node has to quote.
    """
    table = "results/edited/tables/rank.csv"
    command = ("--configfile", "study.yaml", "--", table)
    undisturbed = Repository(tmp_path / "undisturbed")
    repository = Repository(tmp_path / "mein Ordner é")
    step = repository.folder / "scripts" / "measure_rank.py"
    text = step.read_text(encoding="utf-8")
    for N, another in ((8, 9), (9, 10)):
        undisturbed.write("study.yaml", EDITED.format(N=N))
        undisturbed.snakemake("--cores", "2", *command)
        repository.write("study.yaml", EDITED.format(N=N))
        run = Run(repository, *command)
        run.until(lambda run=run: "submitted with SLURM jobid" in run.said())
        repository.write("study.yaml", EDITED.format(N=another))
        step.write_text("raise SystemExit('edited')\n", encoding="utf-8")
        run.finish()
        step.write_text(text, encoding="utf-8")
        expected = (undisturbed.folder / table).read_bytes()
        assert f"drawn,{N},".encode() in expected
        assert (repository.folder / table).read_bytes() == expected
