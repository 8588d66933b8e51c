"""The Slurm jobs that a killed Snakemake leaves behind, cancelled before the next run plans.

Slurm knows a job's name, which Snakemake makes of a prefix and a number of the run, and the folder
that it was submitted in. Whoever holds the folder's lock knows that no run of it is going on.
"""

import getpass
import subprocess
import sys
import time
from pathlib import Path

PATIENCE = 120.0
"""Seconds that jobs may take to end: Slurm first asks them to, and waits for KillWait."""


PREFIX = Path(".snakemake", "causalrank", "slurm")
"""Of the jobs of the last run on Slurm in this folder, unless it has ended by itself."""


class CannotCancel(Exception):
    """Jobs of an earlier run are at work, or might be."""


def expect(prefix: str) -> None:
    """Have the next run look for jobs with that prefix, if this one is killed."""
    PREFIX.parent.mkdir(parents=True, exist_ok=True)
    PREFIX.write_text(prefix, encoding="utf-8")


def cancel_expected() -> None:
    """Cancel the jobs in the current folder of a run that was killed, if one was."""
    if PREFIX.exists():
        try:
            cancel(Path.cwd(), PREFIX.read_text(encoding="utf-8"))
        except CannotCancel as error:
            raise CannotCancel(f"{error}; where no such job can be, delete {PREFIX}") from None
        PREFIX.unlink()


def cancel(folder: Path, prefix: str) -> None:
    """Cancel this user's jobs that were submitted in `folder` by a run with that prefix, and wait.

    Raises CannotCancel when Slurm does not answer, or jobs do not end.
    """
    jobs = _left(folder, prefix)
    if not jobs:
        return
    print(f"cancelling the jobs that an earlier run left: {' '.join(jobs)}", file=sys.stderr)
    deadline = time.monotonic() + PATIENCE
    _answer(["scancel", *jobs])
    while jobs and time.monotonic() < deadline:
        time.sleep(0.5)
        jobs = _left(folder, prefix)
    if jobs:
        raise CannotCancel(f"jobs of an earlier run do not end: scancel {' '.join(jobs)}")


def _left(folder: Path, prefix: str) -> list[str]:
    lines = _answer(["squeue", "--noheader", "--user", getpass.getuser(), "--format=%A|%j|%Z"])
    fields = [line.split("|", 2) for line in lines.splitlines()]
    return [
        job
        for job, name, submitted_in in fields
        if name.startswith(f"{prefix}_") and Path(submitted_in).resolve() == folder.resolve()
    ]


def _answer(command: list[str]) -> str:
    try:
        run = subprocess.run(command, capture_output=True, text=True)
    except OSError as error:
        raise CannotCancel(f"{command[0]}: {error.strerror}") from None
    if run.returncode:
        raise CannotCancel(f"{command[0]}: {' '.join(run.stderr.split())}")
    return run.stdout
