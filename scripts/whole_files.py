"""Writing and reading files whole: an output appears complete or not at all, bytes repeat."""

import csv
import math
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn
from zipfile import BadZipFile

import numpy as np


@contextmanager
def whole(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; rename it to `path` when the block succeeds.

    The name is unique, so two writers of one file cannot mix their bytes: the last rename wins.
    A killed writer leaves its `.part.*`, which the next run removes. A full disk or a folder that
    takes no files ends the step in one line.
    """
    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(
            prefix=f".part.{path.stem}.", suffix=path.suffix, dir=path.parent
        )
        os.close(handle)
        try:
            yield Path(name)
            umask = os.umask(0)
            os.umask(umask)
            Path(name).chmod(0o666 & ~umask)
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        fail(f"{path} cannot be written: {error}")


def save_arrays(path: str | Path, **arrays: np.ndarray) -> None:
    """Write an uncompressed .npz; numpy stamps every member with 1980-01-01, so bytes repeat."""
    with whole(path) as part, part.open("wb") as file:
        np.savez(file, **arrays)


def load_arrays(path: str | Path) -> dict[str, np.ndarray]:
    """Read an .npz without unpickling; a missing or damaged file ends the step."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except FileNotFoundError:
        fail(f"{path}: there is no such file")
    except (OSError, ValueError, EOFError, BadZipFile) as error:
        fail(f"{path}: damaged ({error}); delete the file and run again")


def _field(value: object) -> object:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, float):
        return repr(float(value))
    return value


def write_csv(path: str | Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write a table: floats with all their digits, None and NaN as an empty field."""
    with whole(path) as part, part.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows([_field(value) for value in row] for row in rows)


def fail(message: str) -> NoReturn:
    """End the step with one line for its user."""
    print(f"error: {message}", file=sys.stderr)
    raise SystemExit(1)
