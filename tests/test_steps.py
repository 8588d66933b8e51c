"""Every script's help, the controls, and the steps that make tables of tables."""

import csv
import importlib
import math
import runpy
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import average_heads
import compare_verdicts
import draw_ensemble
import list_left_cells
import summarize_members
import typeset_page
import typeset_table
from causalrank.ensembles import gaussian
from conftest import ROOT

EPS = np.finfo(float).eps
SCRIPTS = (
    *("draw_ensemble", "build_cell", "compute_singular_values", "measure_rank"),
    *("measure_spectrum", "check_bound", "gather_table", "compare_verdicts", "summarize_members"),
    *("average_heads", "judge_claims", "typeset_table", "list_left_cells"),
    *("benchmark", "benchmark_matrix", "benchmark_run"),
    *("approximation_cost", "approximation_cost_run"),
    *("estimate_growth", "gather_combinations", "compare_growth"),
    *("evaluate_layers", "evaluate_controls", "evaluate_head_pairs", "evaluate_tasks"),
    *("approximate_layers", "judge_acceptance"),
    *("measure_concentration", "encode_concentration", "average_concentration", "summarize_tails"),
    *("project_draws", "project_heads", "gather_lengths"),
)
CONTROLS = (
    "two_token",
    "running_sum",
    "rank_one_softmax",
    "product_rank",
    "all_ones",
    "matrix_against_output",
)
KEYS = ["source", "N", "d", "feature_map", "member", "mask", "normalization"]


def run(script, *arguments: object) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [script.__file__, *map(str, arguments)])
        script.main()


