"""The cost table on tiny lengths: a row for everything, numbers or a reason."""

import csv
import sys

import pytest

import approximation_cost
from approximation_cost_run import MATRIX, STRENGTHS
from causalrank.approximations import APPROXIMATIONS
from causalrank.deployed import DEPLOYED
from plot_approximation_cost import LOOKS


def test_what_is_measured_is_what_there_is():
    left_out = {"noise", "adversary"}
    assert set(STRENGTHS) == (set(APPROXIMATIONS) - left_out) | {"exact", "exact_matrix"}
    assert set(LOOKS) == set(STRENGTHS)
    for name in set(STRENGTHS) & set(APPROXIMATIONS):
        assert APPROXIMATIONS[name].kind(STRENGTHS[name]) == STRENGTHS[name]


def test_rows_have_numbers_or_a_reason(tmp_path, monkeypatch):
    names = ("exact", "linformer", "top_k")
    monkeypatch.setattr(approximation_cost, "STRENGTHS", {n: STRENGTHS[n] for n in names})
    argv = ["approximation_cost.py", "--sizes", "80", "70", "--memory-mb", "1000"]
    monkeypatch.setattr(sys, "argv", [*argv, "--output", str(tmp_path / "cost.csv")])
    approximation_cost.main()
    with (tmp_path / "cost.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["N"] for row in rows] == ["70", "80"] * 6
    for row in rows:
        lacks = row["approximation"] == "linformer" and row["mask"] == "causal"
        assert bool(row["cannot"]) == lacks == (not row["seconds"]) == (not row["mb_peak"])
        assert lacks or float(row["mb_peak"]) >= float(row["mb_before"]) > 0
        assert (row["form"] == MATRIX) == (row["approximation"] not in DEPLOYED)


def test_limits_are_kept():
    found = approximation_cost.run("exact", "causal", 70, 0.001)
    assert found == {"cannot": "over 0.001 s"}
    assert "MB" in approximation_cost.reason("top_k", "causal", 10**6, 1000)
    assert approximation_cost.reason("performer", "causal", 10**6, 1000) == ""


@pytest.mark.parametrize("name", ["top_k"])
def test_a_run_that_dies_says_so(name):
    found = approximation_cost.run(name, "no such mask", 70, 60)
    assert found["cannot"].startswith("ended with status 2")
