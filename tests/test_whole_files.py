"""An output is whole or absent, whatever happens to its writer, and its bytes repeat."""

import hashlib
import io
import os
import signal
import subprocess
import sys
from zipfile import ZipFile

import numpy as np
import pytest
from matplotlib.figure import Figure

from conftest import ROOT
from figure_style import save
from whole_files import fail, load_arrays, save_arrays, whole, write_csv


def python(code: str, *arguments: object) -> subprocess.Popen:
    """A process of its own that runs `code` beside the scripts."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.Popen(command, cwd=ROOT / "scripts", stdout=subprocess.PIPE, text=True)


def test_success_leaves_the_file_and_nothing_else(tmp_path):
    path = tmp_path / "new" / "folder" / "a.csv"
    with whole(path) as part:
        assert part.parent == path.parent and part.suffix == ".csv" and part != path
        part.write_text("new")
        assert not path.exists()
    assert path.read_text() == "new"
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("old", [None, "old"])
def test_exception_leaves_what_was_there(tmp_path, error, old):
    path = tmp_path / "a.csv"
    if old:
        path.write_text(old)
    with pytest.raises(error), whole(path) as part:
        part.write_text("half")
        raise error
    assert [file.read_text() for file in tmp_path.iterdir()] == ([old] if old else [])


def test_rows_that_fail_leave_no_table(tmp_path):
    def rows():
        yield 1, 2
        raise ValueError

    with pytest.raises(ValueError):
        write_csv(tmp_path / "a.csv", ("x", "y"), rows())
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("old", [None, "old"])
def test_a_killed_writer_leaves_nothing_at_the_name(tmp_path, old):
    path = tmp_path / "a.csv"
    if old:
        path.write_text(old)
    code = """
import sys, time
from whole_files import whole
with whole(sys.argv[1]) as part:
    part.write_text("half")
    print("written", flush=True)
    time.sleep(60)
"""
    with python(code, path) as writer:
        assert writer.stdout.readline() == "written\n"
        writer.send_signal(signal.SIGKILL)
    assert (path.read_text() if path.exists() else None) == old
    with whole(path) as part:
        part.write_text("new")
    assert path.read_text() == "new"


def test_two_writers_never_mix(tmp_path):
    path = tmp_path / "a.csv"
    code = """
import sys
from whole_files import write_csv
for _ in range(40):
    write_csv(sys.argv[1], [sys.argv[2]], [[sys.argv[2] * 50]] * 1000)
