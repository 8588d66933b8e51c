"""A step on a batch of cells: what is valid is reused, and a cell that fails stops no other."""

import hashlib
from pathlib import Path

import numpy as np
import pytest

import build_cell
import compute_singular_values
from cell_files import load_cell
from test_cell_steps import run

MAPS = ("exp", "relu")
LIMITS = ("--max-N", 8, "--max-N-rounded", 8, "--rounded-members", 1)


class Batch:
    """Two cells of a drawn source, and the manifests of the steps that ran on them."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.cells = [folder / f"cells/source~s/N~8/d~2/feature_map~{name}" for name in MAPS]

    def build(self, scale: float = 1.0, cells: list[Path] | None = None, code: str = "a") -> None:
        self.build_of({"s": scale}, {"s": 2}, cells, code)

    def build_of(
        self,
        scales: dict[str, float],
        members: dict[str, int],
        cells: list[Path] | None = None,
        code: str = "a",
    ) -> None:
        options = ("--scales", *(f"{name}={scale}" for name, scale in scales.items()))
        options += ("--members-of", *(f"{name}={number}" for name, number in members.items()))
        options += ("--max-N-values", 8, "--code", code)
        options += ("--manifest", self.manifest("build_cell"))
        run(build_cell, *options, *self.below(cells or self.cells))

    def below(self, cells: list[Path]) -> tuple[object, ...]:
        below = self.folder / "cells"
        return "--below", below, "--cells", *(cell.relative_to(below) for cell in cells)

    def compute(self, *limits: object, code: str = "a") -> None:
        names = "\n".join(map(str, self.cells))
        options = ("--cells-digest", hashlib.sha256(names.encode()).hexdigest(), "--code", code)
        options += ("--read", self.manifest("build_cell"))
        options += ("--manifest", self.manifest("compute_singular_values"))
        run(compute_singular_values, *(limits or LIMITS), *options)

    def manifest(self, step: str) -> Path:
        return self.folder / "batch" / f"{step}.txt"

    def times(self) -> dict[Path, int]:
        return {path: path.stat().st_mtime_ns for path in self.folder.rglob("*.npz")}


@pytest.fixture
def batch(tmp_path) -> Batch:
    made = Batch(tmp_path)
    made.build()
    made.compute()
    return made


def counts(capsys) -> str:
    return capsys.readouterr().err.splitlines()[-1]


def test_a_batch_is_its_cells_one_by_one(batch, tmp_path):
    for folder in batch.cells:
        name = folder.name.partition("~")[2]
        key = ("--source", "s", "--N", 8, "--d", 2, "--feature-map", name, "--scale", 1.0)
        by_hand = ("--members", 2, "--max-N-values", 8, "--output", tmp_path / "factors.npz")
        run(build_cell, *key, *by_hand)
        assert (tmp_path / "factors.npz").read_bytes() == (folder / "factors.npz").read_bytes()
        files = ("--input", tmp_path / "factors.npz", "--output", tmp_path / "sigma.npz")
        run(compute_singular_values, *LIMITS, *files)
        same = (folder / "singular_values.npz").read_bytes()
        assert (tmp_path / "sigma.npz").read_bytes() == same


def test_what_is_valid_is_reused(batch, capsys):
    before = batch.times()
    capsys.readouterr()
    for step in (batch.build, batch.compute):
        step()
        assert counts(capsys) == "0 computed, 2 reused, 0 failed"
    assert batch.times() == before


def test_an_added_cell_is_computed_alone(batch, capsys):
    before = batch.times()
    batch.cells.append(batch.folder / "cells/source~s/N~4/d~2/feature_map~exp")
    for step in (batch.build, batch.compute):
        step()
        assert counts(capsys) == "1 computed, 2 reused, 0 failed"
    assert before.items() <= batch.times().items()


def test_a_cell_depends_on_its_own_source_alone(batch, capsys):
    """In a batch of two drawn sources, each with its own scale and members."""
    other = batch.folder / "cells/source~t/N~8/d~2/feature_map~exp"
    cells = [*batch.cells, other]
    before = batch.times()
    for scales, members, computed in (
        ({"s": 1.0, "t": 3.0}, {"s": 2, "t": 1}, 1),
        ({"s": 1.0, "t": 0.5}, {"s": 2, "t": 1}, 1),
        ({"s": 1.0, "t": 0.5}, {"s": 2, "t": 3}, 1),
        ({"s": 1.0, "t": 0.5, "u": 9.0}, {"s": 2, "t": 3, "u": 9}, 0),
        ({"s": 1.0, "t": 0.5}, {"s": 1, "t": 3}, 2),
    ):
        if computed == 2:
            assert before.items() <= batch.times().items()
        batch.build_of(scales, members, cells)
        assert counts(capsys) == f"{computed} computed, {3 - computed} reused, 0 failed"
        assert len(load_cell(other / "factors.npz").F) == members["t"]
    key = ("--source", "t", "--N", 8, "--d", 2, "--feature-map", "exp", "--scale", 0.5)
    by_hand = ("--members", 3, "--max-N-values", 8, "--output", batch.folder / "t.npz")
    run(build_cell, *key, *by_hand)
    assert (batch.folder / "t.npz").read_bytes() == (other / "factors.npz").read_bytes()


@pytest.mark.parametrize("change", [{"scale": 2.0}, {"code": "b"}])
def test_changed_options_and_code_compute_anew(batch, capsys, change):
    batch.build(**change)
    assert counts(capsys) == "2 computed, 0 reused, 0 failed"
    batch.compute()
    again = 2 if "scale" in change else 0
    assert counts(capsys) == f"{again} computed, {2 - again} reused, 0 failed"
    batch.compute(*LIMITS[:3], 4, *LIMITS[4:])
    assert counts(capsys) == "2 computed, 0 reused, 0 failed"


def test_a_lost_or_damaged_output_is_made_again(batch, capsys):
    path = batch.cells[0] / "factors.npz"
    before = path.read_bytes()
    for content in (None, before[:-1], before[:200] + b"x" + before[201:]):
        path.unlink() if content is None else path.write_bytes(content)
        batch.build()
        assert counts(capsys) == "1 computed, 1 reused, 0 failed"
        assert path.read_bytes() == before


def test_an_output_that_another_writer_replaces_is_not_vouched_for(batch, capsys, monkeypatch):
    """As a job may that outlived its run: before the receipt, and with other options."""
    write = build_cell.save_cell

    def save_cell(path, cell):
        write(path, cell)
        path.write_bytes(path.read_bytes()[::-1])

    with monkeypatch.context() as patch:
        patch.setattr(build_cell, "save_cell", save_cell)
        batch.build(scale=2.0)
    capsys.readouterr()
    with pytest.raises(SystemExit):
        batch.compute()
    error = capsys.readouterr().err
    assert all(
        f"{cell / 'factors.npz'}: missing, or not the bytes" in error for cell in batch.cells
    )
    batch.build(scale=2.0)
    assert counts(capsys) == "2 computed, 0 reused, 0 failed"


def test_files_of_cells_have_receipts_by_cell_alone(batch):
    assert not list(batch.folder.rglob("*.sha256"))


def test_a_damaged_input_is_named_and_its_manifest_goes(batch, capsys):
    path = batch.cells[1] / "factors.npz"
    content = path.read_bytes()
    path.write_bytes(content[:200] + b"x" + content[201:])
    batch.manifest("compute_singular_values").unlink()
    with pytest.raises(SystemExit):
        batch.compute(*LIMITS[:5], 2)
    error = capsys.readouterr().err
    assert f"error: {path}: missing, or not the bytes that build_cell wrote; run the same" in error
    assert "1 computed, 0 reused, 1 failed" in error
    assert not batch.manifest("build_cell").exists()
    assert not batch.manifest("compute_singular_values").exists()
    batch.build()
    batch.compute(*LIMITS[:5], 2)
    assert counts(capsys) == "1 computed, 1 reused, 0 failed"
    assert path.read_bytes() == content


def test_a_cell_that_fails_stops_no_other(tmp_path, capsys):
    batch = Batch(tmp_path)
    with pytest.raises(SystemExit):
        batch.build(scale=1000.0)
    error = capsys.readouterr().err
    assert "error: cell source s, N = 8, d = 2, feature_map exp: overflows" in error
    assert error.endswith(f"error: build_cell failed for {batch.cells[0]}\n")
    assert not batch.manifest("build_cell").exists()
    assert load_cell(batch.cells[1] / "factors.npz").feature_map == "relu"
    batch.build(scale=1000.0, cells=batch.cells[1:])
    assert counts(capsys) == "0 computed, 1 reused, 0 failed"


def test_an_unforeseen_error_leaves_its_traceback_and_stops_no_other(batch, capsys, monkeypatch):
    def fail_once(cell, *limits):
        monkeypatch.undo()
        raise MemoryError("no more")

    monkeypatch.setattr(compute_singular_values, "spectra", fail_once)
    with pytest.raises(SystemExit):
        batch.compute(code="b")
    error = capsys.readouterr().err
    assert "MemoryError: no more" in error and "1 computed, 0 reused, 1 failed" in error


def test_a_source_that_is_a_file_is_part_of_the_key(tmp_path, capsys):
    batch = Batch(tmp_path)
    for offset, expected in (
        (0.0, "2 computed, 0"),
        (0.0, "0 computed, 2"),
        (1.0, "2 computed, 0"),
    ):
        q, k = np.random.default_rng(0).standard_normal((2, 1, 9, 2)) + offset
        np.savez(tmp_path / "source.npz", q=q, k=k)
        options = ("--input", tmp_path / "source.npz", "--manifest", batch.manifest("build_cell"))
        run(build_cell, *options, "--code", "a", *batch.below(batch.cells))
        assert counts(capsys).startswith(expected)


def test_neither_files_nor_a_batch(capsys):
    for script, options in ((compute_singular_values, LIMITS), (build_cell, ("--input", "x"))):
        with pytest.raises(SystemExit) as caught:
            run(script, *options)
        assert caught.value.code == 2
        assert "are needed, or" in capsys.readouterr().err
