"""The folder that a run writes to is made, tried and cleared of what killed writers left."""

import os
import time

import pytest

import results_folder


def test_parts_go_and_results_stay(tmp_path):
    folder = tmp_path / "results"
    results_folder.prepare(folder)
    (folder / "cells").mkdir()
    for name in (".part.rank.x.csv", "cells/.part.factors.y.npz", "cells/rank.csv", "part.csv"):
        (folder / name).write_text("")
    results_folder.prepare(folder)
    left = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert left == {"cells/rank.csv", "part.csv"}


def test_files_of_the_future_become_files_of_now(tmp_path):
    now = time.time()
    for name, moment in {"old": now - 100, "new": now + 86400}.items():
        (tmp_path / name).write_text("")
        os.utime(tmp_path / name, (moment, moment))
    results_folder.prepare(tmp_path)
    assert (tmp_path / "old").stat().st_mtime == pytest.approx(now - 100, abs=1e-3)
    assert now - 1 <= (tmp_path / "new").stat().st_mtime <= time.time() + 1


def test_a_folder_that_takes_no_files_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(results_folder.NotWritable, match=r"file/results takes no files: Not a dir"):
        results_folder.prepare(tmp_path / "file" / "results")


def test_a_disk_without_room_for_a_megabyte_is_named(small_disk, tmp_path):
    assert results_folder.shortage(tmp_path) == ""
    line = f"error: {small_disk} cannot be written: [Errno 28] No space left on device\n"
    (small_disk / "other").write_bytes(bytes(4096))
    assert results_folder.shortage(small_disk) == line
    assert [path.name for path in small_disk.iterdir()] == ["other"]
