"""The steps that evaluate layers: whole tables, repeated bytes, and numbers known beforehand."""

import csv
from pathlib import Path

import numpy as np
import pytest

import approximate_layers
import evaluate_controls
import evaluate_head_pairs
import evaluate_layers
import evaluate_tasks
import judge_acceptance
from test_steps import run

LAYERS = ("--d-model", 8, "--N", 9, "--heads", 1, 4, "--score-scales", 0.0, 2.0, "--seeds", 2)
THRESHOLD = ("--rank-threshold", 1e-6)
EPS = np.finfo(float).eps


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_evaluate_layers(tmp_path):
    for folder in ("a", "b"):
        outputs = ("--ranks", tmp_path / folder / "r.csv", "--passage", tmp_path / folder / "p.csv")
        run(evaluate_layers, *LAYERS, *THRESHOLD, *outputs)
    for name in ("r.csv", "p.csv"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    ranks, passage = read(tmp_path / "a" / "r.csv"), read(tmp_path / "a" / "p.csv")
    assert len(passage) == 2 * 2 * 2 * 2
    assert len(ranks) == 2 * 2 * 2 * ((1 + 4) * 5 + 2 * 2)
    assert {row["parameters"] for row in ranks + passage} == {str(3 * 8 * 8)}
    for row in ranks:
        width, uniform = int(row["width"]), row["score_scale"] == "0.0"
        expected = {
            "scores": 0 if uniform else width,
            "values": width,
            "log_odds": None,
            "output": 1 if uniform and row["mask"] == "bidirectional" else width,
            "concatenated": 1 if uniform and row["mask"] == "bidirectional" else 8,
            "attention": 1 if uniform and row["mask"] == "bidirectional" else 9,
            "residual": 8,
        }[row["station"]]
        assert row["exact_rank"] == ("" if expected is None else str(expected)), row
        if row["station"] == "log_odds":
            # The block under the mask has 5 rows and 5 columns, and log-odds of 0 in one of them.
            most = 8 if row["mask"] == "bidirectional" else 4
            assert row["rank_relative"] == str(0 if uniform else min(width, most))
    for row in passage:
        if row["score_scale"] == "0.0":
            assert float(row["contrast_scores"]) == float(row["contrast_attention"]) == 0
            assert float(row["contrast_output_last"]) < 9 * EPS
            assert float(row["gradient_q"]) == float(row["gradient_k"]) == 0
        else:
            assert float(row["contrast_output_last"]) > 1e-6
        # ||D + dO||^2 = 1 + 2 <D, dO> + ||dO||^2; sums of 72 terms.
        norm, output = float(row["contrast_residual"]), float(row["contrast_output"])
        along = 1 + (norm**2 - 1 - output**2) / 2
        assert float(row["contrast_residual_kept"]) == pytest.approx(
            along, abs=72 * EPS * (1 + norm**2 + output**2)
        )
        # Scores below 30 err by 8 products and a division each.
        assert float(row["log_odds_error"]) < 30 * 24 * EPS


def test_evaluate_controls(tmp_path):
    run(evaluate_controls, *THRESHOLD, "--output", tmp_path / "a.csv")
    run(evaluate_controls, *THRESHOLD, "--output", tmp_path / "b.csv")
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    rows = read(tmp_path / "a.csv")
    assert len(rows) == 7 + 2 * 5 * 7 * 2
    for row in rows:
        number = {
            key: float(x)
            for key, x in row.items()
            if x and key not in ("family", "mask") and not key.endswith("certificate")
        }
        last = number["value_contrast_last"]
        # The last token sees all tokens under either mask: the same row, the same sums.
        assert last == pytest.approx(number["value_contrast_last_unmasked"], abs=4 * EPS)
        queries = {x: number[f"query_contrast_{x}"] for x in ("scores", "attention", "output")}
        if row["family"] == "two_token":
            # p (1 - p) = 1 / (4 cosh^2 a) for attention p and 1 - p.
            a = number["score_scale"]
            slope = a / np.cosh(a) ** 2
            closed = {"scores": np.sqrt(2) * a, "attention": slope / np.sqrt(2), "output": slope}
            # An attention 1 - p keeps the absolute rounding of 1.
            assert queries == pytest.approx(closed, rel=16 * EPS, abs=16 * EPS * a)
            kept = 1 + np.tanh(a)
            assert number["value_contrast_residual_kept"] == pytest.approx(kept, abs=8 * EPS)
            assert number["log_odds_relative"] == (a > 0)
            assert number["value_contrast"] == pytest.approx(
                np.tanh(number["score_scale"]), abs=8 * EPS
            )
        elif row["family"] == "identical_values":
            assert number["output_exact"] == number["output_relative"] == 1
            assert number["residual_relative"] == 1
            # Rows of dA sum to zero and values are the same: sums of 32 products.
            assert queries["output"] < 32 * 6 * EPS * max(queries["attention"], 1)
            assert (queries["attention"] > 0) == (number["score_scale"] > 0)
            assert number["output_spread"] < 2 * 32 * EPS * 4
        else:
            assert number["log_odds_relative"] == (number["score_scale"] > 0)
        if row["mask"] == "causal":
            assert number["attention_exact"] == 32


def test_evaluate_head_pairs(tmp_path):
    run(evaluate_head_pairs, *THRESHOLD, "--output", tmp_path / "a.csv")
    rows = read(tmp_path / "a.csv")
    assert len(rows) == 4 * 5 * 2
    ranks = {row["pair"]: set() for row in rows}
    for row in rows:
        ranks[row["pair"]].add(row["concatenated_relative"])
    assert ranks == {
        "same_attention": {"8"},
        "same_values": {"8"},
        "same_identical_values": {"1"},
        "same_everything": {"4"},
    }


def test_evaluate_tasks(tmp_path):
    for name in ("a", "b"):
        outputs = ("--runs", tmp_path / f"{name}.runs.csv", "--output", tmp_path / f"{name}.csv")
        differences = ("--differences", tmp_path / f"{name}.differences.csv")
        run(evaluate_tasks, *LAYERS, "--tasks", 3, *outputs, *differences)
        for table in ("csv", "differences.csv"):
            written = (tmp_path / f"{name}.{table}").read_bytes()
            assert written == (tmp_path / f"a.{table}").read_bytes()
    runs, means = read(tmp_path / "a.runs.csv"), read(tmp_path / "a.csv")
    assert len(runs) == 2 * 2 * 2 * 2 * 3 and len(means) == 2 * 2 * 2
    for row in means:
        same = ("heads", "score_scale", "kind")
        chosen = [r for r in runs if all(r[key] == row[key] for key in same)]
        assert {(r["seed"], r["task"]) for r in chosen} == {(s, t) for s in "01" for t in "012"}
        mean = np.mean([float(r["accuracy"]) for r in chosen])
        assert float(row["accuracy"]) == pytest.approx(mean, rel=16 * EPS)
        middle = (float(row["accuracy_low"]) + float(row["accuracy_high"])) / 2
        assert middle == pytest.approx(mean, rel=16 * EPS)
    pairs = read(tmp_path / "a.differences.csv")
    assert len(pairs) == 2 * 2 + 2 * 2
    for row in pairs:
        ends = []
        for end in ("from", "to"):
            place = {row["varied"]: row[end], "kind": row["kind"]}
            place |= {key: row[key] for key in ("heads", "score_scale") if row[key]}
            (found,) = (m for m in means if all(m[key] == x for key, x in place.items()))
            ends.append(float(found["accuracy"]))
        assert float(row["difference"]) == pytest.approx(ends[1] - ends[0], abs=16 * EPS)
        if row["varied"] == "heads" and row["score_scale"] == "0.0":
            assert float(row["difference_low"]) == float(row["difference_high"]) == 0
    # Uniform attention is invertible W_v times a mean: every cut of it reads the same.
    uniform = [row["accuracy"] for row in means if row["score_scale"] == "0.0"]
    assert len(uniform) == 4 and len(set(uniform)) == 2


@pytest.fixture
def measured(tmp_path) -> Path:
    ladders = ("--noise", 0.1, "--rounding", "float32", "bfloat16", "--truncation", 1, 8, 9)
    output = ("--output", tmp_path / "approximate_layers.csv")
    run(approximate_layers, *LAYERS, *THRESHOLD, *ladders, *output)
    return tmp_path / "approximate_layers.csv"


def test_approximate_layers(measured):
    rows = read(measured)
    assert len(rows) == 2 * 1 * 2 * 2 * 8
    for row in rows:
        heads, error, kept = (
            int(row["heads"]),
            float(row["output_error"]),
            float(row["contrast_kept"]),
        )
        before, after = int(row["rank_before"]), int(row["rank_after"])
        assert row["score_scale"] == "2.0" and 0 < before <= 9 * heads
        match row["method"], row["strength"]:
            case "exact", _:
                assert (error, kept, after) == (0, 1, before)
            case "truncation", "1":
                assert after == heads and error > 0.1
            case "truncation", "8":
                assert after <= 8 * heads and error > 0
            case "truncation", "9":
                pytest.fail("no approximation")
            case "rounding", precision:
                assert error < {"float32": 2.0**-22, "bfloat16": 2.0**-6}[precision]
            case "uniform", _:
                assert after == (heads if row["mask"] == "bidirectional" else 9 * heads)
            case "linear", _:
                assert after == (8 if row["mask"] == "bidirectional" else 9 * heads)


def judge(
    folder: Path, measured: Path, name: str, contrast=0.5, error=0.05, threshold=1e-6
) -> None:
    criterion = ("--contrast", contrast, "--output-error", error, "--rank-threshold", threshold)
    outputs = ("--output", folder / f"{name}.csv", "--history", *records(folder))
    run(judge_acceptance, "--approximations", measured, *criterion, *outputs)


def records(folder: Path) -> list[Path]:
    return [folder / "history.csv", folder / "record.csv"]


def test_verdicts_follow_from_the_measurements(tmp_path, measured):
    judge(tmp_path, measured, "a")
    rows, verdicts = read(measured), read(tmp_path / "a.csv")
    assert len(verdicts) == sum(row["method"] != "exact" for row in rows) / 2
    for verdict in verdicts:
        keys = ("heads", "mask", "method", "strength")
        seeds = [row for row in rows if all(row[key] == verdict[key] for key in keys)]
        kept = [int(row["rank_after"]) >= int(row["rank_before"]) for row in seeds]
        met = [float(r["output_error"]) <= 0.05 and float(r["contrast_kept"]) >= 0.5 for r in seeds]
        assert len(seeds) == int(verdict["seeds"]) == 2
        assert (int(verdict["rank_kept"]), int(verdict["tolerance_met"])) == (sum(kept), sum(met))
        rank, tolerance = ("kept" if all(kept) else "lost"), ("" if all(met) else "not ")
        assert verdict["box"] == f"rank {rank}, tolerance {tolerance}met"
        assert verdict["declaration"] == "1" and verdict["asked_output_error"] == "0.05"


def test_every_declaration_is_recorded_once(tmp_path, measured):
    judge(tmp_path, measured, "first")
    before = (tmp_path / "history.csv").read_bytes()
    judge(tmp_path, measured, "again")
    assert (tmp_path / "history.csv").read_bytes() == before
    assert (tmp_path / "again.csv").read_bytes() == (tmp_path / "first.csv").read_bytes()
    judge(tmp_path, measured, "looser", error=0.2)
    judge(tmp_path, measured, "back")
    history = read(tmp_path / "history.csv")
    assert [row["declaration"] for row in history] == ["1", "2", "3"]
    assert [row["output_error"] for row in history] == ["0.05", "0.2", "0.05"]
    changes = ["", "output_error: 0.05 to 0.2", "output_error: 0.2 to 0.05"]
    assert [row["changed"] for row in history] == changes
    assert len({row["measurements"] for row in history}) == 1
    assert {row["declaration"] for row in read(tmp_path / "back.csv")} == {"3"}


def test_other_measurements_show_in_the_record(tmp_path, measured):
    judge(tmp_path, measured, "a")
    other = tmp_path / "other.csv"
    other.write_text(measured.read_text().replace("bfloat16", "bfloat17"))
    judge(tmp_path, other, "b")
    first, second = read(tmp_path / "history.csv")
    assert second["declaration"] == "2" and second["output_error"] == first["output_error"]
    old, new = first["measurements"], second["measurements"]
    assert second["changed"] == f"measurements: {old} to {new}" and old != new
    judge(tmp_path, other, "c")
    assert len(read(tmp_path / "history.csv")) == 2


@pytest.mark.parametrize("text", ["", "declaration,contrast\n1,0.5\n"])
def test_what_is_no_record_is_named_and_kept(tmp_path, measured, capsys, text):
    (tmp_path / "history.csv").write_text(text)
    with pytest.raises(SystemExit):
        judge(tmp_path, measured, "a")
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith(f"error: {tmp_path / 'history.csv'}: no record of declarations")
    assert (tmp_path / "history.csv").read_text() == text


def flip(path: Path) -> None:
    """A bit of the threshold that the first declaration states."""
    content = path.read_bytes()
    assert b",0.05," in content
    path.write_bytes(content.replace(b",0.05,", b",0.04,", 1))


@pytest.mark.parametrize("harm", [flip, Path.unlink])
@pytest.mark.parametrize("number", [0, 1])
def test_a_record_that_is_damaged_or_lost_is_put_back(tmp_path, measured, capsys, number, harm):
    for name, error in (("a", 0.05), ("b", 0.2)):
        judge(tmp_path, measured, name, error=error)
    before = [path.read_bytes() for path in records(tmp_path)]
    assert before[0] == before[1]
    path = records(tmp_path)[number]
    harm(path)
    capsys.readouterr()
    judge(tmp_path, measured, "again", error=0.2)
    said = f"{path}: no record of declarations (not the bytes that were written)\n"
    assert capsys.readouterr().err == (said if harm is flip else "")
    assert [path.read_bytes() for path in records(tmp_path)] == before
    assert (tmp_path / "again.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()


def test_two_damaged_records_are_never_begun_anew(tmp_path, measured, capsys):
    judge(tmp_path, measured, "a")
    for path in records(tmp_path):
        flip(path)
    before = [path.read_bytes() for path in records(tmp_path)]
    with pytest.raises(SystemExit):
        judge(tmp_path, measured, "b")
    assert capsys.readouterr().err.endswith("; put it back, or delete it to begin a new history\n")
    assert [path.read_bytes() for path in records(tmp_path)] == before


def test_ranks_of_another_threshold_are_refused(tmp_path, measured, capsys):
    with pytest.raises(SystemExit):
        judge(tmp_path, measured, "a", threshold=1e-3)
    assert "another threshold than 0.001" in capsys.readouterr().err
