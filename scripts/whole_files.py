"""Writing and reading files whole: an output appears complete or not at all, bytes repeat."""

import csv
import math
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import NoReturn
from zipfile import BadZipFile, ZipFile

import numpy as np


@contextmanager
def whole(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; rename it to `path` when the block succeeds.

    The name is unique, so two writers of one file cannot mix their bytes: the last rename wins.
    A killed writer leaves its `.part.*`, which the next run removes. A full disk or a folder that
    takes no files ends the step in one line.
    """
    path = Path(path)
    part = path.with_name(f".part.{path.stem}.{os.urandom(8).hex()}{path.suffix}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield part
            part.replace(path)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
    except OSError as error:
        fail(f"{path} cannot be written: {error}")


def save_arrays(path: str | Path, **arrays: np.ndarray) -> None:
    """Write an uncompressed .npz; numpy stamps every member with 1980-01-01, so bytes repeat."""
    with whole(path) as part, part.open("wb") as file:
        np.savez(file, **arrays)


def load_arrays(path: str | Path) -> dict[str, np.ndarray]:
    """Read an .npz without unpickling; a missing or damaged file ends the step.

    The arrays cannot be written to.
    """
    try:
        with ZipFile(path) as archive:
            return {
                name.removesuffix(".npy"): _array(archive.read(name)) for name in archive.namelist()
            }
    except FileNotFoundError:
        fail(f"{path}: there is no such file")
    except (OSError, ValueError, EOFError, BadZipFile) as error:
        fail(f"{path}: damaged ({error}); delete the file and run again")


def _array(content: bytes) -> np.ndarray:
    """What np.load makes of a member, in a quarter of the time where many have the same header."""
    length = 10 + int.from_bytes(content[8:10], "little")
    shape, fortran_order, dtype = _header(content[:length])
    array = np.frombuffer(content, dtype, math.prod(shape), length)
    return array.reshape(shape, order="F" if fortran_order else "C")


@cache
def _header(content: bytes) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Shape, Fortran order and type that numpy wrote, in the first version of its format."""
    file = BytesIO(content)
    if np.lib.format.read_magic(file) != (1, 0):
        raise ValueError("written in another version of the format")
    shape, fortran_order, dtype = np.lib.format.read_array_header_1_0(file)
    if dtype.hasobject:
        raise ValueError("objects are not loaded: allow_pickle=False")
    return shape, fortran_order, dtype


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
