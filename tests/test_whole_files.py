"""An output is whole or absent, whatever happens to its writer, and its bytes repeat."""

import ast
import hashlib
import io
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from zipfile import ZipFile

import numpy as np
import pytest
from matplotlib.figure import Figure

from conftest import ROOT
from figure_style import save
from whole_files import (
    RUN_AT_WORK,
    fail,
    file_digest,
    intact,
    is_damaged,
    load_arrays,
    noted,
    receipt_of,
    save_arrays,
    whole,
    write_csv,
)


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
    assert sorted(path.parent.iterdir()) == [path, path.parent / "receipts"]


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
    assert {file for file in tmp_path.rglob("*") if file.is_file()} == {path, receipt_of(path)}


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
    receipt_of(path).unlink()
    for remedy in ("delete the file and run again", "there is no such file"):
        with pytest.raises(SystemExit):
            load_arrays(path)
        message = capsys.readouterr().err
        assert str(path) in message and remedy in message
        path.unlink(missing_ok=True)


def flip(path, place: int) -> None:
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("size", [0, 1, 1 << 16, (1 << 17) + 5])
def test_a_digest_is_that_of_all_bytes(tmp_path, size):
    content = np.random.default_rng(0).bytes(size)
    (tmp_path / "a").write_bytes(content)
    assert file_digest(tmp_path / "a") == hashlib.sha256(content).hexdigest()


def test_what_later_steps_read_has_a_receipt_that_sha256sum_reads(tmp_path):
    folder = tmp_path / "Größe 1"
    write_csv(folder / "é (1).csv", ["x"], [[1]])
    save_arrays(folder / "d~2.npz", x=np.ones(2))
    save(noise(), [str(folder / "a.svg")], 50)
    command = ["sha256sum", "--check", "--strict", "receipts/d~2.npz.sha256"]
    command.append("receipts/é (1).csv.sha256")
    check = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert check.stdout == "d~2.npz: OK\né (1).csv: OK\n" and check.returncode == 0
    assert sorted(path.name for path in (folder / "receipts").iterdir()) == [
        name.removeprefix("receipts/") for name in command[3:]
    ]


def test_the_receipt_is_there_before_the_file(tmp_path):
    """A writer that is killed between them leaves an old file that is not believed."""
    path = tmp_path / "a.csv"
    code = """
import os, pathlib, signal, sys
from whole_files import write_csv
rename = pathlib.Path.replace
def replace(part, path):
    if path.suffix == ".csv":
        os.kill(os.getpid(), signal.SIGKILL)
    rename(part, path)
write_csv(sys.argv[1], ["x"], [[1]])
pathlib.Path.replace = replace
write_csv(sys.argv[1], ["x"], [[2]])
"""
    with python(code, path) as writer:
        assert writer.wait() == -signal.SIGKILL
    assert path.read_text() == "x\n1\n" and is_damaged(path)


@pytest.mark.parametrize("place", [0, 5, -1])
@pytest.mark.parametrize("which", ["file", "receipt"])
@pytest.mark.parametrize("name", ["a.csv", "a.npz"])
def test_a_flipped_byte_is_named_and_its_file_goes(tmp_path, capsys, name, which, place):
    path = tmp_path / name
    if name == "a.csv":
        write_csv(path, ["x"], [[0.125]])
    else:
        save_arrays(path, x=np.arange(9.0))
    read = load_arrays if name == "a.npz" else intact
    read(path)
    flip(path if which == "file" else receipt_of(path), place)
    content = path.read_bytes()
    with pytest.raises(SystemExit):
        read(path)
    assert capsys.readouterr().err == (
        f"error: {path}: not the bytes that were written; it is {name}.damaged now: run the same"
        " command again, and it is made anew\n"
    )
    assert not path.exists() and not receipt_of(path).exists()
    assert (tmp_path / f"{name}.damaged").read_bytes() == content
    with pytest.raises(SystemExit):
        read(path)
    assert capsys.readouterr().err == f"error: {path}: there is no such file\n"


