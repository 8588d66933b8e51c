"""Check a user's own q, k and v by the headers of their file, then write the source's file.

The file is a .npz (numpy.savez) or a .safetensors with q, k and, if wanted, v: arrays of shape
(members, N, d) or (N, d); v has as many members and rows, and columns of its own number, d_v.

Nothing is unpickled: the bytes of float arrays are all that is ever decoded. What a header promises
is held against the size of the file and the memory allowed before any memory is taken.
Formats: numpy.lib.format, and "Format" in the README of safetensors.

The workflow calls `inspect`, `check`, `digest` and `require_finite` before any job, so numpy is
imported where it is used. Every function raises UserFileError.
"""

import argparse
import hashlib
import io
import json
import math
import os
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np

ARRAYS = ("q", "k", "v")
SAFETENSORS = {  # dtype in the header: its name here, how numpy reads the bytes
    "F16": ("float16", "<f2"),
    "F32": ("float32", "<f4"),
    "F64": ("float64", "<f8"),
    "BF16": ("bfloat16", "<u2"),  # numpy has none of these three: see _decode
    "F8_E4M3": ("float8_e4m3fn", "u1"),
    "F8_E5M2": ("float8_e5m2", "u1"),
}
LONG = ("float96", "float128")  # numpy's long double, by its size in bits
ITEMSIZE = {name: int(code[-1]) for name, code in SAFETENSORS.values()} | dict(
    zip(LONG, (12, 16), strict=True)
)
NPY_HEADER = 1 << 14  # bytes: numpy's own limit of a header is 10000 characters
SAFETENSORS_HEADER = 1 << 24  # bytes
BLOCK = 1 << 20  # numbers decoded at a time
LONGEST = 1000  # characters of a message


class UserFileError(ValueError):
    """What is wrong with a file: one line that names it, whatever the file's own words hold."""

    def __init__(self, path: str | Path, what: str):
        message = f"{path}: {what}"
        shown = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in message[:LONGEST])
        super().__init__(shown + ("..." if len(message) > LONGEST else ""))


class Shape(NamedTuple):
    """What a file has: `d_v` is None without v; `dtype` lists the types, most often one."""

    members: int
    N: int
    d: int
    d_v: int | None
    dtype: str


class Stored(NamedTuple):
    """One array as a header describes it."""

    dtype: str
    code: str  # numpy's type string of the stored numbers
    shape: tuple[int, ...]
    fortran: bool  # the first axis varies fastest
    start: int  # where its numbers start, in the .npy inside the .npz or in the .safetensors
    room: int  # bytes that the file has for its numbers


def inspect(path: str | Path, memory_mb: float = math.inf) -> Shape:
    """Read the headers of a file and check all that they can tell.

    `memory_mb` is what q, k and v may take as float64 where they will be read, which need not be
    here: on a cluster, the driver of a run has less memory than its nodes.
    """
    arrays = _headers(path)
    for name, array in arrays.items():
        if array.dtype not in ITEMSIZE:
            raise UserFileError(
                path,
                f"{name} has type {array.dtype}; save it as float64 "
                "(any other float of numpy's is read too, or of a .safetensors' down to float8)",
            )
        if len(array.shape) not in (2, 3) or min(array.shape) < 1:
            width = "d_v" if name == "v" else "d"
            raise UserFileError(
                path,
                f"{name} has shape {array.shape}; "
                f"it must be (members, N, {width}) or (N, {width}), none of them 0",
            )
        if math.prod(array.shape) * ITEMSIZE[array.dtype] != array.room:
            raise UserFileError(
                path,
                f"{name} has shape {array.shape} of {array.dtype}, "
                f"but the file has {array.room} bytes for it; write the file again",
            )
    if Path(path).suffix == ".safetensors":
        in_order = sorted(arrays.items(), key=lambda item: item[1].start)
        for (name, array), (other, after) in pairwise(in_order):
            if array.start + array.room > after.start:
                raise UserFileError(path, f"{name} and {other} share bytes; write the file again")
    shapes = {name: _three(array.shape) for name, array in arrays.items()}
    if shapes["k"] != shapes["q"]:
        raise UserFileError(
            path, f"q has shape {arrays['q'].shape} and k {arrays['k'].shape}; they must be equal"
        )
    if "v" in shapes and shapes["v"][:2] != shapes["q"][:2]:
        raise UserFileError(
            path,
            f"q has shape {arrays['q'].shape} and v {arrays['v'].shape}; "
            "v must have as many members and rows as q",
        )
    needed = 8 * sum(map(math.prod, shapes.values()))
    if needed > memory_mb * 1e6:
        raise UserFileError(
            path,
            f"its arrays take {needed / 1e6:.6g} MB as float64, more than the "
            f"{memory_mb:.6g} MB allowed; keep fewer members or rows",
        )
    types = ", ".join(sorted({array.dtype for array in arrays.values()}))
    return Shape(*shapes["q"], shapes["v"][2] if "v" in shapes else None, types)


