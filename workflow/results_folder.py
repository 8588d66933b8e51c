"""The folder that a run writes to: whether it takes files, and what killed writers left there."""

import tempfile
from pathlib import Path


class NotWritable(Exception):
    """The folder takes no files."""


def prepare(folder: Path) -> None:
    """Make the folder if need be, and remove the parts of files whose writers were killed.

    Raises NotWritable, so that a run stops before its first job and not at every one.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        reason = error.strerror
        raise NotWritable(f"{folder} takes no files: {reason}; mend that and run again") from None
    for part in folder.rglob(".part.*"):
        part.unlink(missing_ok=True)
