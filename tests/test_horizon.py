"""Horizons against condition numbers of every length, computed densely."""

import csv
import sys

import numpy as np
import pytest

import find_horizons
from causalrank.baselines import all_ones_condition_number
from causalrank.feature_maps import FEATURE_MAPS
from causalrank.horizon import horizons, log10_condition
from causalrank.precision import FORMATS
from causalrank.semiseparable import semiseparable


@pytest.mark.parametrize("name", ["elu_plus_one", "exp", "identity"])
@pytest.mark.parametrize("normalization", ["none", "row"])
def test_against_dense_condition_numbers(name, normalization):
    q, k = np.random.default_rng(5).standard_normal((2, 60, 4))
    F, G = FEATURE_MAPS[name](q), FEATURE_MAPS[name](k)
    A = np.tril(F @ G.T)
    A = A / A.sum(axis=1, keepdims=True) if normalization == "row" else A
    dense = np.array([np.linalg.cond(A[:n, :n]) for n in range(1, 61)])
    operator = semiseparable(F, G)
    operator = operator.row_normalized() if normalization == "row" else operator
    found = horizons(lambda N: log10_condition(operator.leading(N)), 60)
    for precision in ("bfloat16", "float16"):  # where dense singular values tell
        past = np.flatnonzero(dense >= 1 / FORMATS[precision].epsilon)
        assert found[precision].N == (past[0] + 1 if past.size else None)
    for n in (1, 7, 60):
        got = log10_condition(operator.leading(n))
        if dense[n - 1] < 1e8:
            assert got == pytest.approx(np.log10(dense[n - 1]), abs=1e-6)


def test_against_a_closed_form():
    """All ones, about 4 N / pi: in no length that is searched past 1 / eps of float16."""
    ones = semiseparable(np.ones((150, 1)), np.ones((150, 1)))
    found = horizons(lambda N: log10_condition(ones.leading(N)), 150)
    expected = next(N for N in range(1, 150) if all_ones_condition_number(N) >= 128)
    assert found["bfloat16"].N == expected
    assert found["float16"].N is found["float64"].N is None
    assert found["float64"].searched == 150


def test_any_monotone_condition_is_searched_in_few_steps():
    for grows in (lambda N: N / 50, lambda N: 3.0 if N < 777 else 99.0, lambda N: N**2 / 1e5):
        asked = []

        def condition(N, grows=grows, asked=asked):
            asked.append(N)
            return grows(N)

        found = horizons(condition, 4096)
        for precision, fmt in FORMATS.items():
            past = [N for N in range(1, 4097) if grows(N) >= -np.log10(fmt.epsilon)]
            assert found[precision].N == (past[0] if past else None)
        assert len(asked) == len(set(asked)) < 80


def test_a_singular_matrix_is_past_every_horizon():
    for singular in range(9):
        F = np.ones((9, 1))
        F[singular] = 0.0
        A = semiseparable(F, F).row_normalized()
        found = horizons(lambda N, A=A: log10_condition(A.leading(N)), 9)
        assert {horizon.N for horizon in found.values()} == {singular + 1}


def rows(path) -> list[dict]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def find(path, *options) -> list[dict]:
    with pytest.MonkeyPatch.context() as patch:
        key = ("--source", "s", "--d", 2, "--feature-map", "identity", "--output", path)
        patch.setattr(sys, "argv", ["find_horizons.py", *map(str, (*key, *options))])
        find_horizons.main()
    return rows(path)


def test_longer_draws_begin_with_the_same_tokens(tmp_path):
    drawn = ("--scale", 1, "--members", 2)
    short, long = (find(tmp_path / "h.csv", *drawn, "--longest", n) for n in (20, 40))
    assert len(short) == len(long) == 2 * 2 * len(FORMATS)
    for few, many in zip(short, long, strict=True):
        assert few["horizon"] in ("", many["horizon"])
    assert any(row["horizon"] for row in short)


def test_a_file_is_searched_as_far_as_its_diagonal_is_told(tmp_path):
    q, k = np.random.default_rng(0).standard_normal((2, 1, 12, 2)) * 1e-3
    q[:, :, 1] = k[:, :, 1] = 0.0
    q[0, 7], k[0, 7] = (1.0, 1.0), (1.0, -1.0 + 2.0**-52)  # cancels, but is not zero
    np.savez(tmp_path / "source.npz", q=q, k=k)
    table = find(tmp_path / "h.csv", "--input", tmp_path / "source.npz", "--longest", 12)
    assert {row["searched"] for row in table} == {"7"}


def test_another_dimension_is_refused(tmp_path, capsys):
    np.savez(tmp_path / "source.npz", q=np.ones((1, 4, 3)), k=np.ones((1, 4, 3)))
    with pytest.raises(SystemExit):
        find(tmp_path / "h.csv", "--input", tmp_path / "source.npz", "--longest", 4)
    assert "has d = 3; change the source" in capsys.readouterr().err
    assert not (tmp_path / "h.csv").exists()


def test_a_first_pivot_that_cancels_leaves_nothing_to_search(tmp_path):
    q = np.array([[[1.0, 1.0], [1.0, 0.0]]])
    k = np.array([[[1.0, -1.0 + 2.0**-52], [1.0, 0.0]]])
    np.savez(tmp_path / "source.npz", q=q, k=k)
    table = find(tmp_path / "h.csv", "--input", tmp_path / "source.npz", "--longest", 2)
    assert {(row["horizon"], row["searched"]) for row in table} == {("", "0")}


def test_a_condition_number_that_is_not_known_ends_the_search():
    found = horizons(lambda N: N / 10 if N < 40 else np.nan, 1000)
    assert found["bfloat16"].N == 22 and found["float16"].N == 31
    assert found["float64"].N is None and found["float64"].searched == 32