def check(path: str | Path, N: int, d: int) -> Shape:
    """Require that a cell (N, d) can be cut from the file: its d, and at least N rows."""
    shape = inspect(path)
    if shape.d != d:
        raise UserFileError(path, f"d = {d} is asked for, but its q and k have d = {shape.d}")
    if shape.N < N:
        raise UserFileError(path, f"N = {N} is asked for, but it has only N = {shape.N} rows")
    return shape


def digest(path: str | Path) -> str:
    """The sha256 of the file's bytes, in hexadecimal."""
    with _reading(path), Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def require_bytes(path: str | Path, sha256: str | None) -> None:
    """Raises ValueError for a file that has changed since its digest was taken."""
    if sha256 not in (None, digest(path)):
        raise ValueError(f"{path}: changed while the run was at work; run the same command again")


def require_finite(path: str | Path) -> None:
    """Name the first NaN or infinity in the file's order, a block of numbers in memory at a time.

    Any other damage of the numbers (a truncated or corrupted archive) raises here too.
    """
    import numpy as np

    inspect(path)
    for name, array in _headers(path).items():
        for start, values in _blocks(path, name, array):
            bad = np.flatnonzero(~np.isfinite(values))
            if bad.size:
                order = "F" if array.fortran else "C"
                place = np.unravel_index(start + bad[0], _three(array.shape), order=order)
                member, row, column = map(int, place)
                raise UserFileError(
                    path,
                    f"{name} is {values[bad[0]]} at member {member}, row {row}, "
                    f"column {column} (counted from 0); every number must be finite",
                )


def read(path: str | Path) -> "dict[str, np.ndarray]":
    """Read q, k (members, N, d) and, if it is there, v (members, N, d_v), as float64.

    Exact, except that a long double is rounded to the nearest.
    """
    import numpy as np

    inspect(path)
    result = {}
    for name, array in _headers(path).items():
        result[name] = np.empty(_three(array.shape))
        flat = result[name].T.flat if array.fortran else result[name].reshape(-1)
        for start, values in _blocks(path, name, array):
            flat[start : start + values.size] = values
    return result


def _three(shape: tuple[int, ...]) -> tuple[int, ...]:
    return shape if len(shape) == 3 else (1, *shape)


@contextmanager
def _reading(path: str | Path) -> Iterator[None]:
    """Name the file in whatever the readers of a damaged or hostile one raise."""
    try:
        os.fsencode(path)  # to Path.exists, a name beyond the locale's letters is a missing file
        if not Path(path).exists():
            raise ValueError("there is no such file")
        if not Path(path).is_file():
            raise ValueError("it is not a file")
        yield
    except Exception as error:  # zipfile and zlib raise many kinds
        raise UserFileError(path, str(error) or repr(error)) from error


def _headers(path: str | Path) -> dict[str, Stored]:
    """The headers of q, k and, if there, v."""
    with _reading(path):
        readers = {".npz": _npz, ".safetensors": _safetensors}
        if Path(path).suffix not in readers:
            raise ValueError("the name must end in .npz (numpy.savez) or .safetensors")
        names, arrays = readers[Path(path).suffix](path)
        missing = [name for name in ("q", "k") if name not in arrays]
        if missing:
            some = ", ".join(sorted(names)[:10]) or "nothing"
            more = f" and {len(names) - 10} more" if len(names) > 10 else ""
            raise ValueError(
                f"no array {' and '.join(missing)}; q, k and, if wanted, v must be there, "
                f"and the file has {some}{more}"
            )
    return arrays


def _npz(path: str | Path) -> tuple[list[str], dict[str, Stored]]:
    from numpy.lib import format as npy

    readers = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
    if not zipfile.is_zipfile(path):
        raise ValueError("not a .npz, or cut short; numpy.savez writes one")
    with zipfile.ZipFile(path) as archive:
        names = [name.removesuffix(".npy") for name in archive.namelist()]
        arrays = {}
        for name in filter(names.__contains__, ARRAYS):
            if names.count(name) > 1:
                raise ValueError(f"{name} appears twice; keep one of them")
            kind = archive.getinfo(f"{name}.npy").compress_type
            if kind not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise ValueError(f"{name} is compressed otherwise than by numpy.savez_compressed")
            with archive.open(f"{name}.npy") as member:
                head = io.BytesIO(member.read(NPY_HEADER))
            try:
                shape, fortran, dtype = readers[npy.read_magic(head)](head)
            except Exception as error:  # of any kind: ValueError, TokenError, MemoryError, ...
                raise ValueError(f"{name} has no header that numpy.savez writes") from error
            room = archive.getinfo(f"{name}.npy").file_size - head.tell()
            arrays[name] = Stored(dtype.name, dtype.str, shape, fortran, head.tell(), room)
    return names, arrays


