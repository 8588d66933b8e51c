"""A cell on disk, and its place in the tables."""

import numpy as np
import pytest

from cell_files import Cell, load_cell, load_extremes, progress, save_cell, save_extremes


@pytest.fixture
def cell() -> Cell:
    F, G, v = np.random.default_rng(0).standard_normal((3, 2, 4, 3))
    return Cell("gaussian", 4, 3, "relu", F, G, v)


@pytest.mark.parametrize("with_values", [True, False])
def test_a_cell_comes_back(tmp_path, cell, with_values):
    if not with_values:
        cell = Cell(*cell.key, cell.F, cell.G, None)
    save_cell(tmp_path / "factors.npz", cell)
    loaded = load_cell(tmp_path / "factors.npz")
    assert loaded.key == ("gaussian", 4, 3, "relu")
    assert [type(part) for part in loaded.key] == [str, int, int, str]
    np.testing.assert_array_equal(loaded.F, cell.F)
    np.testing.assert_array_equal(loaded.G, cell.G)
    if with_values:
        np.testing.assert_array_equal(loaded.v, cell.v)
    else:
        assert loaded.v is None


def test_ends_of_spectra_come_back(tmp_path):
    found = {"log10_sigma_max": np.array([[1.0, np.nan]]), "residual_max": np.array([[0.5, 2.0]])}
    found |= {"counts": np.ones((1, 2, 48)), "counts_slq": np.zeros((1, 2, 48, 2))}
    save_extremes(tmp_path / "extremes.npz", found)
    loaded = load_extremes(tmp_path / "extremes.npz")
    assert set(loaded) == set(found)
    for name, values in found.items():
        np.testing.assert_array_equal(loaded[name], values)


def test_path_names_the_cell(cell):
    assert cell.path == "source~gaussian/N~4/d~3/feature_map~relu"


def test_matrices_are_members_times_masks_times_normalizations(cell):
    matrices = list(cell.matrices())
    assert matrices[:4] == [
        (0, "bidirectional", "none"),
        (0, "bidirectional", "row"),
        (0, "causal", "none"),
        (0, "causal", "row"),
    ]
    assert matrices[4:] == [(1, *rest) for _, *rest in matrices[:4]]


def test_progress_goes_to_the_log(cell, capsys):
    progress(cell, 1)
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", f"{cell.path}: member 2 of 2\n")


def test_pickles_are_refused(tmp_path, capsys):
    np.savez(tmp_path / "factors.npz", source=np.array([{}], dtype=object))
    with pytest.raises(SystemExit):
        load_cell(tmp_path / "factors.npz")
    assert "allow_pickle=False" in capsys.readouterr().err
