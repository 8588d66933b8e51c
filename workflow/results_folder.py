"""The folder that a run writes to: whether it takes files, and what earlier runs left there."""

import os
import tempfile
import time
from contextlib import suppress
from pathlib import Path


class NotWritable(Exception):
    """The folder takes no files."""


def prepare(folder: Path) -> None:
    """Make the folder if need be, and remove the parts of files whose writers were killed.

    Files from the future, of a clock that has gone back since, become files of now: Snakemake
    refuses what a job makes of an input that is newer.

    Raises NotWritable, so that a run stops before its first job and not at every one.
    """
    now = time.time()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
        for parent, _, names in os.walk(folder):
            for path in (Path(parent, name) for name in names):
                with suppress(FileNotFoundError):  # of a job that outlived its run
                    if path.name.startswith(".part."):
                        path.unlink()
                    elif path.lstat().st_mtime > now:
                        os.utime(path, follow_symlinks=False)
    except OSError as error:
        reason = error.strerror
        raise NotWritable(f"{folder} takes no files: {reason}; mend that and run again") from None


def shortage(folder: Path) -> str:
    """What keeps the folder from taking a megabyte, in one line, or nothing.

    On a full disk the log of a job that failed for it may have had no room for that.
    """
    try:
        with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
            left = 2**20
            while left:
                left -= file.write(bytes(left))
    except OSError as error:
        return f"error: {folder} cannot be written: {error}\n"
    return ""
