"""A user's own file: what is read is exact, what is wrong is said in one line before any job."""

import hashlib
import json
import math
import os
import pickle
import struct
import subprocess
import sys
import time
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from safetensors.numpy import save_file

import read_user_file as user

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = ROOT / "scripts" / "read_user_file.py"


def numbers(*shape, dtype=np.float64, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def write(path, **content):
    if path.suffix == ".npz":
        np.savez(path, **content)
    else:
        save_file({name: np.asarray(x, order="C") for name, x in content.items()}, path)
    return path


def write_npz_raw(path, **members):
    """An archive of .npy members made by hand: header as given, then the bytes."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, (header, data) in members.items():
            text = repr(header).encode() + b"\n"
            magic = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text))
            archive.writestr(f"{name}.npy", magic + text + data)
    return path


def write_safetensors_raw(path, header, data=b""):
    text = json.dumps(header).encode() if not isinstance(header, bytes) else header
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return path


def error(function, path, *arguments):
    with pytest.raises(ValueError) as caught:
        function(path, *arguments)
    message = str(caught.value)
    assert message.startswith(f"{path}: ") and "\n" not in message
    return message


@pytest.fixture(params=[".npz", ".safetensors"])
def heads(request, tmp_path):
    return tmp_path / f"heads{request.param}"


# What is read


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_three_axes_and_v_of_its_own_width(heads, dtype):
    q, k, v = numbers(3, 5, 4, dtype=dtype), numbers(3, 5, 4, dtype=dtype), numbers(3, 5, 7)
    write(heads, q=q, k=k, v=v.astype(dtype), other=np.arange(3))
    assert user.inspect(heads) == (3, 5, 4, 7, dtype)
    user.require_finite(heads)
    result = user.read(heads)
    assert list(result) == ["q", "k", "v"]
    assert all(x.dtype == np.float64 and x.flags.c_contiguous for x in result.values())
    np.testing.assert_array_equal(result["q"], q.astype(np.float64))
    np.testing.assert_array_equal(result["v"], v.astype(dtype).astype(np.float64))


def test_two_axes_are_one_member_and_v_is_optional(heads):
    q = numbers(6, 2)
    write(heads, q=q, k=-q)
    assert user.inspect(heads) == (1, 6, 2, None, "float64")
    result = user.read(heads)
    assert set(result) == {"q", "k"}
    np.testing.assert_array_equal(result["k"], -q[None])


def test_types_may_differ(heads):
    write(heads, q=numbers(6, 2, dtype="float16"), k=numbers(6, 2, dtype="float64"))
    assert user.inspect(heads).dtype == "float16, float64"


@given(
    st.data(),
    st.sampled_from(["<f2", "<f4", "<f8", ">f2", ">f4", ">f8"]),
    arrays.array_shapes(min_dims=2, max_dims=3, max_side=6),
    st.booleans(),
    st.booleans(),
    st.sampled_from([1, 4, 1 << 20]),
)
def test_npz_round_trip(tmp_path_factory, data, dtype, shape, fortran, compressed, block):
    """Any byte order, memory order, compression, and blocks that end inside a row."""
    finite = {"allow_nan": False, "allow_infinity": False}
    q, k = (data.draw(arrays.arrays(dtype, shape, elements=finite)) for _ in "qk")
    if fortran:
        q, k = np.asfortranarray(q), np.asfortranarray(k)
    path = tmp_path_factory.mktemp("npz") / "heads.npz"
    (np.savez_compressed if compressed else np.savez)(path, q=q, k=k)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(user, "BLOCK", block)
        user.require_finite(path)
        result = user.read(path)
    for given_array, name in ((q, "q"), (k, "k")):
        expected = given_array.astype(np.float64).reshape(-1, *shape[-2:])
        np.testing.assert_array_equal(result[name], expected)
        np.testing.assert_array_equal(np.signbit(result[name]), np.signbit(expected))


@given(
    st.lists(
        st.integers(0, 0xFFFF).filter(lambda bits: bits & 0x7F80 != 0x7F80), min_size=2, max_size=50
    )
)
def test_bfloat16_is_exact(tmp_path_factory, bits):
    """Against the standard: sign, exponent and 7 bits of fraction, evaluated in Python."""
    path = tmp_path_factory.mktemp("bf16") / "heads.safetensors"
    data = struct.pack(f"<{len(bits)}H", *bits)
    entry = {"dtype": "BF16", "shape": [len(bits), 1]}
    header = {
        "q": {**entry, "data_offsets": [0, len(data)]},
        "k": {**entry, "data_offsets": [len(data), 2 * len(data)]},
    }
    write_safetensors_raw(path, header, data + data)
    for pattern, value in zip(bits, user.read(path)["k"][0, :, 0], strict=True):
        exponent, fraction = pattern >> 7 & 0xFF, pattern & 0x7F
        expected = math.ldexp(fraction + (128 if exponent else 0), max(exponent, 1) - 127 - 7)
        assert value == (-expected if pattern >> 15 else expected)


def test_bfloat16_is_the_upper_half_of_a_float32(tmp_path):
    exact = numbers(2, 3, 4, dtype="<f4").view("<u4") & 0xFFFF0000
    data = (exact >> 16).astype("<u2").tobytes()
    entry = {"dtype": "BF16", "shape": [2, 3, 4]}
    header = {
        "__metadata__": {"format": "pt"},
        "k": {**entry, "data_offsets": [0, 48]},
        "q": {**entry, "data_offsets": [48, 96]},
    }
    path = write_safetensors_raw(tmp_path / "heads.safetensors", header, data + data)
    assert user.inspect(path) == (2, 3, 4, None, "bfloat16")
    np.testing.assert_array_equal(user.read(path)["q"], exact.view("<f4").astype(np.float64))


# Of float8, all numbers: sign, exponent and fraction evaluated in Python; the extremes are those of
# table 1 in Micikevicius et al. (2022).
@pytest.mark.parametrize(
    ("dtype", "fraction_bits", "bias", "finite", "largest", "smallest"),
    [
        ("F8_E4M3", 3, 7, 127, 448.0, 2.0**-9),
        ("F8_E5M2", 2, 15, 124, 57344.0, 2.0**-16),
    ],
)
def test_float8_is_exact(tmp_path, dtype, fraction_bits, bias, finite, largest, smallest):
    patterns = [sign << 7 | size for sign in (0, 1) for size in range(finite)]
    data = bytes(patterns)
    entry = {"dtype": dtype, "shape": [len(data), 1]}
    header = {
        "q": {**entry, "data_offsets": [0, len(data)]},
        "k": {**entry, "data_offsets": [len(data), 2 * len(data)]},
    }
    path = write_safetensors_raw(tmp_path / "heads.safetensors", header, data + data)
    user.require_finite(path)
    q = user.read(path)["q"][0, :, 0]
    for pattern, value in zip(patterns, q, strict=True):
        exponent = (pattern & 127) >> fraction_bits
        fraction = pattern & ((1 << fraction_bits) - 1)
        hidden = (1 << fraction_bits) if exponent else 0
        expected = math.ldexp(fraction + hidden, max(exponent, 1) - bias - fraction_bits)
        assert value == (-expected if pattern >> 7 else expected)
        assert math.copysign(1, value) == (-1 if pattern >> 7 else 1)
    assert (q.max(), q[q > 0].min()) == (largest, smallest)


@pytest.mark.parametrize(
    ("dtype", "pattern", "value"),
    [("F8_E4M3", 0x7F, "nan"), ("F8_E4M3", 0xFF, "nan"), ("F8_E5M2", 0x7C, "inf")],
)
def test_float8_that_is_no_number(tmp_path, dtype, pattern, value):
    entry = {"dtype": dtype, "shape": [2, 2], "data_offsets": [0, 4]}
    header = {"q": entry, "k": {**entry, "data_offsets": [4, 8]}}
    data = bytes([0, 0, pattern, 0, 0, 0, 0, 0])
    path = write_safetensors_raw(tmp_path / "heads.safetensors", header, data)
    assert f"q is {value} at member 0, row 1, column 0" in error(user.require_finite, path)


def test_long_double_is_rounded_to_nearest(tmp_path):
    q = np.array([[1, 3], [-5, 7]], np.longdouble) / 3
    path = write(tmp_path / "heads.npz", q=q, k=np.asfortranarray(q))
    assert user.inspect(path).dtype == np.dtype(np.longdouble).name
    user.require_finite(path)
    expected = [[[1 / 3, 1.0], [-5 / 3, 7 / 3]]]
    for name in ("q", "k"):
        np.testing.assert_array_equal(user.read(path)[name], expected)


@pytest.mark.skipif(
    np.finfo(np.longdouble).maxexp == 1024, reason="long double is float64 on this machine"
)
def test_long_double_beyond_float64_is_refused(tmp_path):
    q = np.ones((2, 2), np.longdouble)
    q[1, 0] = np.longdouble(2) ** 1024
    path = write(tmp_path / "heads.npz", q=q, k=q)
    assert "q is inf at member 0, row 1, column 0" in error(user.require_finite, path)


def test_digest(heads):
    write(heads, q=numbers(6, 2), k=numbers(6, 2))
    assert user.digest(heads) == hashlib.sha256(heads.read_bytes()).hexdigest()


def test_check(heads):
    write(heads, q=numbers(2, 6, 3), k=numbers(2, 6, 3))
    assert user.check(heads, N=6, d=3) == user.check(heads, N=4, d=3) == user.inspect(heads)
    assert "d = 2 is asked for, but its q and k have d = 3" in error(user.check, heads, 6, 2)
    assert "N = 7 is asked for, but it has only N = 6 rows" in error(user.check, heads, 7, 3)


def test_import_leaves_numpy_alone():
    code = "import read_user_file, sys; sys.exit('numpy' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], cwd=SCRIPT.parent, check=True)


# What the headers tell is wrong


@pytest.mark.parametrize("function", [user.inspect, user.read, user.require_finite, user.digest])
def test_no_file(tmp_path, function):
    assert "no such file" in error(function, tmp_path / "heads.npz")
    (tmp_path / "folder.npz").mkdir()
    assert "not a file" in error(function, tmp_path / "folder.npz")


def test_other_formats(tmp_path):
    path = tmp_path / "heads.npy"
    np.save(path, numbers(3, 2))
    assert "must end in .npz (numpy.savez) or .safetensors" in error(user.inspect, path)
    assert "not a .npz" in error(user.inspect, path.rename(tmp_path / "heads.npz"))
    (tmp_path / "heads.safetensors").write_bytes((tmp_path / "heads.npz").read_bytes())
    assert "not a .safetensors" in error(user.inspect, tmp_path / "heads.safetensors")


def test_missing_arrays(heads):
    write(heads, q=numbers(3, 2), keys=numbers(3, 2))
    message = error(user.inspect, heads)
    assert "no array k;" in message and "the file has keys, q" in message
    path = write_safetensors_raw(heads.with_suffix(".safetensors"), {"__metadata__": {"a": "b"}})
    assert error(user.inspect, path).endswith("the file has nothing")
    write(heads, **{f"layer{i}": numbers(3, 2) for i in range(30)})
    message = error(user.inspect, heads)
    assert "no array q and k;" in message and message.endswith("and 20 more")


@pytest.mark.parametrize(
    "shape", [(), (6,), (1, 2, 6, 2), (0, 6, 2), (2, 0, 2), (2, 6, 0)], ids=repr
)
def test_wrong_axes(heads, shape):
    write(heads, q=np.zeros(shape), k=np.zeros(shape))
    assert f"q has shape {shape}; it must be (members, N, d)" in error(user.inspect, heads)


def test_wrong_axes_of_v(heads):
    write(heads, q=numbers(3, 2), k=numbers(3, 2), v=numbers(3))
    assert "v has shape (3,); it must be (members, N, d_v)" in error(user.inspect, heads)


@pytest.mark.parametrize("shape", [(2, 6, 3), (2, 5, 2), (1, 6, 2), (6, 2)], ids=repr)
def test_k_of_another_shape(heads, shape):
    write(heads, q=numbers(2, 6, 2), k=numbers(*shape))
    assert f"q has shape (2, 6, 2) and k {shape}; they must" in error(user.inspect, heads)


@pytest.mark.parametrize("shape", [(3, 6, 2), (2, 5, 2), (6, 2)], ids=repr)
def test_v_of_other_members_or_rows(heads, shape):
    write(heads, q=numbers(2, 6, 2), k=numbers(2, 6, 2), v=numbers(*shape))
    assert f"v {shape}; v must have as many members and rows" in error(user.inspect, heads)


@pytest.mark.parametrize("dtype", ["int64", "uint8", "bool", "complex64"])
def test_not_a_float(heads, dtype):
    q = np.ones((6, 2), dtype)
    write(heads, q=q, k=q)
    message = error(user.inspect, heads)
    assert "q has type" in message and "save it as float64" in message


@pytest.mark.parametrize("dtype", ["clongdouble", "V2", "U4", "f4,f4"])
def test_not_a_float_in_npz(tmp_path, dtype):
    q = np.zeros((6, 2), dtype)
    assert "q has type" in error(user.inspect, write(tmp_path / "heads.npz", q=q, k=q))


@pytest.mark.parametrize("dtype", ["F8_E8M0", "F4"])
def test_other_small_floats_ask_to_convert(tmp_path, dtype):
    entry = {"dtype": dtype, "shape": [2, 2], "data_offsets": [0, 4]}
    header = {"q": entry, "k": entry}
    path = write_safetensors_raw(tmp_path / "heads.safetensors", header, bytes(4))
    assert f"q has type {dtype}; save it as float64" in error(user.inspect, path)


class Payload:
    def __init__(self, trace):
        self.trace = trace

    def __reduce__(self):
        return Path.write_text, (self.trace, "it ran")


@pytest.mark.parametrize("function", [user.inspect, user.read, user.require_finite])
def test_pickles_are_refused_and_do_not_run(tmp_path, function):
    trace = tmp_path / "trace"
    q = np.array([[Payload(trace)]], dtype=object)
    path = write(tmp_path / "heads.npz", q=q, k=q)
    assert "q has type object" in error(function, path)
    disguised = {"descr": "<f8", "fortran_order": False, "shape": (4, 2)}
    data = pickle.dumps(q)
    member = (disguised, data)
    assert "q has shape" in error(
        function, write_npz_raw(tmp_path / "disguised.npz", q=member, k=member)
    )
    assert not trace.exists()
    pickle.loads(data)  # the payload is a live one
    assert trace.read_text() == "it ran"


HUGE = (1 << 20, 1 << 20, 10)  # 10 * 2^40 numbers


@pytest.mark.parametrize("function", [user.inspect, user.read, user.require_finite])
def test_promises_of_terabytes_take_no_memory(tmp_path, function):
    npy = ({"descr": "<f8", "fortran_order": False, "shape": HUGE}, bytes(100))
    entry = {"dtype": "F64", "shape": HUGE, "data_offsets": [0, 100]}
    honest_offsets = {**entry, "data_offsets": [0, 8 * math.prod(HUGE)]}
    paths = {
        write_npz_raw(tmp_path / "heads.npz", q=npy, k=npy): "the file has 100 bytes for it",
        write_safetensors_raw(
            tmp_path / "a.safetensors", {"q": entry, "k": entry}, bytes(100)
        ): "the file has 100 bytes for it",
        write_safetensors_raw(
            tmp_path / "b.safetensors", {"q": honest_offsets, "k": honest_offsets}, bytes(100)
        ): "the file has 100 bytes",
    }
    (tmp_path / "c.safetensors").write_bytes((1 << 43).to_bytes(8, "little") + b"{}")
    paths[tmp_path / "c.safetensors"] = "header of 8796093022208 bytes"
    with (tmp_path / "d.safetensors").open("wb") as file:  # sparse: the header is really there
        file.write((1 << 25).to_bytes(8, "little"))
        file.truncate(1 << 26)
    paths[tmp_path / "d.safetensors"] = "header of 33554432 bytes"
    with zipfile.ZipFile(tmp_path / "d.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        header = b"\x93NUMPY\x02\x00" + (1 << 25).to_bytes(4, "little") + b" " * (1 << 25)
        archive.writestr("q.npy", header)
        archive.writestr("k.npy", header)
    paths[tmp_path / "d.npz"] = "q has no header that numpy.savez writes"
    error(function, tmp_path / "c.safetensors")  # numpy is imported before the measurement
    tracemalloc.start()
    start = time.perf_counter()
    for path, message in paths.items():
        assert message in error(function, path)
    seconds, (_, peak) = time.perf_counter() - start, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert seconds < 1 and peak < 5e6


def forge_size(path, size):
    """Promise `size` bytes for every member in the archive's directory (zip64 is not needed)."""
    content = bytearray(path.read_bytes())
    place = content.find(b"PK\x01\x02")
    while place >= 0:
        content[place + 24 : place + 28] = size.to_bytes(4, "little")
        place = content.find(b"PK\x01\x02", place + 4)
    path.write_bytes(content)


def test_a_directory_that_lies_with_the_header(tmp_path):
    header = {"descr": "<f8", "fortran_order": False, "shape": (1, 1 << 20, 8)}
    path = write_npz_raw(tmp_path / "heads.npz", q=(header, bytes(800)), k=(header, bytes(800)))
    forge_size(path, 10 + len(repr(header)) + 1 + (1 << 26))
    assert user.inspect(path).N == 1 << 20  # all that the headers tell is consistent
    error(user.require_finite, path)
    error(user.read, path)


def test_memory_allowed(heads):
    """A file that decompresses to more than the allowance is refused by its headers."""
    q = np.zeros((10, 1000, 50), np.float32)  # 4 MB as float64
    write(heads, q=q, k=q)
    if heads.suffix == ".npz":
        np.savez_compressed(heads, q=q, k=q)
        assert heads.stat().st_size < 1e5
    assert user.inspect(heads, memory_mb=8).members == 10
    message = error(user.inspect, heads, 7.9)
    assert "its arrays take 8 MB as float64, more than the 7.9 MB allowed" in message


def test_only_the_step_asks_for_the_memory_of_its_machine(tmp_path):
    """A driver on a cluster's login node has no need of what the file will take on another."""
    N = (os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 7) + 1  # a row has 8 doubles
    path = tmp_path / "heads.safetensors"
    q = {"dtype": "F64", "shape": [N, 8], "data_offsets": [0, 64 * N]}
    write_safetensors_raw(path, {"q": q, "k": q | {"data_offsets": [64 * N, 128 * N]}})
    os.truncate(path, path.stat().st_size + 128 * N)  # which takes no room on the disk
    assert user.inspect(path).N == user.check(path, N, 8).N == N
    done = run("--input", path, "--output", tmp_path / "source.npz")
    assert done.returncode == 1 and "MB allowed" in done.stderr and done.stderr.count("\n") == 1


DAMAGED_NPY = [
    b"",
    b"not numpy",
    b"\x93NUMPY\x01\x00\xff\xff{}",
    b"\x93NUMPY\x02\x00\xff\xff\xff\xff" + b" " * 50_000,
    b"\x93NUMPY\x03\x00\x02\x00\x00\x00{}",
    b"\x93NUMPY\x01\x00\x02\x00{}",
    b"\x93NUMPY\x01\x00\x0b\x00'open\n(((((",
    b"\x93NUMPY\x01\x00\x70\x17" + b"(" * 6000,
    b"\x93NUMPY\x01\x00\x70\x17" + b"-" * 6000,
]


@pytest.mark.parametrize("content", DAMAGED_NPY, ids=range(len(DAMAGED_NPY)))
def test_damaged_npy_header(tmp_path, content):
    path = tmp_path / "heads.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("q.npy", content)
        archive.writestr("k.npy", content)
    error(user.inspect, path)


GOOD = {"dtype": "F64", "shape": [1, 2], "data_offsets": [0, 16]}


@pytest.mark.parametrize(
    "header",
    [
        b"[]",
        b"{",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"q": 1, "k": 2}',
        {"q": GOOD, "k": {}},
        {"q": GOOD, "k": {**GOOD, "dtype": ["F64"]}},
        {"q": GOOD, "k": {**GOOD, "shape": "12"}},
        {"q": GOOD, "k": {**GOOD, "shape": 2}},
        {"q": GOOD, "k": {**GOOD, "shape": [1, 2.0]}},
        {"q": GOOD, "k": {**GOOD, "shape": [True, 2]}},
        {"q": GOOD, "k": {**GOOD, "shape": [-1, -2]}},
        {"q": GOOD, "k": {**GOOD, "shape": [1, 3]}},
        {"q": GOOD, "k": {**GOOD, "data_offsets": [0, 8, 16]}},
        {"q": GOOD, "k": {**GOOD, "data_offsets": [8, 24]}},
        {"q": GOOD, "k": {**GOOD, "data_offsets": [-16, 0]}},
        {"q": GOOD, "k": {**GOOD, "data_offsets": [16, 0]}},
    ],
    ids=str,
)
def test_damaged_safetensors_header(tmp_path, header):
    error(user.inspect, write_safetensors_raw(tmp_path / "heads.safetensors", header, bytes(16)))