"""
    with python(code, path, "a") as first, python(code, path, "b") as second:
        seen = set()
        while first.poll() is None or second.poll() is None:
            if path.exists():
                seen.add(path.read_text())
    assert (first.returncode, second.returncode) == (0, 0)
    assert seen <= {f"{x}\n" + f"{x * 50}\n" * 1000 for x in "ab"} and seen
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("old", [None, b"old"])
@pytest.mark.parametrize("suffix", ["npz", "csv", "pdf", "svg", "png"])
def test_a_full_disk_ends_the_step_in_one_line(small_disk, suffix, old, capsys):
    """Of arrays, tables and figures, what was there stays."""
    path = small_disk / f"a.{suffix}"
    if old:
        path.write_bytes(old)
    (small_disk / "other").write_bytes(bytes((1 << 20) - 5 * 4096))
    with pytest.raises(SystemExit):
        if suffix == "npz":
            save_arrays(path, x=np.arange(10_000.0))
        elif suffix == "csv":
            write_csv(path, ["x"], [["x" * 100]] * 1000)
        else:
            save(noise(), [str(path)], 150)
    (line,) = capsys.readouterr().err.splitlines()
    assert line == f"error: {path} cannot be written: [Errno 28] No space left on device"
    kept = {file.name: file.read_bytes() for file in small_disk.iterdir() if file.name != "other"}
    assert kept == ({path.name: old} if old else {})


def noise() -> Figure:
    """A figure of some 100 kB in any format."""
    figure = Figure()
    figure.subplots().plot(np.random.default_rng(0).standard_normal(5000))
    return figure


def test_a_folder_that_is_a_file_ends_the_step_in_one_line(tmp_path, capsys):
    (tmp_path / "a").write_text("")
    with pytest.raises(SystemExit):
        write_csv(tmp_path / "a" / "b.csv", ["x"], [])
    assert f"error: {tmp_path}/a/b.csv cannot be written: " in capsys.readouterr().err


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o027, 0o640), (0o077, 0o600)])
def test_mode_follows_the_umask(tmp_path, umask, mode):
    path = tmp_path / "a.csv"
    before = os.umask(umask)
    try:
        write_csv(path, ["x"], [])
        assert os.umask(umask) == umask
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == mode


def test_arrays_come_back_and_bytes_repeat(tmp_path):
    arrays = {"q": np.random.default_rng(0).standard_normal((2, 3)), "name": np.array("gaussian")}
    digests = set()
    for name in ("a.npz", "b.npz"):
        save_arrays(tmp_path / name, **arrays)
        digests.add(hashlib.sha256((tmp_path / name).read_bytes()).hexdigest())
    assert len(digests) == 1
    loaded = load_arrays(tmp_path / "a.npz")
    assert set(loaded) == set(arrays)
    for name, x in arrays.items():
        assert loaded[name].dtype == x.dtype
        np.testing.assert_array_equal(loaded[name], x)


@pytest.mark.parametrize(
    "array",
    [
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.arange(6.0).reshape(2, 3)[:, ::2],
        np.zeros((0, 4)),
        np.array(7),
        np.array(["a", "bcd"]),
        np.array([True, False]),
        np.arange(3, dtype=">f4"),
    ],
    ids=["Fortran", "strided", "empty", "scalar", "words", "booleans", "big-endian"],
)
def test_arrays_are_what_numpy_loads_and_cannot_be_written_to(tmp_path, array):
    save_arrays(tmp_path / "a.npz", x=array)
    loaded, expected = load_arrays(tmp_path / "a.npz")["x"], np.load(tmp_path / "a.npz")["x"]
    assert (loaded.dtype, loaded.shape) == (expected.dtype, expected.shape)
    assert loaded.flags["F_CONTIGUOUS"] == expected.flags["F_CONTIGUOUS"]
    np.testing.assert_array_equal(loaded, expected)
    assert not loaded.flags.writeable


def test_an_array_that_is_cut_short_is_damaged(tmp_path, capsys):
    """In an archive that is whole."""
    with ZipFile(tmp_path / "a.npz", "w") as archive:
        file = io.BytesIO()
        np.lib.format.write_array(file, np.arange(9.0))
        archive.writestr("x.npy", file.getvalue()[:-8])
    with pytest.raises(SystemExit):
        load_arrays(tmp_path / "a.npz")
    assert "delete the file and run again" in capsys.readouterr().err


def test_arrays_are_written_under_the_name_that_was_asked_for(tmp_path):
    save_arrays(tmp_path / "factors", q=np.ones(2))
    assert [path.name for path in tmp_path.iterdir()] == ["factors"]
    np.testing.assert_array_equal(load_arrays(tmp_path / "factors")["q"], [1, 1])


def test_pickles_are_refused(tmp_path, capsys):
    class Trap:
        def __reduce__(self):
            return (tmp_path / "sprung").mkdir, ()

    np.savez(tmp_path / "a.npz", q=np.array([Trap()], dtype=object))
    with pytest.raises(SystemExit):
        load_arrays(tmp_path / "a.npz")
    assert "allow_pickle=False" in capsys.readouterr().err
    assert not (tmp_path / "sprung").exists()


def test_a_damaged_or_missing_file_ends_the_step_with_its_name(tmp_path, capsys):
    path = tmp_path / "a.npz"
    save_arrays(path, x=np.arange(100.0))
    path.write_bytes(path.read_bytes()[:300])
    for remedy in ("delete the file and run again", "there is no such file"):
        with pytest.raises(SystemExit):
            load_arrays(path)
        message = capsys.readouterr().err
        assert str(path) in message and remedy in message
        path.unlink(missing_ok=True)


def test_fields_of_a_table(tmp_path):
    row = [0.1, np.float64(1 / 3), 1e-300, float("nan"), None, -np.inf, np.int64(3), True, "a, b"]
    write_csv(tmp_path / "a.csv", [*"abcdefghi"], [row])
    expected = 'a,b,c,d,e,f,g,h,i\n0.1,0.3333333333333333,1e-300,,,-inf,3,True,"a, b"\n'
    assert (tmp_path / "a.csv").read_bytes() == expected.encode()


def test_fail_is_one_line_without_a_traceback(capsys):
    with pytest.raises(SystemExit) as caught:
        fail("no such cell")
    assert caught.value.code == 1
    assert capsys.readouterr().err == "error: no such cell\n"
