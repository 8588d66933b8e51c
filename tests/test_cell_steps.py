"""The steps of a cell, from draws to tables, against the matrices formed exactly."""

import csv
import math
import subprocess
import sys
from fractions import Fraction
from itertools import groupby
from pathlib import Path

import flint
import mpmath
import numpy as np
import pytest

import build_cell
import check_bound
import compute_extremes
import compute_singular_values
import draw_ensemble
import measure_baselines
import measure_rank
import measure_spectrum
from causalrank import approximations
from causalrank.feature_maps import FEATURE_MAPS
from causalrank.precision import rounded
from causalrank.quantization import quantized
from cell_files import Cell, load_cell, save_cell
from conftest import ROOT

EPS = np.finfo(float).eps
SOURCE_N, N, D, MEMBERS = 14, 10, 3, 2
MAPS = ("elu_plus_one", "relu", "identity", "softmax")
LADDERS = {
    "truncation": (1, 4),
    "nystrom": (3,),
    "nystromformer": (3,),
    "linformer": (4,),
    "projection": (4,),
    "performer": (8,),
    "performer-orthogonal": (8,),
    "taylor": (2,),
    "window": (1, 4),
    "top-k": (3,),
    "decay": (0.5,),
    "rounding": ("float32", "bfloat16", "float16"),
    "quantization": (4, 8),
    "noise": (0.001, 0.1),
    "adversary": (0.1,),
}
RANK_TOLERANCES = {"numpy": None, "1e-4": 1e-4, "1e-12": 1e-12}


def run(script, *arguments: object) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [script.__file__, *map(str, arguments)])
        script.main()


def draw(folder: Path) -> Path:
    shape = ("--N", SOURCE_N, "--d", D, "--members", MEMBERS)
    path = folder / "source.npz"
    run(draw_ensemble, "--source", "drawn", *shape, "--scale", 1.0, "--output", path)
    return path


def measure(folder: Path, limit: int) -> None:
    """Every table of the cell in a folder, nothing computed above `limit`."""
    factors, sigma = folder / "factors.npz", folder / "singular_values.npz"
    both = ("--input", factors, "--singular-values", sigma)
    limits = ("--max-N", limit, "--max-N-rounded", limit, "--rounded-members", 9)
    run(compute_singular_values, *limits, "--input", factors, "--output", sigma)
    outputs = ("--output", folder / "rank.csv", "--block-rank", folder / "block_rank.csv")
    run(measure_rank, "--max-N-dense", limit, *both, *outputs)
    extremes, limits = folder / "extremes.npz", ("--max-N-dense", limit, "--max-N-sums", limit)
    run(compute_extremes, *limits, "--input", factors, "--output", extremes)
    names = ("spectrum", "numerical_rank", "decay", "density", "methods")
    options = [x for name in names for x in (f"--{name.replace('_', '-')}", folder / f"{name}.csv")]
    run(measure_spectrum, *both, "--extremes", extremes, *options)
    options = ("--spectrum", folder / "spectrum.csv", "--output", folder / "baselines.csv")
    run(measure_baselines, *limits, "--input", factors, *options)
    ladders = [word for name, ladder in LADDERS.items() for word in (f"--{name}", *ladder)]
    options = ("--input", factors, "--output", folder / "bound.csv")
    run(check_bound, "--max-N", limit, "--members", 9, *ladders, *options)


def build(name: str, source: Path, folder: Path, tokens: int = N) -> Path:
    key = ("--source", "drawn", "--N", tokens, "--d", D, "--feature-map", name)
    run(build_cell, *key, "--input", source, "--output", folder / "factors.npz")
    return folder


@pytest.fixture(scope="module", params=MAPS)
def cell(request, tmp_path_factory) -> Path:
    """The folder of a cell with all its tables."""
    folder = tmp_path_factory.mktemp(request.param)
    measure(build(request.param, draw(folder), folder), N)
    return folder