def control(name: str, folder: Path) -> list[dict]:
    """The rows of a control's table, numbers as floats."""
    run(importlib.import_module(name), "--output", folder / "table.csv")
    with (folder / "table.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    words = {"feature_map", "mask", "control"}
    return [
        {key: x if key in words else float(x or "nan") for key, x in row.items()} for row in rows
    ]


@pytest.mark.parametrize("name", [*SCRIPTS, *CONTROLS])
def test_help(name, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [f"{name}.py", "--help"])
    with pytest.raises(SystemExit) as caught:
        runpy.run_path(str(ROOT / "scripts" / f"{name}.py"), run_name="__main__")
    assert caught.value.code == 0
    text = capsys.readouterr().out
    assert text.startswith(f"usage: {name}.py")
    assert (
        " ".join(sys.modules.get(name, importlib.import_module(name)).__doc__.split()[:4]) in text
    )


def test_draw_ensemble(tmp_path):
    options = ("--source", "s", "--N", 5, "--d", 3, "--members", 2, "--scale", 2.0, "--output")
    for name in ("a.npz", "b.npz"):
        run(draw_ensemble, *options, tmp_path / name)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    with np.load(tmp_path / "a.npz") as drawn:
        assert sorted(drawn.files) == ["k", "q", "v"]
        for member in range(2):
            for name, x in zip("qkv", gaussian("s", 5, 3, member, 2.0), strict=True):
                np.testing.assert_array_equal(drawn[name][member], x)


def test_list_left_cells(tmp_path):
    run(list_left_cells, "--output", tmp_path / "left.csv", "--cells", "a/b", "c")
    assert (tmp_path / "left.csv").read_text() == "folder\na/b\nc\n"
    run(list_left_cells, "--output", tmp_path / "left.csv")
    assert (tmp_path / "left.csv").read_text() == "folder\n"


def test_two_token(tmp_path):
    rows = control("two_token", tmp_path)
    assert rows[0]["a"] == 0 and len(rows) == len({row["a"] for row in rows})
    for row in rows:
        a = row["a"]
        # Entries of A within 4 eps; a central difference of step 2^-17 errs by at most
        # step^2 / 3 (|tanh'''| <= 2) and by 4 eps / step.
        step = 2.0**-17
        slack = {"abs": step**2 / 3 + 4 * EPS / step}
        for column in ("eigenvalue_2", "determinant", "tanh_a"):
            assert row[column] == pytest.approx(math.tanh(a), abs=8 * EPS)
        assert row["eigenvalue_1"] == pytest.approx(1, abs=8 * EPS)
        assert row["rank"] == (2 if a > 0 else 1)
        closed = 1 / math.tanh(a) if a else math.inf
        assert row["condition_closed_form"] == pytest.approx(closed)
        assert row["condition_number"] == pytest.approx(closed, rel=16 * EPS * closed if a else 0)
        assert row["saturation"] == pytest.approx(1 - math.tanh(a) ** 2, abs=4 * EPS)
        assert row["response_opposite"] == pytest.approx(row["saturation"], **slack)
        assert row["response_equal"] == pytest.approx(0, **slack)


def test_running_sum(tmp_path):
    rows = control("running_sum", tmp_path)
    assert [row["position"] for row in rows] == list(range(1, 33))
    assert round(np.mean([row["causal_to_bidirectional"] for row in rows]), 4) == 0.2188
    assert all(0 <= row["running_sum_to_masked"] <= row["rounding_bound"] for row in rows)
    assert rows[-1]["causal_to_bidirectional"] <= rows[-1]["rounding_bound"]


def test_rank_one_softmax(tmp_path):
    rows = control("rank_one_softmax", tmp_path)
    assert (
        [row["exact_rank"] for row in rows]
        == [row["N"] for row in rows]
        == [2**n for n in range(1, 7)]
    )
    assert rows[-1]["numerical_rank"] < 64
    q, k, _ = gaussian("rank_one_softmax", 2, 1, 0, 1.0)
    det = np.exp(q[0] * k[0] + q[1] * k[1]) - np.exp(q[0] * k[1] + q[1] * k[0])
    # The difference cancels by less than 1000 here.
    assert rows[0]["log10_abs_det"] == pytest.approx(math.log10(abs(det[0])), abs=1000 * 4 * EPS)


def test_product_rank(tmp_path):
    rows = control("product_rank", tmp_path)
    assert len(rows) == 3 * 6 * 2 * 4
    for row in rows:
        assert row["rank_AV"] <= row["smaller_rank"] == min(row["rank_A"], row["rank_V"])
        if row["mask"] == "bidirectional":
            assert row["rank_A"] <= row["d"]
        elif row["feature_map"] in ("elu_plus_one", "exp", "softplus"):
            assert row["rank_A"] == 48 and row["rank_AV"] == row["rank_V"]
    assert {row["rank_V"] for row in rows} == {1, 4, 16, 48}


def test_all_ones(tmp_path):
    rows = control("all_ones", tmp_path)
    for row in rows:
        N = row["N"]
        dense = N * EPS * 4  # Weyl, relatively, on a sum of squares over a square
        if N <= 1024:
            assert row["stable_rank_dense"] == pytest.approx(row["stable_rank"], rel=dense)
        else:
            assert math.isnan(row["stable_rank_dense"])
        assert row["limit"] == pytest.approx(math.pi**2 / 8)
        # (1 - 1 / (2 N + 1)^2) (1 - x^2 / 3) pi^2 / 8 with x = pi / (4 N + 2), and 2 / pi beyond.
        assert 0 < row["limit"] - row["stable_rank"] < row["limit"] / N**2
        assert 0 <= row["condition_number"] - row["four_N_over_pi"] <= 2 / math.pi
    assert max(row["N"] for row in rows) >= 4096


def keyed(values: dict, **columns) -> pd.DataFrame:
    """A frame of one cell's causal matrices, one member a row."""
    count = len(next(iter(columns.values())))
    base = {"source": "s", "N": 8, "d": 2, "feature_map": "relu", "member": range(count)}
    return pd.DataFrame(base | {"mask": "causal", "normalization": "none"} | values | columns)


def test_matrix_against_output(tmp_path):
    """Errors are their closed forms; of values scaled up the output error has no limit."""
    rows = control("matrix_against_output", tmp_path)
    for row in rows:
        for error in ("frobenius", "output"):
            expected = row[f"{error}_closed_form"]
            assert row[f"relative_{error}_error"] == pytest.approx(expected, rel=8 * EPS)
        assert row["violations"] == 0
    scaled = [row for row in rows if row["control"] == "values_scaled_up"]
    assert len({row["relative_frobenius_error"] for row in scaled}) == 1
    assert max(row["relative_output_error"] for row in scaled) > 1000
    hidden = [row for row in rows if row["control"] == "error_in_the_null_space"]
    assert max(row["relative_frobenius_error"] for row in hidden) > 1000
    assert {row["relative_output_error"] for row in hidden} == {0.0}


def test_compare_verdicts(tmp_path):
    rank = keyed({"zero_diagonal": 1, "certificate": "c"}, exact_rank=[8, 7, 8, None])
    ranks = keyed({"precision": "float64", "tolerance": "numpy"}, numerical_rank=[8, 8, 5, 4])
    others = ranks.assign(precision="float32", numerical_rank=1)
    fixed = ranks.assign(tolerance="1e-4", numerical_rank=2)
    spectrum = keyed({"stable_rank": 1.5, "log10_condition": None}, effective_rank=[2.5] * 4)
    frames = {"rank": rank, "numerical-rank": pd.concat([others, ranks, fixed])}
    frames["spectrum"] = spectrum
    for name, frame in frames.items():
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
    inputs = [x for name in frames for x in (f"--{name}", tmp_path / f"{name}.csv")]
    run(compare_verdicts, *inputs, "--output", tmp_path / "verdicts.csv")
    text = (tmp_path / "verdicts.csv").read_text()
    table = pd.read_csv(tmp_path / "verdicts.csv")
    assert list(table.columns[:7]) == KEYS
    assert table.numerical_rank.tolist() == [8, 8, 5, 4]
    assert table.reason.tolist() == [
        "agree",
        "rounding errors lift 1 zero singular values above the tolerance",
        "3 directions lie below 1.8e-15 sigma_max: nonzero, but out of sight of double precision",
        "exact rank not computed at this N",
    ]
    assert "s,8,2,relu,0,causal,none,1,8,c,8,2.5,1.5,,agree\n" in text  # ranks stay whole numbers


def test_compare_verdicts_refuses_a_repeated_matrix():
    rank = keyed({"zero_diagonal": 1, "certificate": "c"}, exact_rank=[8])
    ranks = keyed({"precision": "float64", "tolerance": "numpy"}, numerical_rank=[8])
    spectrum = keyed({"stable_rank": 1.5, "log10_condition": 2.0}, effective_rank=[2.5])
    with pytest.raises(pd.errors.MergeError):
        compare_verdicts.verdicts(rank, pd.concat([ranks, ranks]), spectrum)


def test_summarize_members():
    columns = {"numerical_rank": 4, "effective_rank": 2.0, "zero_diagonal": 0, "exact_rank": 8}
    conditions = {"stable_rank": [1.0, 2.0, 6.0], "log10_condition": [1.0, None, 3.0]}
    verdicts = keyed(columns, **conditions)
    spectrum = keyed({}, cumulative_at_quarter=[0.5, 0.25, 0.75])
    table = summarize_members.summary(verdicts, spectrum).set_index("quantity")
    statistics = ["members", "resolved", "mean", "min", "max"]
    assert table.loc["stable_rank", statistics].tolist() == [3, 3, 3.0, 1.0, 6.0]
    assert table.loc["cumulative_at_quarter", statistics].tolist() == [3, 3, 0.5, 0.25, 0.75]
    assert table.loc["log10_condition", statistics[:2]].tolist() == [3, 2]
    assert table.loc["log10_condition", statistics[2:]].isna().all()
    assert len(table) == 7


def test_average_heads():
    quantities = {"stable_rank": [1.0, 3.0, 10.0], "cumulative_at_quarter": [0.5, 0.25, 1.0]}
    spectrum = keyed({}, effective_rank=[2.0, 4.0, 8.0], **quantities)
    members = pd.DataFrame(
        {"source": "s", "member": [0, 1, 2], "layer": 0, "head": [0, 0, 1], "window": [0, 1, 0]}
    )
    table = average_heads.heads(spectrum, members)
    assert table["head"].tolist() == [0, 1]
    assert table.stable_rank.tolist() == [2.0, 10.0]
    assert table.effective_rank.tolist() == [3.0, 8.0]
    assert table.cumulative_at_quarter.tolist() == [0.375, 1.0]
    with pytest.raises(pd.errors.MergeError):
        average_heads.heads(spectrum, pd.concat([members, members]))


def test_average_heads_of_two_models(tmp_path):
    spectrum = pd.concat(
        keyed(
            {"source": name, "effective_rank": 1.0, "cumulative_at_quarter": 1.0}, stable_rank=[x]
        )
        for name, x in (("a", 1.0), ("b", 2.0))
    )
    spectrum.to_csv(tmp_path / "spectrum.csv", index=False)
    for name, layer in (("a", 3), ("b", 4)):
        (tmp_path / f"{name}.csv").write_text(f"member,layer,head,window\n0,{layer},0,0\n")
    members = [tmp_path / "a.csv", tmp_path / "b.csv"]
    options = ("--spectrum", tmp_path / "spectrum.csv", "--output", tmp_path / "heads.csv")
    run(average_heads, *options, "--source", "a", "b", "--members", *members)
    table = pd.read_csv(tmp_path / "heads.csv")
    columns = ["source", "layer", "stable_rank"]
    assert table[columns].to_numpy().tolist() == [["a", 3, 1.0], ["b", 4, 2.0]]


def test_typeset_claims(tmp_path):
    (tmp_path / "claims.csv").write_text(
        "id,statement,expected,measured,verdict\n"
        'a_b,"rises 5 % & stays, x^2 ~ {y}\\z #1 $",1.23456,,undetermined\n'
        "c,all,0,2.6e10,fails\n"
    )
    options = ("--what", "claims", "--output", tmp_path / "claims.tex")
    run(typeset_table, *options, "--input", tmp_path / "claims.csv")
    assert (tmp_path / "claims.tex").read_text() == (
        "\\begin{tabular}{lp{8cm}rrl}\n"
        "\\toprule\n"
        "claim & statement & expected & measured & verdict \\\\\n"
        "\\midrule\n"
        "a\\_b & rises 5 \\% \\& stays, x\\textasciicircum{}2 \\textasciitilde{} "
        "\\{y\\}\\textbackslash{}z \\#1 \\$ & 1.235 & -- & undetermined \\\\\n"
        "c & all & 0 & 2.6e+10 & fails \\\\\n"
        "\\bottomrule\n"
        "\\end{tabular}\n"
    )


def test_typeset_by_N():
    columns = {"source": "a_b", "d": 2, "feature_map": "relu", "members": 3, "max": 2.0}
    columns |= {"N": [512] * 2 + [64] * 2, "quantity": ["stable_rank", "log10_condition"] * 2}
    columns |= {"resolved": [3, 3, 3, 2], "mean": [1.23456, 2, 1.5, None], "min": 1.0}
    causal = pd.DataFrame(columns | {"mask": "causal", "normalization": "none"})
    table = pd.concat([causal, causal.assign(mask="bidirectional", mean=9.0)])
    text = typeset_table.by_N(table)
    assert text.split("\\midrule\n")[1].splitlines()[:3] == [
        r"a\_b & relu & 2 & 64 & 1.5 [1, 2] & -- \\",
        r"a\_b & relu & 2 & 512 & 1.235 [1, 2] & 2 [1, 2] \\",
        r"\bottomrule",
    ]


def test_a_page_holds_a_claim_of_a_large_study(tmp_path):
    """Of a thousand cells, what was observed is a field beyond csv's own limit of 131,072."""
    observed = "12345, " * 30_000
    (tmp_path / "claims.csv").write_text(f'id,observed\na,"{observed}"\n', encoding="utf-8")
    run(typeset_page, "--input", tmp_path / "claims.csv", "--output", tmp_path / "claims.html")
    assert observed in (tmp_path / "claims.html").read_text(encoding="utf-8")