@given(st.binary(max_size=200), st.sampled_from([".npz", ".safetensors"]))
def test_any_bytes_are_one_error(tmp_path_factory, content, suffix):
    path = tmp_path_factory.mktemp("any") / f"heads{suffix}"
    path.write_bytes(content)
    error(user.inspect, path)


@given(st.data(), st.sampled_from([".npz", ".safetensors"]))
def test_a_changed_byte_is_an_error_or_harmless(tmp_path_factory, data, suffix):
    path = tmp_path_factory.mktemp("changed") / f"heads{suffix}"
    write(path, q=numbers(3, 2), k=numbers(3, 2))
    content = bytearray(path.read_bytes())
    content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    path.write_bytes(content)
    try:
        shape = user.inspect(path)
        user.require_finite(path)
        result = user.read(path)
    except ValueError as caught:
        assert str(caught).startswith(f"{path}: ")
    else:
        assert result["q"].shape == (shape.members, shape.N, shape.d)


# What only the numbers tell


def test_truncated(heads):
    write(heads, q=numbers(2, 50, 4), k=numbers(2, 50, 4))
    content = heads.read_bytes()
    for length in (0, 4, 20, 100, len(content) // 2, len(content) - 1):
        heads.write_bytes(content[:length])
        error(user.read, heads)


def test_corrupted_archive(tmp_path):
    path = write(tmp_path / "heads.npz", q=numbers(2, 50, 4), k=numbers(2, 50, 4))
    content = bytearray(path.read_bytes())
    content[1000] ^= 1
    path.write_bytes(content)
    assert "CRC" in error(user.require_finite, path)
    assert "CRC" in error(user.read, path)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_the_first_that_is_not_finite_is_named(heads, value, monkeypatch):
    monkeypatch.setattr(user, "BLOCK", 5)
    q, k, v = numbers(2, 6, 3, dtype="f4"), numbers(2, 6, 3, dtype="f4"), numbers(2, 6, 1)
    k[1, 4, 2] = k[1, 5, 0] = v[0, 0, 0] = value
    write(heads, q=q, k=k, v=v)
    message = error(user.require_finite, heads)
    assert f"k is {value} at member 1, row 4, column 2 (counted from 0)" in message


def test_not_finite_in_fortran_order(tmp_path):
    q = np.asfortranarray(numbers(2, 6, 3))
    q[1, 4, 2] = math.nan
    path = write(tmp_path / "heads.npz", q=q, k=numbers(2, 6, 3))
    assert "q is nan at member 1, row 4, column 2" in error(user.require_finite, path)


# The step


def run(*arguments):
    command = [sys.executable, SCRIPT, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_step_writes_the_source(heads, tmp_path):
    q, v = numbers(5, 2, dtype="float32"), numbers(5, 3, dtype="float16")
    write(heads, q=q, k=q + 1, v=v)
    output = tmp_path / "new" / "source.npz"
    done = run("--input", heads, "--output", output, "--memory-mb", 1)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    with np.load(output, allow_pickle=False) as source:
        assert source.files == ["q", "k", "v"]
        assert all(source[name].dtype == np.float64 for name in source.files)
        np.testing.assert_array_equal(source["k"], (q + 1).astype(np.float64)[None])
    first = output.read_bytes()
    run("--input", heads, "--output", output)
    assert output.read_bytes() == first


def test_the_step_fails_in_one_line_and_writes_nothing(heads, tmp_path):
    q = numbers(5, 2)
    q[3, 1] = math.nan
    write(heads, q=q, k=q)
    output = tmp_path / "source.npz"
    done = run("--input", heads, "--output", output)
    assert done.returncode == 1 and not output.exists()
    assert done.stderr.startswith(f"error: {heads}: q is nan at member 0, row 3, column 1")
    assert done.stderr.count("\n") == 1
    assert (
        "more than the 0.0001 MB"
        in run("--input", heads, "--output", output, "--memory-mb", 1e-4).stderr
    )


# The hook, where torch and transformers are installed (they are not in the project's environment)


@pytest.mark.parametrize("kind", ["Bert", "Llama"])
def test_hook_writes_what_attention_computes(tmp_path, kind):
    """softmax(q k^T / sqrt(d)) of the written file against the model's own probabilities."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    from safetensors.torch import save_file as save_torch

    import hook_transformers as hook

    torch.manual_seed(0)
    size = {"hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4}
    size |= {"vocab_size": 99, "intermediate_size": 50, "initializer_range": 0.3}
    size |= {"num_key_value_heads": 2} if kind == "Llama" else {}
    config = getattr(transformers, f"{kind}Config")(**size)
    model = getattr(transformers, f"{kind}Model")(config).eval()
    ids = torch.randint(1, 99, (2, 20))
    path = tmp_path / "heads.safetensors"
    save_torch(hook.attention_inputs(model, input_ids=ids), path)
    before = hook.projections(model, input_ids=ids)

    assert user.check(path, N=20, d=16) == (3 * 4 * 2, 20, 16, 16, "float32")
    user.require_finite(path)
    source = user.read(path)
    scores = source["q"] @ source["k"].swapaxes(1, 2) / math.sqrt(16)
    if kind == "Llama":
        scores[:, ~np.tri(20, dtype=bool)] = -math.inf
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    model.set_attn_implementation("eager")
    with torch.no_grad():
        own = model(input_ids=ids, output_attentions=True).attentions  # (windows, heads, N, N) each
    own = np.stack([layer.numpy().swapaxes(0, 1) for layer in own]).reshape(weights.shape)
    np.testing.assert_allclose(weights, own, atol=3e-5)
    assert own.max() > 0.9  # far from uniform: the comparison can fail

    q, k, v = (before[name] for name in "qkv")
    if kind == "Llama":
        from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

        assert not np.allclose(q.numpy(), source["q"], atol=1e-2)
        turns = model.rotary_emb(q, torch.arange(20)[None])
        q, k = (x[0] for x in apply_rotary_pos_emb(q[None], k[None], *turns))
    for name, array in (("q", q), ("k", k), ("v", v)):
        np.testing.assert_allclose(array.numpy(), source[name], atol=1e-4)
