"""Faults in the middle of a run: the same command finishes it, and its tables are the same bytes.

The run makes a few tables and a figure of drawn heads and of a user's file; what the fault left
whole is used again. test_interrupted_download.py cuts the connection to the index.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from conftest import Repository

pytestmark = [pytest.mark.workflow, pytest.mark.faults]

STUDY = """
results: results/faults
sources:
  drawn: {kind: gaussian, members: 1}
  mine: {kind: file, path: heads.npz}
cells:
  - {source: drawn, N: 8, d: 2, feature_map: relu}
  - {source: mine, N: 1, d: 3, feature_map: exp}
"""
RESULTS = Path("results", "faults")
TARGETS = ("tables/rank.csv", "tables/spectrum.csv", "figures/singular_value_decay.svg")
COMMAND = ["--cores", "2", *(str(RESULTS / name) for name in TARGETS), "--configfile", "study.yaml"]


def made(folder: Path) -> Repository:
    repository = Repository(folder)
    q, k, v = np.random.default_rng(0).standard_normal((3, 1, 20, 3))
    np.savez(repository.folder / "heads.npz", q=q, k=k, v=v)
    repository.write("study.yaml", STUDY)
    return repository


def tables(repository: Repository) -> dict[str, bytes]:
    """The bytes of those targets that are there."""
    paths = {name: repository.folder / RESULTS / name for name in TARGETS}
    return {name: path.read_bytes() for name, path in paths.items() if path.exists()}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> Repository:
    repository = made(tmp_path_factory.mktemp("undisturbed") / "repository")
    repository.snakemake(*COMMAND)
    return repository


@pytest.fixture
def fresh(tmp_path) -> Repository:
    return made(tmp_path / "repository")


@pytest.fixture
def expected(undisturbed) -> dict[str, bytes]:
    return tables(undisturbed)


def start(repository: Repository) -> subprocess.Popen:
    command, folder = repository.command(*COMMAND), repository.folder
    with (folder / "said").open("wb") as said:
        return subprocess.Popen(
            command, cwd=folder, start_new_session=True, stdout=subprocess.DEVNULL, stderr=said
        )


def said(repository: Repository) -> str:
    """What the run that was started last has told its user."""
    return (repository.folder / "said").read_text(encoding="utf-8")


def until(condition: Callable[[], object], run: subprocess.Popen) -> object:
    """What the condition becomes, which it must before the run ends."""
    while not (value := condition()):
        assert run.poll() is None, "the run ended before the fault could come"
        time.sleep(0.01)
    return value


@contextmanager
def stopped(run: subprocess.Popen) -> Iterator[None]:
    """A run and its jobs stand still meanwhile."""
    os.killpg(run.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.killpg(run.pid, signal.SIGCONT)


def finished(repository: Repository) -> dict[Path, int]:
    """When each file of a cell was written that has a receipt."""
    receipts = (repository.folder / RESULTS / "cells").rglob("receipts/[!.]*.json")
    files = [
        receipt.parents[1] / name
        for receipt in receipts
        for name in json.loads(receipt.read_text(encoding="utf-8"))["outputs"]
    ]
    return {path: path.stat().st_mtime_ns for path in files}


def job_of(repository: Repository) -> int | None:
    """A process that runs a step in this repository."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
            here = (process / "cwd").readlink() == repository.folder
        except OSError:  # it ended, or belongs to somebody else
            continue
        if here and b"scripts/" in b"".join(words[1:2]):
            return int(process.name)
    return None


def test_snakemake_killed_while_its_jobs_live_on(fresh, expected):
    first = start(fresh)
    until(lambda: finished(fresh), first)
    os.kill(first.pid, signal.SIGKILL)
    first.wait()
    whole = finished(fresh)
    fresh.snakemake(*COMMAND)
    assert whole.items() <= finished(fresh).items()
    assert tables(fresh) == expected
    assert not list((fresh.folder / RESULTS).rglob(".part.*"))


