"""One run at a time in a folder, by a lock that the kernel releases when its process dies.

Snakemake's own lock outlives a killed run and then refuses the command that would resume it, so the
default profile turns it off.
"""

import fcntl
import os
import sys
from pathlib import Path
from typing import TextIO

_held: list[TextIO] = []


class AnotherRun(Exception):
    """The folder belongs to a run that is still going on."""


def release() -> None:
    """Let others hold what this process does."""
    while _held:
        _held.pop().close()


def hold(path: Path) -> None:
    """Hold `path` until the process ends, or releases it.

    Raises AnotherRun when another process holds it. Where the file system has no locks, says so.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    file = path.open("a+", encoding="utf-8")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.seek(0)
        holder = file.read().strip() or "unknown"
        raise AnotherRun(
            f"another run (process {holder}) is at work in this folder; wait for it, or end it"
        ) from None
    except OSError as error:
        reason = f"{path} cannot be locked: {error.strerror}"
        print(f"warning: {reason}; start no second run in this folder", file=sys.stderr)
    file.truncate(0)
    file.write(str(os.getpid()))
    file.flush()
    _held.append(file)
