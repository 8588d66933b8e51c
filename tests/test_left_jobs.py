"""Which jobs of the queue are taken for those of a killed run, and what happens if they stay."""

import os
from pathlib import Path

import pytest

import left_jobs

SQUEUE = 'cat "$(dirname "$0")/queue"'
SCANCEL = 'echo "$@" >> "$(dirname "$0")/cancelled"'


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of commands in front of PATH, where `queue` is what squeue prints."""
    folder = tmp_path / "slurm"
    folder.mkdir()
    emptied = f'{SCANCEL}; : > "$(dirname "$0")/queue"'
    write(folder, squeue=SQUEUE, scancel=emptied)
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)
    return folder


def write(folder: Path, **commands: str) -> None:
    for name, line in commands.items():
        (folder / name).write_text(f"#!/bin/sh\n{line}\n", encoding="utf-8")
        (folder / name).chmod(0o755)


def test_only_jobs_of_this_folder_and_prefix_are_cancelled(slurm, tmp_path, capsys):
    here, other = tmp_path / "a | b", tmp_path / "other"
    jobs = [f"1|run_a|{here}", f"2|run_a|{other}", f"3|mine|{here}", f"4|run_b|{here}/"]
    (slurm / "queue").write_text("".join(f"{job}\n" for job in jobs), encoding="utf-8")
    left_jobs.cancel(here, "run")
    assert (slurm / "cancelled").read_text(encoding="utf-8") == "1 4\n"
    assert capsys.readouterr().err.endswith(": 1 4\n")


def test_a_run_that_was_killed_is_known_by_its_prefix(slurm, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (slurm / "queue").write_text(f"1|run_a|{tmp_path}\n2|other_a|{tmp_path}\n", encoding="utf-8")
    left_jobs.cancel_expected()
    assert not (slurm / "cancelled").exists()
    left_jobs.expect("run")
    left_jobs.cancel_expected()
    assert (slurm / "cancelled").read_text(encoding="utf-8") == "1\n"
    assert not left_jobs.PREFIX.exists()


def test_where_slurm_is_gone_a_line_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    left_jobs.expect("run")
    with pytest.raises(
        left_jobs.CannotCancel, match=f"squeue: No such .* delete {left_jobs.PREFIX}"
    ):
        left_jobs.cancel_expected()
    assert left_jobs.PREFIX.exists()


def test_an_empty_queue_needs_no_cancelling(slurm, tmp_path):
    (slurm / "queue").touch()
    left_jobs.cancel(tmp_path, "run")
    assert not (slurm / "cancelled").exists()


def test_jobs_that_stay_are_named(slurm, tmp_path, monkeypatch):
    write(slurm, scancel=SCANCEL)
    (slurm / "queue").write_text(f"7|run_a|{tmp_path}\n", encoding="utf-8")
    monkeypatch.setattr(left_jobs, "PATIENCE", 0.0)
    with pytest.raises(left_jobs.CannotCancel, match=r"do not end: scancel 7$"):
        left_jobs.cancel(tmp_path, "run")


def test_a_silent_slurm_is_an_error_of_one_line(slurm, tmp_path):
    write(slurm, squeue="printf 'no\\nanswer\\n' >&2; exit 1")
    with pytest.raises(left_jobs.CannotCancel, match=r"^squeue: no answer$"):
        left_jobs.cancel(tmp_path, "run")


def test_no_slurm_is_an_error_of_one_line(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(left_jobs.CannotCancel, match=r"^squeue: No such file"):
        left_jobs.cancel(tmp_path, "run")