def _safetensors(path: str | Path) -> tuple[list[str], dict[str, Stored]]:
    with Path(path).open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        room = os.fstat(file.fileno()).st_size - 8 - length
        if room < 0 or length > SAFETENSORS_HEADER:
            raise ValueError(f"not a .safetensors, or cut short: header of {length} bytes")
        try:
            header = json.loads(file.read(length), object_pairs_hook=_each_once)
        except (ValueError, RecursionError):
            header = None
    if not isinstance(header, dict):
        raise ValueError("not a .safetensors: its header is not a JSON object")
    header.pop("__metadata__", None)
    arrays = {}
    for name in filter(header.__contains__, ARRAYS):
        try:
            dtype, shape = header[name]["dtype"], header[name]["shape"]
            begin, end = header[name]["data_offsets"]
        except (KeyError, TypeError, ValueError):
            raise ValueError(f"{name} needs dtype, shape and data_offsets in the header") from None
        if not all(type(number) is int for number in (*shape, begin, end)):
            raise ValueError(f"{name} has a shape or data_offsets that are not integers")
        if not 0 <= begin <= end <= room:
            raise ValueError(f"{name} has data_offsets {begin}, {end}; the file has {room} bytes")
        dtype, code = SAFETENSORS.get(str(dtype), (str(dtype), ""))
        arrays[name] = Stored(dtype, code, tuple(shape), False, 8 + length + begin, end - begin)
    return list(header), arrays


def _each_once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """A JSON object. Of two arrays of one name either may be meant, so LookupError refuses both."""
    keys = [key for key, _ in pairs]
    repeated = [name for name in ARRAYS if keys.count(name) > 1]
    if repeated:
        raise LookupError(f"{repeated[0]} appears twice; keep one of them")
    return dict(pairs)


@contextmanager
def _numbers(path: str | Path, name: str, array: Stored) -> Iterator[IO[bytes]]:
    """Open the stream of an array's numbers."""
    if Path(path).suffix == ".npz":
        with zipfile.ZipFile(path) as archive, archive.open(f"{name}.npy") as stream:
            stream.read(array.start)  # not seek, which may switch the check sum off
            yield stream
    else:
        with Path(path).open("rb") as stream:
            stream.seek(array.start)
            yield stream


def _blocks(path: str | Path, name: str, array: Stored) -> "Iterator[tuple[int, np.ndarray]]":
    """Yield (place of the first, numbers) for blocks of an array, in the file's order."""
    import numpy as np

    with _reading(path), _numbers(path, name, array) as stream:
        size, itemsize = math.prod(array.shape), ITEMSIZE[array.dtype]
        for start in range(0, size, BLOCK):
            wanted = itemsize * min(BLOCK, size - start)
            raw = stream.read(wanted)
            if len(raw) < wanted:
                raise ValueError(f"{name} is cut short; write the file again")
            yield start, _decode(np.frombuffer(raw, array.code), array.dtype)


def _decode(stored: "np.ndarray", dtype: str) -> "np.ndarray":
    """Stored numbers, shape (n,), as floats of a type that a float64 holds.

    float8 as in Micikevicius et al. (2022), "FP8 formats for deep learning", table 1.
    """
    import numpy as np

    if dtype == "bfloat16":  # the upper half of a float32
        return (stored.astype(np.uint32) << 16).view(np.float32)
    if dtype == "float8_e5m2":  # the upper half of a float16
        return (stored.astype(np.uint16) << 8).view(np.float16)
    if dtype == "float8_e4m3fn":  # bias 7, no infinity, one NaN of each sign
        exponent, fraction = (stored >> 3 & 15).astype(int), (stored & 7).astype(float)
        size = np.ldexp(fraction + 8 * (exponent > 0), np.maximum(exponent, 1) - 10)
        size[stored & 127 == 127] = np.nan
        return np.where(stored >> 7, -size, size)
    if dtype in LONG:
        with np.errstate(over="ignore"):  # an infinity is refused where it stands
            return stored.astype(np.float64)
    return stored


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--input", required=True, help="the user's .npz or .safetensors")
    parser.add_argument("--sha256", help="what its bytes are to be, before and after")
    parser.add_argument("--output", required=True, help="the source's .npz to write")
    machine_mb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e6
    words = "memory allowed (default: the machine's)"
    parser.add_argument("--memory-mb", type=float, default=machine_mb, help=words)
    args = parser.parse_args()

    from whole_files import fail, save_arrays

    try:
        inspect(args.input, args.memory_mb)
        require_bytes(args.input, args.sha256)
        require_finite(args.input)
        arrays = read(args.input)
        require_bytes(args.input, args.sha256)
        save_arrays(args.output, **arrays)
    except (ValueError, OSError) as error:
        fail(str(error))


if __name__ == "__main__":
    main()