def rows(folder: Path, table: str) -> list[dict]:
    with (folder / f"{table}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def matrix(loaded: Cell, row: dict) -> np.ndarray:
    """The mixing matrix of a row, formed here."""
    F, G = loaded.F[int(row["member"])], loaded.G[int(row["member"])]
    A = np.exp(F @ G.T / math.sqrt(D)) if loaded.feature_map == "softmax" else F @ G.T
    A = np.tril(A) if row["mask"] == "causal" else A
    sums = A.sum(axis=1, keepdims=True)
    return A / np.where(sums == 0, 1, sums) if row["normalization"] == "row" else A


def exact_matrix(loaded: Cell, row: dict) -> list[list[Fraction]]:
    """The unnormalized matrix without rounding; for softmax, its stored doubles."""
    if loaded.feature_map == "softmax":
        A = matrix(loaded, row | {"normalization": "none"}).tolist()
        return [[Fraction(x) for x in line] for line in A]
    F, G = (X[int(row["member"])].tolist() for X in (loaded.F, loaded.G))
    A = [[sum(Fraction(a) * Fraction(b) for a, b in zip(f, g, strict=True)) for g in G] for f in F]
    if row["mask"] == "causal":
        A = [[x if j <= i else Fraction(0) for j, x in enumerate(r)] for i, r in enumerate(A)]
    return A


def test_factors_are_the_map_of_the_first_tokens(cell):
    loaded = load_cell(cell / "factors.npz")
    phi = FEATURE_MAPS.get(loaded.feature_map, lambda x: x)
    with np.load(cell / "source.npz") as source:
        np.testing.assert_array_equal(loaded.F, phi(source["q"][:, :N]))
        np.testing.assert_array_equal(loaded.G, phi(source["k"][:, :N]))
        np.testing.assert_array_equal(loaded.v, source["v"][:, :N])
    assert loaded.key == ("drawn", N, D, loaded.feature_map)


@pytest.mark.parametrize(
    ("table", "count"),
    [
        *(("rank", 1), ("block_rank", 5), ("spectrum", 1), ("numerical_rank", 18)),
        *(("bound", 21), ("methods", 1), ("baselines", 1)),
    ],
)
def test_every_matrix_has_its_rows_in_order(cell, table, count):
    loaded = load_cell(cell / "factors.npz")
    keys = [tuple(row.values())[:7] for row in rows(cell, table)]
    expected = [tuple(map(str, (*loaded.key, *matrix))) for matrix in loaded.matrices()]
    assert [key for key, _ in groupby(keys)] == expected
    assert len(keys) == count * len(expected)


def test_rank_table(cell):
    loaded = load_cell(cell / "factors.npz")
    for row in rows(cell, "rank"):
        A = exact_matrix(loaded, row)
        exact = flint.fmpq_mat([[flint.fmpq(x.numerator, x.denominator) for x in r] for r in A])
        assert int(row["exact_rank"]) == exact.rank()
        assert int(row["exact_rank_lower"]) <= exact.rank() <= int(row["exact_rank_upper"])
        zeros = 0 if loaded.feature_map == "softmax" else sum(A[i][i] == 0 for i in range(N))
        assert int(row["zero_diagonal"]) == zeros
        log_det, B = float(row["log_abs_det"] or "nan"), matrix(loaded, row)
        if exact.rank() < N:
            assert log_det == -math.inf
            continue
        with mpmath.workdps(80):
            det = exact.det()
            expected = mpmath.log(abs(mpmath.mpf(int(det.p)))) - mpmath.log(int(det.q))
            if row["normalization"] == "row":
                sums = [sum(line) for line in A]
                expected -= sum(
                    mpmath.log(abs(s.numerator)) - mpmath.log(s.denominator) for s in sums
                )
        # LU, or N dots and N row sums, each relatively wrong by its roundings times how much it
        # cancels; the condition number bounds both.
        assert log_det == pytest.approx(float(expected), abs=N**3 * EPS * np.linalg.cond(B))


def test_block_rank_table(cell):
    loaded = load_cell(cell / "factors.npz")
    for row in rows(cell, "block_rank"):
        A, i = exact_matrix(loaded, row), int(row["split"])
        A = flint.fmpq_mat([[flint.fmpq(x.numerator, x.denominator) for x in line] for line in A])
        assert int(row["exact_rank"]) == A.rank()
        table = A.table()
        below = flint.fmpq_mat([line[:i] for line in table[i:]]).rank()
        above = flint.fmpq_mat([line[i:] for line in table[:i]]).rank()
        for name, rank in (("below", below), ("above", above)):
            low, high = int(row[f"{name}_rank_lower"]), int(row[f"{name}_rank_upper"])
            assert int(row[f"{name}_rank"]) == low == rank <= high <= min(i, N - i)
            certificate = row[f"{name}_certificate"]
            if name == "above" and row["mask"] == "causal":
                assert (certificate, high) == ("masked", 0)
            else:
                assert certificate.endswith("(rounded exp)") == (loaded.feature_map == "softmax")
                assert certificate.startswith("bounds meet" if low == high else "modular")
    assert {int(row["split"]) for row in rows(cell, "block_rank")} == {1, 2, 5, 7, 8}


@pytest.mark.parametrize("name", ["exp", "softmax"])
def test_one_token_has_no_blocks(name):
    cell = Cell("s", 1, 2, name, np.ones((2, 1, 2)), np.ones((2, 1, 2)), None)
    table = list(measure_rank.block_rows(cell, measure_rank.exact_ranks(cell, 1), 1))
    assert [row[4:7] for row in table] == list(cell.matrices())
    assert all(row[7:] == (None,) * 9 + (1,) for row in table)


def test_spectrum_table(cell):
    loaded = load_cell(cell / "factors.npz")
    for row in rows(cell, "spectrum"):
        A = matrix(loaded, row)
        norms = {"sigma_max": 2, "frobenius_norm": "fro", "nuclear_norm": "nuc"}
        for column, order in norms.items():
            np.testing.assert_allclose(
                float(row[column]), np.linalg.norm(A, order), rtol=N * N * EPS
            )
        if loaded.feature_map == "softmax":
            assert row["method"] == "gesdd" and row["residual_max"] == row["residual_min"] == ""
        elif row["mask"] == "bidirectional":
            assert (row["method"], row["sigma_min"], row["log10_condition"]) == (
                *("qr, gesdd", "0.0", "inf"),
            )
            continue
        else:
            assert row["method"] in ("gesdd", "gesdd, lanczos")
            assert max(float(row["residual_max"]), float(row["residual_min"])) < 1e-9
        exact = exact_matrix(loaded, row)
        if any(exact[i][i] == 0 for i in range(N)) and row["mask"] == "causal":
            assert (row["sigma_min"], row["log10_condition"]) == ("0.0", "inf")
        elif row["log10_condition"]:
            condition = np.linalg.cond(A)
            # A relative error of N^2 eps cond of sigma_min, over ln 10, and Lanczos' residuals.
            atol = N * N * EPS * condition + 1e-9
            np.testing.assert_allclose(
                float(row["log10_condition"]), math.log10(condition), atol=atol
            )


def test_methods_table(cell):
    loaded = load_cell(cell / "factors.npz")
    for row in rows(cell, "methods"):
        values = list(row.values())[7:]
        if row["mask"] == "bidirectional" or loaded.feature_map == "softmax":
            assert set(values) == {""}
            continue
        assert float(row["sigma_max_difference"]) <= N * EPS + 1e-9
        if row["sigma_min_difference"]:
            # Weyl for the dense value, and for the rounding of the matrix itself; the residual.
            allowance = 2 * float(row["sigma_min_allowance"]) + 1e-9
            assert float(row["sigma_min_difference"]) <= allowance
        else:
            assert float(row["log10_condition_structured"]) > -math.log10(N * EPS)


def test_baselines_table(cell):
    loaded = load_cell(cell / "factors.npz")
    spectrum = {tuple(row.values())[4:7]: row for row in rows(cell, "spectrum")}
    ones = {"none": np.tri(N), "row": np.tri(N) / np.arange(1, N + 1)[:, None]}
    differing = 0
    for row in rows(cell, "baselines"):
        for rank in ("stable_rank", "effective_rank"):
            assert row[rank] == spectrum[tuple(row.values())[4:7]][rank]
            if row["mask"] == "bidirectional":
                assert row[f"{rank}_all_ones"] == "1.0"
                assert row[f"{rank}_shuffled"] == row[rank]
            else:
                differing += row[f"{rank}_shuffled"] != row[rank]
        if row["mask"] == "causal":
            sigma = np.linalg.svd(ones[row["normalization"]], compute_uv=False)
            p = sigma / sigma.sum()
            expected = (sigma @ sigma) / sigma[0] ** 2, math.exp(-(p @ np.log(p)))
            got = float(row["stable_rank_all_ones"]), float(row["effective_rank_all_ones"])
            np.testing.assert_allclose(got, expected, rtol=N * N * EPS)
    assert differing >= MEMBERS * 2 and loaded.F.shape[1] == N


@pytest.mark.parametrize("name", ["elu_plus_one", "relu", "identity"])
def test_beyond_the_dense_limit(tmp_path, name):
    """The same cell with all singular values and without: the latter lies within its errors."""
    tokens, rng = 150, np.random.default_rng(3)
    shape = (2, tokens, D)
    source = tmp_path / "source.npz"
    np.savez(source, q=rng.standard_normal(shape), k=rng.standard_normal(shape))
    for folder, limit in (("dense", tokens), ("structured", tokens - 1)):
        build(name, source, tmp_path / folder, tokens)
        files = {
            key: tmp_path / folder / f"{key}.npz"
            for key in ("factors", "singular_values", "extremes")
        }
        options = ("--max-N", limit, "--max-N-rounded", 0, "--rounded-members", 0)
        options += ("--input", files["factors"], "--output", files["singular_values"])
        run(compute_singular_values, *options)
        options = ("--max-N-dense", limit, "--max-N-sums", tokens, "--input", files["factors"])
        run(compute_extremes, *options, "--output", files["extremes"])
        names = ("spectrum", "numerical-rank", "decay", "density", "methods")
        options = [x for key in names for x in (f"--{key}", tmp_path / folder / f"{key}.csv")]
        inputs = ("--input", files["factors"], "--singular-values", files["singular_values"])
        run(measure_spectrum, *inputs, "--extremes", files["extremes"], *options)
        limits = ("--max-N-dense", limit, "--max-N-sums", tokens, "--input", files["factors"])
        tables = ("--spectrum", tmp_path / folder / "spectrum.csv")
        run(measure_baselines, *limits, *tables, "--output", tmp_path / folder / "baselines.csv")
    dense, structured = (rows(tmp_path / x, "spectrum") for x in ("dense", "structured"))
    for exact, bounded in zip(dense, structured, strict=True):
        if exact["mask"] == "bidirectional":
            assert bounded == exact
            continue
        first = bounded["member"] == "0"
        assert bounded["method"] == ("lanczos, inertia" if first else "lanczos")
        assert bounded["cumulative_at_quarter"] == ""
        for column in ("log10_condition", "sigma_max", "frobenius_norm", "stable_rank"):
            assert float(bounded[column]) == pytest.approx(float(exact[column]), rel=1e-9)
        for column in ("nuclear_norm", "effective_rank"):
            assert (bounded[column] != "") == first
            if not first:
                continue
            distance = abs(float(bounded[column]) - float(exact[column]))
            assert distance <= float(bounded[f"{column}_error"]) < 0.2 * float(exact[column])
            assert exact[f"{column}_error"] == ""
    counts = [
        {tuple(row.values())[4:8]: row["count"] for row in rows(tmp_path / x, "density")}
        for x in ("dense", "structured")
    ]
    assert counts[0] == counts[1] and len(counts[0]) == 4 * 48
    ranks = [rows(tmp_path / x, "numerical-rank") for x in ("dense", "structured")]
    for exact, counted in zip(*ranks, strict=True):
        known = exact["precision"] == "float64" and exact["tolerance"] in ("1e-4", "1e-6")
        known = known and (exact["member"] == "0" or exact["mask"] == "bidirectional")
        if known or (exact["mask"] == "bidirectional" and exact["precision"] == "float64"):
            assert exact["numerical_rank"] == counted["numerical_rank"] != ""
        else:
            assert counted["numerical_rank"] == ""
    sampled = [row for row in rows(tmp_path / "structured", "methods") if row["nuclear_norm_slq"]]
    assert {row["member"] for row in sampled} == {"0"} and len(sampled) == 2
    baselines = [rows(tmp_path / x, "baselines") for x in ("dense", "structured")]
    for exact, bounded in zip(*baselines, strict=True):
        for other in ("_all_ones", "_shuffled"):
            column = f"stable_rank{other}"
            assert float(bounded[column]) == pytest.approx(float(exact[column]), rel=1e-8)
            column = f"effective_rank{other}"
            if bounded[column] == "":
                assert bounded["mask"] == "causal" and bounded["member"] == "1"
                assert other == "_shuffled"
                continue
            assert float(bounded[column]) == pytest.approx(float(exact[column]), rel=0.1)


def test_numerical_rank_table(cell):
    loaded = load_cell(cell / "factors.npz")
    for row in rows(cell, "numerical_rank"):
        A = rounded(matrix(loaded, row), row["precision"])
        eps = {"float64": EPS, "float32": 2.0**-23, "bfloat16": 2.0**-7}[row["precision"]]
        rtol = N * eps if row["tolerance"] == "numpy" else float(row["tolerance"])
        sigma = np.linalg.svd(A, compute_uv=False)
        if (np.abs(sigma / sigma[0] - rtol) > N * N * EPS).all():
            assert int(row["numerical_rank"]) == np.linalg.matrix_rank(A, rtol=rtol)


def test_decay_table(cell):
    loaded = load_cell(cell / "factors.npz")
    table = rows(cell, "decay")
    assert {row["member"] for row in table} == {"0"}
    for _, curve in groupby(table, key=lambda row: (row["mask"], row["normalization"])):
        curve = list(curve)
        indices = np.array([int(row["index"]) for row in curve])
        assert indices[0] == 1 and indices[-1] == N and (np.diff(indices) > 0).all()
        sigma = np.linalg.svd(matrix(loaded, curve[0]), compute_uv=False)
        got = [float(row["sigma_relative"]) for row in curve]
        relative = sigma[indices - 1] / sigma[0]
        np.testing.assert_allclose(got, relative, rtol=0, atol=N * N * EPS)
        got = [float(row["cumulative"]) for row in curve]
        cumulative = np.cumsum(sigma)[indices - 1] / sigma.sum()
        np.testing.assert_allclose(got, cumulative, rtol=0, atol=N * N * EPS)


def approximated(A: np.ndarray, row: dict[str, str], q: np.ndarray, k: np.ndarray) -> np.ndarray:
    """A_hat of a row whose approximation is not drawn, entry by entry."""
    name, strength = row["approximation"], row["strength"]
    if name == "rounding":
        return rounded(A, strength)
    if name == "quantization":
        return quantized(A, int(strength))
    if name == "truncation":
        U, s, Vt = np.linalg.svd(A)
        r = int(strength)
        return U[:, :r] @ np.diag(s[:r]) @ Vt[:r]
    i, j = np.indices(A.shape)
    if name == "taylor":
        s = q @ k.T / math.sqrt(q.shape[1])
        A_hat = 1 + s + s * s / 2
        A_hat = np.where(j <= i, A_hat, 0.0) if row["mask"] == "causal" else A_hat
    elif name == "top_k":
        A_hat = A.copy()
        for entries in A_hat:
            entries[np.argsort(-np.abs(entries), kind="stable")[int(strength) :]] = 0.0
    elif name == "decay":
        A_hat = A * float(strength) ** np.abs(i - j)
    else:
        width = int(strength)
        causal = row["mask"] == "causal"
        A_hat = np.where(i - j < width if causal else abs(i - j) <= width // 2, A, 0.0)
    if row["normalization"] == "row":
        sums = A_hat.sum(axis=1, keepdims=True)
        A_hat = A_hat / np.where(sums == 0, 1.0, sums)
    return A_hat


ROW_SOFTMAX = {"linformer", "nystromformer"}
KERNEL = {"performer", "performer_orthogonal", "taylor"}
DRAWN = {"linformer", "projection", "performer", "performer_orthogonal", "noise", "adversary"}


def test_bound_table(cell):
    loaded = load_cell(cell / "factors.npz")
    table = [row for row in rows(cell, "bound") if row["exists"] == "1"]
    for row in table:
        A, v = matrix(loaded, row), loaded.v[int(row["member"])]
        assert row["violations"] == row["entrywise_violations"] == "0"
        assert row["spectral_violations"] == "0" and row["reason"] == ""
        largest = np.linalg.norm(v, axis=1).max()
        np.testing.assert_allclose(float(row["value_norm_max"]), largest, rtol=4 * EPS)
        if row["approximation"] in DRAWN | {"nystrom", "nystromformer"}:
            continue
        member = int(row["member"])
        A_hat = approximated(A, row, loaded.F[member], loaded.G[member])
        # Entries of E come from entries and singular vectors of A in another order of rounding; a
        # row whose entries cancel magnifies it by the largest entry after its division.
        reach = np.linalg.norm(A, 2) * max(1, np.abs(A_hat).max())
        slack = {"rtol": 1e-9, "atol": N * N * EPS * reach * max(1, largest)}
        E = A_hat - A
        output = np.linalg.norm(E @ v, axis=1)
        spectral = np.linalg.norm(E, 2)
        expected = {
            "row_l1_error_max": np.abs(E).sum(axis=1).max(),
            "bound_max": np.abs(E).sum(axis=1).max() * largest,
            "output_error_max": output.max(),
            "output_error_median": np.median(output),
            "output_error_q95": np.quantile(output, 0.95),
            "output_over_value": output.max() / largest,
            "entrywise_bound": N * np.abs(E).max() * largest,
            "entrywise_over_value": N * np.abs(E).max(),
            "frobenius_error": np.linalg.norm(E),
            "relative_frobenius_error": np.linalg.norm(E) / np.linalg.norm(A),
            "relative_output_error": np.linalg.norm(E @ v) / np.linalg.norm(A @ v),
            "spectral_error": spectral,
            "spectral_bound": spectral * np.linalg.norm(v, 2),
        }
        for column, value in expected.items():
            if "relative" in column:
                slack = slack | {"atol": slack["atol"] / min(1, np.linalg.norm(A @ v))}
            np.testing.assert_allclose(float(row[column]), value, **slack, err_msg=str(row))


def test_the_worst_values_attain_the_bound(cell):
    """To rounding, in every matrix that has an error; drawn values stay below."""
    table = [row for row in rows(cell, "bound") if row["approximation"] == "adversary"]
    assert len(table) == MEMBERS * 4
    assert all(abs(float(row["tightness_max"]) - 1) < 100 * EPS for row in table)


def test_what_does_not_exist_has_a_row_and_a_reason(cell):
    """Every matrix has a row for each strength; those of no form are empty, and say why."""
    table = rows(cell, "bound")
    assert len(table) == MEMBERS * 4 * sum(map(len, LADDERS.values()))
    softmax = table[0]["feature_map"] == "softmax"
    for row in table:
        name, causal = row["approximation"], row["mask"] == "causal"
        lacks = not softmax and name in ROW_SOFTMAX | KERNEL
        lacks |= causal and name in ROW_SOFTMAX | {"projection", "nystrom"}
        lacks |= name in ROW_SOFTMAX and row["normalization"] == "none"
        assert row["exists"] == str(int(not lacks))
        assert bool(row["reason"]) == lacks
        assert all((row[column] == "") == lacks for column in check_bound.MEASURED)
        if causal and name == "projection":
            assert row["reason"].startswith("no causal form")


def test_noise_differs_between_matrices_and_strengths(cell):
    noisy = [row for row in rows(cell, "bound") if row["approximation"] == "noise"]
    assert len(noisy) == MEMBERS * 4 * 2
    assert len({row["tightness_median"] for row in noisy}) == len(noisy)


def test_tables_repeat_and_do_not_depend_on_company(cell, tmp_path):
    """Two cells in one command, the one with the other's factors beside it."""
    name = load_cell(cell / "factors.npz").feature_map
    other = build("softplus", cell / "source.npz", tmp_path / "other")
    again = build(name, cell / "source.npz", tmp_path / "again")
    assert (again / "factors.npz").read_bytes() == (cell / "factors.npz").read_bytes()
    folders = (other, again)
    factors = [folder / "factors.npz" for folder in folders]
    sigma = [folder / "singular_values.npz" for folder in folders]
    both = ("--input", *factors, "--singular-values", *sigma)
    limits = ("--max-N", N, "--max-N-rounded", N, "--rounded-members", 9)
    run(compute_singular_values, *limits, "--input", *factors, "--output", *sigma)
    tables = [[folder / name for folder in folders] for name in ("rank.csv", "block_rank.csv")]
    outputs = ("--output", *tables[0], "--block-rank", *tables[1])
    run(measure_rank, "--max-N-dense", N, *both, *outputs)
    for table in ("singular_values.npz", "rank.csv", "block_rank.csv"):
        assert (again / table).read_bytes() == (cell / table).read_bytes()


@pytest.mark.parametrize("name", ["relu", "softmax"])
def test_above_the_limits_fields_are_empty(tmp_path, name):
    measure(build(name, draw(tmp_path), tmp_path), N - 1)
    factored = name == "relu"
    with np.load(tmp_path / "singular_values.npz") as sigma:
        assert np.isnan(sigma["float32"]).all() and np.isnan(sigma["bfloat16"]).all()
        assert np.isnan(sigma["float64"][:, 1]).all()
        assert np.isfinite(sigma["float64"][:, 0]).all() == factored  # from the factors
    for row in rows(tmp_path, "spectrum"):
        if not factored:
            assert set(list(row.values())[7:]) == {""}
        elif row["mask"] == "causal":
            assert row["method"] == "lanczos" and row["stable_rank"] and row["log10_condition"]
            assert row["effective_rank"] == row["nuclear_norm"] == ""
    for table, column in (("numerical_rank", "numerical_rank"), ("decay", "sigma_relative")):
        for row in rows(tmp_path, table):
            assert (row["mask"] == "bidirectional" and factored) or row[column] == ""
    assert len(rows(tmp_path, "bound")) == MEMBERS * 4
    for row in rows(tmp_path, "bound"):
        assert set(list(row.values())[7:-1]) == {""} and row["reason"] == check_bound.BEYOND
    for row in rows(tmp_path, "rank"):
        if name == "softmax" and row["mask"] == "bidirectional":
            assert (row["exact_rank"], row["exact_rank_lower"], row["log_abs_det"]) == ("",) * 3
            assert row["exact_rank_upper"] == str(N)
        else:
            assert row["exact_rank"] and row["certificate"] and row["log_abs_det"]
    for row in rows(tmp_path, "block_rank"):
        assert bool(row["below_rank"] and row["below_certificate"]) == (name == "relu")
        assert row["below_rank_upper"] and row["above_rank_upper"]


def test_rounded_matrices_have_limits_of_their_own():
    F = np.ones((2, 4, 1))
    cell = Cell("s", 4, 1, "identity", F, F, None)
    for limits, computed in (((4, 3), (2, 0, 0)), ((3, 4), (0, 1, 1)), ((4, 4), (2, 1, 1))):
        sigma = compute_singular_values.spectra(cell, *limits, 1)
        assert list(sigma) == ["float64", "float32", "bfloat16"]
        found = (np.isfinite(values).all(axis=(1, 2, 3)) for values in sigma.values())
        assert tuple(map(list, found)) == tuple([i < n for i in range(2)] for n in computed)


def test_a_source_without_values_has_no_bound(tmp_path):
    q = np.random.default_rng(0).standard_normal((2, 4, 3))
    save_cell(tmp_path / "factors.npz", Cell("s", 4, 3, "identity", q, q, None))
    options = ("--input", tmp_path / "factors.npz", "--output", tmp_path / "bound.csv")
    run(check_bound, "--max-N", 9, "--members", 9, *options)
    table = rows(tmp_path, "bound")
    assert len(table) == 8
    for row in table:
        assert set(list(row.values())[7:-1]) == {""} and row["reason"] == check_bound.NO_VALUES


def test_members_that_are_checked_are_spread():
    q = np.random.default_rng(0).standard_normal((5, 4, 2))
    cell = Cell("s", 4, 2, "identity", q, q, q)
    table = list(check_bound.rows(cell, 4, 2, {"noise": [0.1, 0.2]}))
    assert [row[4] for row in table if row[7] == "noise"] == [0] * 8 + [3] * 8
    assert [row[4] for row in table if row[-1] == check_bound.BEYOND] == [1] * 4 + [2] * 4 + [4] * 4
    assert check_bound.spread(12, 13) == set(range(12))


def test_members_that_are_checked_are_of_other_heads_and_layers():
    """Of one window of 6 layers of 12 heads."""
    assert check_bound.spread(72, 3) == {0, 25, 50}
    chosen = check_bound.spread(72, 12)
    assert len(chosen) == len({member % 12 for member in chosen}) == 12
    assert {member // 12 for member in chosen} == set(range(6))


def test_a_matrix_that_a_precision_cannot_hold_has_no_values_there():
    F = np.full((1, 3, 1), 1e30)
    cell = Cell("s", 3, 1, "identity", F, F, np.ones((1, 3, 1)))
    sigma = compute_singular_values.spectra(cell, 3, 3, 1)
    unnormalized = {name: values[0, 1, 0] for name, values in sigma.items()}
    assert np.isfinite(unnormalized["float64"]).all()
    assert np.isnan(unnormalized["float32"]).all() and np.isnan(unnormalized["bfloat16"]).all()
    assert all(np.isfinite(values[0, 1, 1]).all() for values in sigma.values())
    table = list(check_bound.rows(cell, 3, 1, {"rounding": ["float32", "bfloat16"]}))
    assert [row[9] is None for row in table] == [row[6] == "none" for row in table]
    assert all((row[-1] == approximations.NOT_FINITE) == (row[6] == "none") for row in table)


def test_log_det_of_entries_that_underflow():
    """Row sums of zero in double precision; the normalized determinant is 1/2."""
    F = np.full((1, 2, 1), 1e-174)
    sigma = np.full((1, 2, 2, 2), np.nan)
    cell = Cell("s", 2, 1, "exp", F, F, None)
    for row in measure_rank.rank_rows(cell, measure_rank.exact_ranks(cell, 0), sigma):
        if row[5] == "causal":
            expected = 4 * math.log(1e-174) if row[6] == "none" else math.log(0.5)
            assert row[-1] == pytest.approx(expected)


def test_method_is_told_from_the_mask_and_not_from_a_name():
    F = np.ones((1, 3, 1))
    cell = Cell("bidirectional", 3, 1, "identity", F, F, None)
    sigma, ends = np.ones((1, 2, 2, 3)), compute_extremes.compute(cell, 3, 3)
    sigma[..., -1] = 1e-17  # unresolved: the structured engine sees it
    methods = {row[5]: row[-4] for row in measure_spectrum.spectrum_rows(cell, sigma, ends)}
    assert methods == {"bidirectional": "qr, gesdd", "causal": "gesdd, lanczos"}


def test_the_sharper_method_says_what_sigma_min_is():
    """Beside 1e-3 from all singular values, good to 3 eps 1e3, Lanczos counts if it is better."""
    F = np.ones((1, 3, 1))
    cell = Cell("s", 3, 1, "identity", F, F, None)
    sigma, ends = np.ones((1, 2, 2, 3)), compute_extremes.compute(cell, 3, 3)
    sigma[..., -1] = 1e-3
    for error, expected in ((1e-14, "gesdd, lanczos"), (1e-12, "gesdd"), (np.nan, "gesdd")):
        ends["rounding_min"][:], ends["residual_min"][:] = error, 0.0
        rows = list(measure_spectrum.spectrum_rows(cell, sigma, ends))
        assert {row[-4] for row in rows if row[5] == "causal"} == {expected}
        assert all(row[8] is not None for row in rows if row[5] == "causal")


def test_what_lanczos_has_not_resolved_is_empty():
    F = np.ones((1, 3, 1))
    cell = Cell("s", 3, 1, "identity", F, F, None)
    sigma, ends = np.full((1, 2, 2, 3), np.nan), compute_extremes.compute(cell, 0, 0)
    ends["residual_min"][:] = 0.01
    for row in measure_spectrum.spectrum_rows(cell, sigma, ends):
        row = dict(zip(measure_spectrum.SPECTRUM_HEADER, row, strict=True))
        if row["mask"] == "causal":
            assert row["sigma_max"] and row["sigma_min"] is row["log10_condition"] is None
    ends["residual_max"][:] = 0.01
    for row in measure_spectrum.spectrum_rows(cell, sigma, ends):
        row = dict(zip(measure_spectrum.SPECTRUM_HEADER, row, strict=True))
        if row["mask"] == "causal":
            assert row["sigma_max"] is row["stable_rank"] is None and row["frobenius_norm"]


def test_ends_beyond_a_double_are_logarithms():
    """sigma_min is about 1e-400: its field is empty, and the condition number is there."""
    F = np.ones((1, 2000, 1)) * np.logspace(0, -200, 2000)[:, None]
    cell = Cell("s", 2000, 1, "identity", F, F, None)
    sigma = np.full((1, 2, 2, 2000), np.nan)
    rows = measure_spectrum.spectrum_rows(cell, sigma, compute_extremes.compute(cell, 0, 0))
    causal = dict(zip(measure_spectrum.SPECTRUM_HEADER, list(rows)[2], strict=True))
    assert causal["sigma_min"] is None and 395 < causal["log10_condition"] < 405


@pytest.mark.parametrize(
    ("name", "q", "tokens", "d", "message"),
    [
        ("exp", [[800.0], [1.0]], 2, 1, "overflows float64 at the entry 800"),
        ("exp", [[400.0], [1.0]], 2, 1, "overflows float64"),
        ("softmax", [[30.0], [1.0]], 2, 1, "exp overflows float64 at the score 900"),
        ("identity", [[1.0], [-1.0]], 2, 1, "the entries of row 0 sum to zero"),
        ("identity", [[1.0], [-1.0], [5.0]], 3, 1, "the entries of row 1 sum to zero"),
        ("relu", [[1.0], [1.0]], 3, 1, "the source has N = 2 and d = 1"),
        ("relu", [[1.0], [1.0]], 2, 4, "the source has N = 2 and d = 1"),
    ],
)
def test_a_cell_that_cannot_be_built_names_itself(tmp_path, capsys, name, q, tokens, d, message):
    np.savez(tmp_path / "source.npz", q=np.array([q]), k=np.array([q]))
    key = ("--source", "mine", "--N", tokens, "--d", d, "--feature-map", name)
    files = ("--input", tmp_path / "source.npz", "--output", tmp_path / "factors.npz")
    with pytest.raises(SystemExit) as caught:
        run(build_cell, *key, *files)
    assert caught.value.code == 1
    error = capsys.readouterr().err
    cell = f"error: cell source mine, N = {tokens}, d = {d}, feature_map {name}: "
    assert error.startswith(cell) and message in error and error.count("\n") == 1
    assert not (tmp_path / "factors.npz").exists()


def test_build_cell_as_a_command(tmp_path):
    np.savez(tmp_path / "source.npz", q=np.full((1, 2, 1), 800.0), k=np.ones((1, 2, 1)))
    key = ("--source", "mine", "--N", "2", "--d", "1", "--feature-map", "exp")
    files = ("--input", tmp_path / "source.npz", "--output", tmp_path / "factors.npz")
    command = [sys.executable, ROOT / "scripts" / "build_cell.py", *key, *files]
    failed = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert failed.returncode == 1 and "Traceback" not in failed.stderr
    assert "overflows float64 at the entry 800" in failed.stderr