def test_a_job_that_outlives_its_run_writes_nothing(fresh, expected):
    """A step of a killed run ends after the next run, whose code is another."""
    step, log = fresh.folder / "scripts" / "measure_rank.py", "batches/*/*/logs/measure_rank.log"
    text = step.read_text(encoding="utf-8")
    wait = "import pathlib, time\nwhile not pathlib.Path('go').exists():\n    time.sleep(0.05)\n"
    assert '    "exact_rank",\n' in text
    step.write_text(wait + text.replace('    "exact_rank",\n', '    "another",\n'), "utf-8")
    first = start(fresh)
    until(lambda: any((fresh.folder / RESULTS).glob(log)), first)
    os.kill(first.pid, signal.SIGKILL)
    first.wait()
    step.write_text(text, encoding="utf-8")
    fresh.snakemake(*COMMAND)
    assert tables(fresh) == expected
    whole = finished(fresh)
    assert job_of(fresh)
    (fresh.folder / "go").touch()
    while job_of(fresh):
        time.sleep(0.05)
    assert tables(fresh) == expected and finished(fresh) == whole
    assert "Nothing to be done" in fresh.snakemake(*COMMAND).stdout


def test_a_killed_job(fresh, expected):
    first = start(fresh)
    os.kill(until(lambda: finished(fresh) and job_of(fresh), first), signal.SIGKILL)
    assert first.wait() != 0
    assert re.search(r"\nfailed: .*(was|have been) killed", said(fresh))
    assert tables(fresh).items() < expected.items()
    whole = finished(fresh)
    fresh.snakemake(*COMMAND)
    assert whole.items() <= finished(fresh).items()
    assert tables(fresh) == expected


def test_an_interrupt(fresh, expected):
    """As by Ctrl-C, which all processes of a run are sent."""
    first = start(fresh)
    until(lambda: finished(fresh) and job_of(fresh), first)
    os.killpg(first.pid, signal.SIGINT)
    assert first.wait() != 0
    assert "\ninterrupted: the same command" in said(fresh) and "\nfailed: " not in said(fresh)
    whole = finished(fresh)
    fresh.snakemake(*COMMAND)
    assert whole.items() <= finished(fresh).items()
    assert tables(fresh) == expected


def test_two_runs_in_one_folder(fresh, expected):
    """The second says so before its first job, and the first goes on undisturbed."""
    first = start(fresh)
    until(lambda: finished(fresh), first)
    with stopped(first):  # or it may have ended before the second has begun
        text = fresh.snakemake(*COMMAND, expect=1).stdout
    assert f"error: another run (process {first.pid}) is at work in this folder" in text
    assert "Traceback" not in text and "rule " not in text
    assert first.wait() == 0
    assert tables(fresh) == expected


def test_a_study_edited_while_it_runs(fresh, expected):
    """A run is of the study that it began with; the next one of the study that is there."""
    fresh.write("study.yaml", STUDY[: STUDY.rindex("  -")])
    first = start(fresh)
    until(lambda: finished(fresh), first)
    fresh.write("study.yaml", STUDY)
    assert first.wait() == 0
    rank = (fresh.folder / RESULTS / "tables" / "rank.csv").read_text(encoding="utf-8")
    assert "drawn,8," in rank and "mine,1," not in rank
    whole = finished(fresh)
    fresh.snakemake(*COMMAND)
    assert whole.items() <= finished(fresh).items()
    assert tables(fresh) == expected


def receipts(repository: Repository) -> dict[Path, bytes]:
    """What the steps have noted of cells: of which code they are, among others."""
    folder = repository.folder / RESULTS / "cells"
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("receipts/*")}


