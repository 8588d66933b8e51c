"""The benchmark on tiny matrices: every method has a row, errors are small, limits are kept.

Nothing here depends on how long anything takes.
"""

import csv
import json
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import benchmark
import benchmark_matrix
import benchmark_run
from benchmark import METHODS, references
from conftest import Repository
from plot_performance import METHODS as PLOTTED

N = 40
WHOLE = {"engine", "engine_one_thread", "numpy_svd", "scipy_svdvals"}


def run(script, *arguments: object) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [script.__file__, *map(str, arguments)])
        script.main()


@pytest.fixture(scope="module")
def matrix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("benchmark") / "matrix.npz"
    run(benchmark_matrix, "--N", N, "--output", path)
    return path


def unenclosed(folder: Path, N: int) -> Path:
    path = folder / f"{N}.npz"
    np.savez(
        path, F=np.ones((N, 1)), G=np.ones((N, 1)), shape=[N, 1], bounds=np.full((2, 2), np.nan)
    )
    return path


def table(matrices: list[Path], folder: Path, *options: object) -> list[dict[str, str]]:
    options = ("--repeats", 1, "--threads", 2, "--memory-mb", 4000, *options)
    run(benchmark, "--matrices", *matrices, *options, "--output", folder / "table.csv")
    with (folder / "table.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_every_method_has_a_row_and_small_errors_or_a_reason(matrix, tmp_path):
    rows = table([matrix], tmp_path)
    assert [row["method"] for row in rows] == list(METHODS)
    for row in rows:
        assert (row["N"], row["d"]) == (str(N), "64")
        assert row["threads"] == ("1" if row["method"] == "engine_one_thread" else "2")
        assert row["seconds"] or row["cannot"]
        assert bool(row["speedup"]) == bool(row["log10_condition"]) == (row["method"] in WHOLE)
        assert (row["reference_sigma_max"], row["reference_sigma_min"]) == ("enclosure",) * 2
        for name in benchmark.ERRORS:
            assert not row[name] or float(row[name]) < 1e-9, row
        if row["seconds"]:
            assert row["error_sigma_max"] or row["error_sigma_min"]
            assert float(row["mb_peak"]) >= float(row["mb_before"]) > 0
    ran = {row["method"] for row in rows if row["seconds"]}
    assert ran >= {name for name in METHODS if not name.startswith("primme")}


def test_a_run_over_its_time_says_so(matrix):
    found = benchmark.run("engine", matrix, 1, 0.001)
    assert found == {"cannot": "over 0.001 s", "ran_out": True}


def test_a_run_that_dies_says_so(tmp_path):
    found = benchmark.run("engine", tmp_path / "none.npz", 1, 60)
    assert "ended with status 1: error:" in found["cannot"]
    assert "no such file" in found["cannot"]


def test_what_a_library_raises_or_lacks_is_its_answer(matrix):
    def raising():
        def solve(F, G):
            raise np.linalg.LinAlgError("no convergence\nmore")

        return solve

    def absent():
        import a_module_that_is_nowhere  # noqa: F401

    method = benchmark_run.Method
    assert benchmark_run.run(method(raising), matrix, 60) == {
        "cannot": "LinAlgError: no convergence"
    }
    assert benchmark_run.run(method(absent), matrix, 60) == {
        "cannot": "not installed: a_module_that_is_nowhere"
    }


def test_the_worker_prints_one_line(matrix, capsys):
    run(benchmark_run, "--method", "numpy_svd", "--matrix", matrix)
    found = json.loads(capsys.readouterr().out)
    assert {"log10_sigma_max", "log10_sigma_min", "seconds", "mb_before", "mb_peak"} <= set(found)


class Pretended:
    """Takes the place of benchmark.run: how long each method takes is made up."""

    def __init__(self, seconds: dict[str, float], limit: float = 300.0):
        self.seconds, self.limit, self.calls = seconds, limit, []

    def __call__(self, name: str, path: Path, threads: int, limit: float) -> dict:
        self.calls.append((name, int(path.stem)))
        took = self.seconds.get(name, 1.0)
        if took > self.limit:
            return {"cannot": f"over {self.limit:g} s", "ran_out": True}
        ends = {"log10_sigma_max": 2.0, "log10_sigma_min": 0.0, "residual_min": 1e-12}
        return ends | {"seconds": took, "mb_before": 1.0, "mb_peak": 2.0}


def test_methods_take_turns_long_runs_are_not_repeated_and_lost_ones_not_tried_again(
    tmp_path, monkeypatch
):
    pretended = Pretended({"numpy_svd": 30.0, "scipy_svdvals": 400.0})
    monkeypatch.setattr(benchmark, "run", pretended)
    matrices = [unenclosed(tmp_path, size) for size in (4, 8)]
    rows = table(matrices, tmp_path, "--repeats", 3)
    names = [name for name, size in pretended.calls if size == 4]
    assert names[: len(METHODS)] == list(METHODS)
    counts = Counter(pretended.calls)
    assert (counts["engine", 4], counts["numpy_svd", 4], counts["scipy_svdvals", 4]) == (3, 1, 1)
    assert counts["scipy_svdvals", 8] == 0
    lost = [row["cannot"] for row in rows if row["method"] == "scipy_svdvals"]
    assert lost == ["over 300 s", "over 300 s at N = 4"]
    (engine, _) = (row for row in rows if row["method"] == "engine")
    assert (engine["repeats"], float(engine["speedup"])) == ("3", 30.0)


def test_what_does_not_fit_is_not_tried(tmp_path, monkeypatch):
    pretended = Pretended({})
    monkeypatch.setattr(benchmark, "run", pretended)
    rows = table([unenclosed(tmp_path, 1024)], tmp_path, "--memory-mb", 8)
    tried = {name for name, _ in pretended.calls}
    assert {row["method"] for row in rows if row["seconds"]} == tried - {"reference"}
    assert "engine" in tried and "numpy_svd" not in tried
    reasons = {row["cannot"] for row in rows if row["method"] not in tried}
    assert reasons == {"needs 0.0173 GB, and there are 0.00839 GB"}


def test_the_reference_is_lapack_where_double_precision_can_tell_and_else_the_engine():
    nothing = np.full((2, 2), np.nan)
    again = {"log10_sigma_max": 2.0, "log10_sigma_min": -30.0, "residual_min": 1e-11}

    def dense(log10_min: float) -> dict:
        ends = {"log10_sigma_max": 2.5, "log10_sigma_min": log10_min}
        row = ends | {"N": 100, "seconds": 1.0, "log10_condition": 2.5 - log10_min}
        return {"numpy_svd": {"cannot": "over 1 s"}, "scipy_svdvals": row}

    values, sources = references(nothing, dense(-2.0), again)
    assert values == {"sigma_max": 2.5, "sigma_min": -2.0}
    assert sources["reference_uncertainty"] == pytest.approx(100 * 2.0**-52 * 10**4.5)
    values, sources = references(nothing, dense(-14.0), again)
    assert values == {"sigma_max": 2.5, "sigma_min": -30.0}
    assert sources == {
        "reference_sigma_max": "scipy_svdvals",
        "reference_sigma_min": "engine_again",
        "reference_uncertainty": 1e-11,
    }
    lost = {name: {"cannot": "over 1 s"} for name in ("numpy_svd", "scipy_svdvals")}
    values, _ = references(nothing, lost, again)
    assert values == {"sigma_max": 2.0, "sigma_min": -30.0}
    assert references(nothing, lost, {"cannot": "x"})[0] == {}


def test_a_reference_has_no_error_and_a_wrong_order_of_magnitude_has():
    rows = {
        "numpy_svd": {"log10_sigma_max": 2.0, "log10_sigma_min": -14.0, "log10_condition": 16.0},
        "engine": {"log10_sigma_max": 2.0, "log10_sigma_min": -400.0, "log10_condition": 402.0},
        "scipy_svdvals": {},
    }
    for row in rows.values():
        row["seconds"] = 2.0
    sources = {"reference_sigma_max": "numpy_svd", "reference_sigma_min": "engine_again"}
    benchmark.compare(rows, {"sigma_max": 2.0, "sigma_min": -400.0}, sources)
    assert "error_sigma_max" not in rows["numpy_svd"]
    assert rows["numpy_svd"]["error_sigma_min"] == np.inf
    assert rows["engine"]["error_sigma_max"] == rows["engine"]["error_sigma_min"] == 0.0


def test_the_table_is_whole_or_absent(matrix, tmp_path, monkeypatch):
    monkeypatch.setattr(benchmark, "run", Pretended({}))
    with pytest.raises(SystemExit):
        table([unenclosed(tmp_path, 4), tmp_path / "none.npz"], tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["4.npz"]


def test_every_method_can_be_plotted():
    assert list(PLOTTED) and set(PLOTTED) == set(METHODS)


@pytest.mark.workflow
def test_only_its_own_target_runs_the_benchmark(repository: Repository):
    study = repository.write(
        "tiny.yaml",
        "results: results/tiny\n"
        "sources: {g: {kind: gaussian, members: 1}}\n"
        "cells: [{source: g, N: 8, d: 2, feature_map: relu}]\n"
        "benchmark: {sizes: [64, 128], seconds: 20}\n",
    )
    own = {"draw_benchmark_matrix", "measure_performance", "plot_performance"}
    own |= {"measure_approximation_cost", "plot_approximation_cost"}
    assert not own & set(repository.planned(study))
    planned = repository.snakemake("-n", "benchmark", "--configfile", study).stdout
    assert all(f"rule {rule}:" in planned for rule in own)
    assert "measure_rank" not in planned