def test_a_folder_where_a_file_belongs(tmp_path, capsys):
    path = tmp_path / "a.csv"
    (path / "inside").mkdir(parents=True)
    with pytest.raises(SystemExit), whole(path) as part:
        part.touch()
    assert capsys.readouterr().err == (
        f"error: {path}: a folder, where a file belongs; move it away and run again\n"
    )
    with pytest.raises(SystemExit):
        intact(path)
    assert f"error: {path}: a folder, where a file belongs" in capsys.readouterr().err
    assert [*tmp_path.rglob("*")] == [path, path / "inside"]


def test_a_file_without_a_receipt_is_taken_as_it_is(tmp_path):
    (tmp_path / "a.csv").write_text("x\n1\n")
    assert intact(str(tmp_path / "a.csv")) == tmp_path / "a.csv"
    np.savez(tmp_path / "a.npz", x=np.ones(2))
    np.testing.assert_array_equal(load_arrays(tmp_path / "a.npz")["x"], [1, 1])


def test_digests_are_noted_in_place_of_receipts(tmp_path):
    """What is read meanwhile has been compared by whoever notes them."""
    table, arrays = tmp_path / "a.csv", tmp_path / "a.npz"
    write_csv(table, ["x"], [[1]])
    flip(table, 2)
    with noted() as digests:
        save_arrays(arrays, x=np.ones(2))
        assert intact(table) == table
    assert digests == {arrays: file_digest(arrays)}
    assert not receipt_of(arrays).exists() and is_damaged(table)
    with pytest.raises(SystemExit):
        intact(table)


@pytest.mark.parametrize("at_work", ["this", "another", None])
def test_a_step_that_has_outlived_its_run_writes_nothing(tmp_path, monkeypatch, capsys, at_work):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CAUSALRANK_RUN", "this")
    if at_work:
        RUN_AT_WORK.parent.mkdir(parents=True)
        RUN_AT_WORK.write_text(at_work)
    path = tmp_path / "a.csv"
    path.write_text("x\n1\n")
    if at_work == "another":
        with pytest.raises(SystemExit):
            write_csv(path, ["x"], [[2]])
        assert capsys.readouterr().err.startswith(f"error: {path}: not written: the run of this")
        assert path.read_text() == "x\n1\n" and not receipt_of(path).exists()
        assert not list(tmp_path.glob(".part.*"))
    else:
        write_csv(path, ["x"], [[2]])
        assert path.read_text() == "x\n2\n"


READS = {"read_csv", "load", "open", "read_text", "read_bytes", "ZipFile"}
TAKEN_AS_IT_IS = {
    ("gather_combinations", "path"): "of a batch's cells, whose receipts have been compared",
    ("gather_table", "path"): "the same",
    ("receipts", "path"): "a manifest, against which receipts are compared",
    ("receipts", "receipt"): "a receipt, which is compared with a manifest",
    ("receipts", "receipt_path(folder, step)"): "the same",
    ("whole_files", "path"): "to compare it",
    ("whole_files", "receipt_of(path)"): "to compare with it",
    ("whole_files", "RUN_AT_WORK"): "written by no step",
    ("judge_acceptance", "path"): "a record that is not to be deleted: compared by is_damaged",
    ("judge_claims", "path"): "of a list of those that are intact",
    ("judge_claims", "Path(args.claims)"): "the user's",
    ("encode_text", "read(model, f'{folder}/model.safetensors')"): "bytes of that wheel",
    ("encode_text", "wheel"): "intact, which `encodings` sees to once for all of its members",
    ("list_packages", "p"): "of conda",
}
OF_THE_USER = ("read_user_file", "hook_transformers")


def reads(tree: ast.Module) -> Iterator[str]:
    """What is read where a function opens a file, as an expression."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        *owner, name = ast.unparse(node.func).rsplit(".", 1)
        writes = any(getattr(argument, "value", None) in ("w", "wb") for argument in node.args)
        if name in READS and not writes and owner != ["archive"]:
            of_module = owner in ([], ["pd"], ["np"], ["zipfile"], ["Image"])
            yield ast.unparse(node.args[0]) if of_module else owner[0]


def test_no_script_reads_a_file_that_it_does_not_compare():
    found = {
        (script.stem, read)
        for script in (ROOT / "scripts").glob("*.py")
        if script.stem not in OF_THE_USER
        for read in reads(ast.parse(script.read_text(encoding="utf-8")))
        if not read.startswith("intact(")
    }
    assert found == set(TAKEN_AS_IT_IS)


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