def test_code_edited_while_it_runs(fresh, undisturbed, expected):
    """A run is of the code that it began with; the next one does again what the edit changes."""
    step = fresh.folder / "scripts" / "measure_spectrum.py"
    text = step.read_text(encoding="utf-8")
    edited = text.replace("method, *errors", "f'edited {method}', *errors")
    assert edited != text
    first = start(fresh)
    until(lambda: finished(fresh), first)
    with stopped(first):
        step.write_text(edited, encoding="utf-8")
        assert not list((fresh.folder / RESULTS).rglob("spectrum.csv")), "the edit came too late"
    assert first.wait() == 0
    assert tables(fresh) == expected and receipts(fresh) == receipts(undisturbed)
    fresh.snakemake(*COMMAND)
    changed = {name for name, content in tables(fresh).items() if content != expected[name]}
    assert changed == {"tables/spectrum.csv"}
    again = dict(receipts(fresh).items() - receipts(undisturbed).items())
    assert {path.name for path in again} == {"measure_spectrum.json"}
    step.write_text(text, encoding="utf-8")
    fresh.snakemake(*COMMAND)
    assert tables(fresh) == expected and receipts(fresh) == receipts(undisturbed)


def test_a_users_file_that_changes_while_a_run_reads_it(fresh, expected):
    """A run that would read other bytes than it was promised says so; the next one reads them."""
    path = fresh.folder / "heads.npz"
    right = path.read_bytes()
    q = np.ones((1, 20, 3))
    np.savez(path, q=q, k=q, v=q)
    first = start(fresh)
    until(lambda: (fresh.folder / RESULTS).exists(), first)  # the study has been read
    with stopped(first):
        path.write_bytes(right)
    assert first.wait() != 0
    log = fresh.folder / RESULTS / "logs" / "read_user_file" / "mine.log"
    assert "heads.npz: changed while the run was at work" in log.read_text(encoding="utf-8")
    fresh.snakemake(*COMMAND)
    assert tables(fresh) == expected


def test_a_clock_that_goes_back(fresh, expected):
    """Between two runs that share the work, and after both."""
    first = start(fresh)
    built = "batches/**/build_cell.txt"
    until(lambda: any((fresh.folder / RESULTS).glob(built)), first)
    os.killpg(first.pid, signal.SIGKILL)
    first.wait()
    disorder(fresh)
    for path in (fresh.folder / RESULTS).glob(built):
        os.utime(path, (time.time() + 86400,) * 2)
    whole = {path: path.stat().st_ino for path in finished(fresh)}
    fresh.snakemake(*COMMAND)
    # A file that is made anew would be another.
    assert whole == {path: path.stat().st_ino for path in whole}
    assert tables(fresh) == expected
    disorder(fresh)
    assert "Nothing to be done" in fresh.snakemake(*COMMAND).stdout


def disorder(repository: Repository) -> None:
    """Have a third of the results come from tomorrow and a third from yesterday."""
    files = [path for path in (repository.folder / RESULTS).rglob("*") if path.is_file()]
    for place, path in enumerate(sorted(files)):
        moment = time.time() + 86400 * (place % 3 - 1)
        os.utime(path, (moment, moment))


WITHOUT_UTF8 = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


def test_a_folder_with_spaces_and_letters_of_any_alphabet(tmp_path, expected):
    repository = made(tmp_path / "mein Ordner 注意 é 'x'")
    repository.write("study.yaml", STUDY.replace("heads.npz", "мои heads.npz"))
    (repository.folder / "heads.npz").rename(repository.folder / "мои heads.npz")
    repository.snakemake(*COMMAND)
    assert tables(repository) == expected


def test_a_locale_without_utf8(tmp_path, expected, monkeypatch):
    """It takes a folder with any letters; only what the study itself spells has to be in it."""
    for name, value in WITHOUT_UTF8.items():
        monkeypatch.setenv(name, value)
    repository = made(tmp_path / "注意")
    repository.write("other.yaml", STUDY.replace("heads.npz", "мои.npz"))
    text = repository.snakemake("-n", "--configfile", "other.yaml", expect=1).stdout
    assert "sources.mine.path: \\u043c\\u043e\\u0438.npz: 'ascii' codec can't encode" in text
    repository.snakemake(*COMMAND)
    assert tables(repository) == expected


