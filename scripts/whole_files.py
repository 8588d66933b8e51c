"""Writing and reading files whole: an output appears complete or not at all, bytes repeat.

What later steps read has a receipt, its sha256 in the format of sha256sum, in the folder receipts/
beside it. So a flipped byte is noticed, named and made again, and gets into no table. Of the files
of a batch's cells, receipts.py vouches for all that a step wrote at once.
"""

import csv
import hashlib
import math
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import NoReturn
from zipfile import BadZipFile, ZipFile

import numpy as np

READ_LATER = (".csv", ".npz", ".png", ".whl")
"""Suffixes of what has a receipt: of a figure the PNG alone, and pages and logs have none."""

RUN_AT_WORK = Path(".snakemake", "causalrank", "id")
"""What $CAUSALRANK_RUN is in the steps of the run that is at work in this folder."""

_NOTED: ContextVar[dict[Path, str] | None] = ContextVar("noted", default=None)


def file_digest(path: Path) -> str:
    """SHA-256; hashlib.file_digest takes half as long again for a small file."""
    digest = hashlib.sha256()
    with path.open("rb", buffering=0) as file:
        while content := file.read(1 << 16):
            digest.update(content)
    return digest.hexdigest()


def receipt_of(path: Path) -> Path:
    return path.parent / "receipts" / f"{path.name}.sha256"


def _vouching(path: Path, digest: str) -> bytes:
    return f"{digest}  ".encode() + os.fsencode(path.name) + b"\n"


@contextmanager
def noted() -> Iterator[dict[Path, str]]:
    """Have the digests of files that are written meanwhile noted here, and not beside each.

    Of what is read meanwhile nothing is compared: the caller has.
    """
    digests: dict[Path, str] = {}
    token = _NOTED.set(digests)
    try:
        yield digests
    finally:
        _NOTED.reset(token)


def is_damaged(path: Path) -> bool:
    """Whether a file is there that is not what its receipt says; one without a receipt is whole."""
    try:
        return receipt_of(path).read_bytes() != _vouching(path, file_digest(path))
    except (FileNotFoundError, NotADirectoryError):
        return False


def intact(path: str | Path) -> Path:
    """The path of a file, if its bytes are those that were written; or else the step ends.

    A damaged file is set aside, and so Snakemake makes it anew. The receipt goes last: without it,
    the file would be believed.
    """
    path = Path(path)
    if _NOTED.get() is None:
        try:
            _require_no_folder(path)
            if is_damaged(path):
                aside = path.replace(path.with_name(f"{path.name}.damaged"))
                receipt_of(path).unlink(missing_ok=True)
                remedy = f"it is {aside.name} now: run the same command again, and it is made anew"
                fail(f"{path}: not the bytes that were written; {remedy}")
        except OSError as error:
            fail(f"{path}: {error.strerror}")
        if not path.exists():
            fail(f"{path}: there is no such file")
    return path


@contextmanager
def whole(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; rename it to `path` when the block succeeds.

    The name is unique, so two writers of one file cannot mix their bytes: the last rename wins.
    A killed writer leaves its `.part.*`, which the next run removes, and at worst an old file with
    a new receipt, which is made anew. A full disk or a folder that takes no files ends the step in
    one line.
    """
    path = Path(path)
    part = path.with_name(f".part.{path.stem}.{os.urandom(8).hex()}{path.suffix}")
    try:
        _require_no_folder(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield part
            _require_own_run(path)
            if path.suffix in READ_LATER:
                _vouch(path, file_digest(part))
            part.replace(path)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
    except OSError as error:
        fail(f"{path} cannot be written: {error}")


def _require_no_folder(path: Path) -> None:
    if path.is_dir():
        fail(f"{path}: a folder, where a file belongs; move it away and run again")


def _require_own_run(path: Path) -> None:
    """End a step that has outlived its run, if another run is at work: it is of what was before."""
    run = os.environ.get("CAUSALRANK_RUN")
    try:
        at_work = RUN_AT_WORK.read_text(encoding="utf-8")
    except OSError:
        return
    if run not in (None, at_work):
        fail(f"{path}: not written: the run of this step was killed, and another one is at work")


def _vouch(path: Path, digest: str) -> None:
    digests = _NOTED.get()
    if digests is not None:
        digests[path] = digest
        return
    with whole(receipt_of(path)) as part:
        part.write_bytes(_vouching(path, digest))


def save_arrays(path: str | Path, **arrays: np.ndarray) -> None:
    """Write an uncompressed .npz; numpy stamps every member with 1980-01-01, so bytes repeat."""
    with whole(path) as part, part.open("wb") as file:
        np.savez(file, **arrays)


def load_arrays(path: str | Path) -> dict[str, np.ndarray]:
    """Read an .npz without unpickling; a missing or damaged file ends the step, see `intact`.

    The arrays cannot be written to.
    """
    try:
        with ZipFile(intact(path)) as archive:
            return {
                name.removesuffix(".npy"): _array(archive.read(name)) for name in archive.namelist()
            }
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


def write_csv(path: str | Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write a table: floats with all their digits, None and NaN as an empty field."""
    with whole(path) as part, part.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        # NaN alone differs from itself; of all else csv writes str(), and of None nothing.
        writer.writerows([None if x != x else x for x in row] for row in rows)


def fail(message: str) -> NoReturn:
    """End the step with one line for its user."""
    print(f"error: {message}", file=sys.stderr)
    raise SystemExit(1)
