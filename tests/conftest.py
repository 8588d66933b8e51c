"""Fixtures: copies of the repository in which Snakemake runs, and the downloads they share."""

import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / name) for name in ("scripts", "workflow", "envs/deployment")]

# As Snakemake sets it for a job of one thread; numpy reads it when it is imported, which is later.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

settings.register_profile("repeatable", deadline=None, derandomize=True)
settings.load_profile("repeatable")


def planned_jobs(text: str) -> Counter[str]:
    """How many jobs of which rule a dry run's text lists, without `all`."""
    jobs = Counter({m[1]: int(m[2]) for m in re.finditer(r"^(\w+) +(\d+)$", text, re.M)})
    del jobs["all"], jobs["total"]
    assert jobs or "Nothing to be done" in text, text
    return jobs


class Repository:
    """A copy of the repository, with its own results.

    Its steps run with the driver's Python, which has the same packages, unless `deployed`.
    """

    def __init__(self, folder: Path, deployed: bool = False):
        self.folder = folder
        for name in ("workflow", "scripts", "config", "envs"):
            ignore = shutil.ignore_patterns("__pycache__", "*.wheels.pin.txt")
            shutil.copytree(ROOT / name, folder / name, ignore=ignore)
        if not deployed:
            for profile in (folder / "workflow" / "profiles").glob("*/config.yaml"):
                text = profile.read_text(encoding="utf-8")
                line = "software-deployment-method: conda\n"
                assert line in text
                profile.write_text(text.replace(line, ""), encoding="utf-8")
        (folder / "results").mkdir()
        downloads = ROOT / "results" / "downloads"
        downloads.mkdir(parents=True, exist_ok=True)
        (folder / "results" / "downloads").symlink_to(downloads)

    @classmethod
    def at(cls, folder: Path) -> "Repository":
        """One that is there already."""
        repository = cls.__new__(cls)
        repository.folder = folder
        return repository

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "snakemake", *arguments]

    def snakemake(self, *arguments: str, expect: int = 0) -> subprocess.CompletedProcess:
        """Run Snakemake here; both streams end in `stdout`."""
        run = subprocess.run(
            self.command(*arguments),
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert (run.returncode != 0) == (expect != 0), run.stdout[-4000:]
        return run

    def planned(self, study: str) -> Counter[str]:
        """How many jobs of which rule a dry run plans, without `all`."""
        return planned_jobs(self.snakemake("-n", "--configfile", study).stdout)

    def write(self, path: str, text: str) -> str:
        (self.folder / path).write_text(text, encoding="utf-8")
        return path

    def outputs(self, results: str) -> dict[str, bytes]:
        """The bytes of everything below a results folder but times and logs."""
        return {
            str(path.relative_to(self.folder / results)): path.read_bytes()
            for path in sorted((self.folder / results).rglob("*"))
            if path.is_file() and not {"logs", "benchmarks"} & set(path.parts)
        }


@contextmanager
def dry_runs(folder: Path) -> Iterator[Callable[[str], tuple[int, str]]]:
    """Yield a function of a study's path: exit status and text of its dry run, see dry_runs.py."""
    command = [sys.executable, ROOT / "tests" / "dry_runs.py", folder]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as process:

        def dry_run(study: str) -> tuple[int, str]:
            print(study, file=process.stdin, flush=True)
            return json.loads(process.stdout.readline())

        yield dry_run


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "repository")


@pytest.fixture(scope="session")
def smoke_repository(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    """A repository in which the smoke study has run on two cores; tests leave it as it was.

    With several workers, one runs it, and each has a copy.
    """
    own = tmp_path_factory.mktemp("smoke")
    shared = own.parent.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    original = shared / "smoke"
    with (shared / "smoke.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not original.exists():
            repository = Repository(shared / "smoke.part")
            repository.snakemake("--cores", "2", "--configfile", "config/smoke.yaml")
            repository.folder.rename(original)
    shutil.copytree(original, own / "repository", symlinks=True)
    return Repository.at(own / "repository")


@pytest.fixture(scope="session")
def smoke_run(smoke_repository: Repository) -> Path:
    return smoke_repository.folder


@pytest.fixture
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Point the modules that deploy environments at folders of this test."""
    from tiny_packages import point_at

    point_at(tmp_path, monkeypatch)
    return tmp_path


@pytest.fixture
def small_disk(tmp_path: Path) -> Path:
    """A disk of a megabyte."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small disk")
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder]
    try:
        done = subprocess.run(mount, capture_output=True, text=True)
    except OSError as problem:
        pytest.skip(f"no small disk: {problem}")
    if done.returncode:
        pytest.skip(f"no small disk: {done.stderr.strip()}")
    yield folder
    # Lazily, since what failed to write a file may not have closed it yet.
    subprocess.run(["umount", "--lazy", folder], check=True)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whole runs first: the last file that a worker takes should be a short one."""
    runs = {"workflow", "deployed", "cluster"}
    items.sort(key=lambda item: not runs & {m.name for m in item.iter_markers()})