def mounted(*arguments: str) -> None:
    """Mount for this test, or skip it where that is not allowed."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount")
    try:
        done = subprocess.run(["mount", *arguments], capture_output=True, text=True)
    except OSError as problem:
        pytest.skip(f"no mount: {problem}")
    if done.returncode:
        pytest.skip(f"no mount: {done.stderr.strip()}")


@pytest.mark.parametrize(("where", "size"), [(".", "96k"), ("cells", "20k")])
def test_a_disk_that_is_full(fresh, expected, where, size):
    """Of all results, where logs have no room either, or of those of cells alone."""
    results, disk = fresh.folder / RESULTS, fresh.folder / RESULTS / where
    disk.mkdir(parents=True)
    mounted("-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(disk))
    try:
        text = fresh.snakemake(*COMMAND, expect=1).stdout
        named = RESULTS if where == "." else RESULTS / where / r"\S+\.(npz|csv|json)"
        full = rf"^error: {named} cannot be written: .*No space left on device"
        assert re.search(full, text, re.M) and "Traceback" not in text, text
        assert tables(fresh).items() < expected.items()
        assert not list(results.rglob(".part.*"))
        whole = finished(fresh)
        mounted("-o", "remount,size=64m", str(disk))
        fresh.snakemake(*COMMAND)
        assert whole.items() <= finished(fresh).items()
        assert tables(fresh) == expected
    finally:
        subprocess.run(["umount", disk], check=True)


@pytest.mark.parametrize("left", [16, 64])
def test_a_disk_that_is_full_of_snakemakes_own_records(fresh, expected, monkeypatch, left):
    """Before, at and after the first job: what was made but not recorded is made again."""
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")  # or Python takes what is left, as it comes
    records = fresh.folder / ".snakemake"
    records.mkdir()
    mounted("-t", "tmpfs", "-o", "size=256k", "tmpfs", str(records))
    try:
        text = fresh.snakemake(*COMMAND, expect=1).stdout
        reason = "takes no files: No space left on device; mend that and run again"
        assert f"error: .snakemake/causalrank {reason}" in text and "Traceback" not in text
        assert not finished(fresh)
        mounted("-o", "remount,size=64m", str(records))
        fresh.snakemake(*COMMAND, "--until", "read_user_file")
        taken = shutil.disk_usage(records).used // 1024
        mounted("-o", f"remount,size={taken + left}k", str(records))
        text = fresh.snakemake(*COMMAND, expect=1).stdout
        assert "No space left on device" in text and "Traceback" not in text
        assert tables(fresh).items() < expected.items()
        whole = finished(fresh)
        mounted("-o", "remount,size=64m", str(records))
        fresh.snakemake(*COMMAND)
        assert whole and whole.items() <= finished(fresh).items()
        assert tables(fresh) == expected
    finally:
        subprocess.run(["umount", records], check=True)


def test_records_that_are_gone(fresh, expected):
    """A line says that nothing is noticed any more, and what to do; cells are not made anew."""
    warning = "warning: Snakemake's records of results/faults are gone from .snakemake/metadata"
    assert warning not in fresh.snakemake(*COMMAND).stdout
    assert warning not in fresh.snakemake(*COMMAND).stdout
    shutil.rmtree(fresh.folder / ".snakemake")
    whole = finished(fresh)
    text = fresh.snakemake(*COMMAND).stdout
    assert warning in text and "Nothing to be done" in text
    fresh.snakemake(*COMMAND, "--forceall")
    assert whole == finished(fresh) and tables(fresh) == expected
    assert warning not in fresh.snakemake(*COMMAND).stdout


def test_results_that_take_no_files(fresh, expected):
    results = fresh.folder / RESULTS
    results.mkdir()
    mounted("--bind", "-o", "ro", str(results), str(results))
    try:
        text = fresh.snakemake(*COMMAND, expect=1).stdout
    finally:
        subprocess.run(["umount", results], check=True)
    assert "error: results/faults takes no files: Read-only file system" in text
    assert "Traceback" not in text and not list(results.iterdir())
    fresh.snakemake(*COMMAND)
    assert tables(fresh) == expected
