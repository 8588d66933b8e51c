"""The folder that a run writes to is made, tried and cleared of what killed writers left."""

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


def test_a_folder_that_takes_no_files_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(results_folder.NotWritable, match=r"file/results takes no files: Not a dir"):
        results_folder.prepare(tmp_path / "file" / "results")
