"""Whatever strength, scale or number the schema of a study allows: finite numbers in the tables."""

import csv
import math
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import approximate_layers
import build_cell
import check_bound
import compute_extremes
import compute_singular_values
import evaluate_layers
import evaluate_tasks
import measure_spectrum
import study
from causalrank.feature_maps import FEATURE_MAPS
from test_steps import run

KEYS = study.read_schema("study")["properties"]
STRENGTH = KEYS["approximations"]["properties"]["noise"]["items"]
SCORE_SCALE = KEYS["evaluation"]["properties"]["score_scales"]["items"]
SCALE = study.read_schema("study")["$defs"]["gaussian"]["properties"]["scale"]
LAYERS = ("--d-model", 4, "--N", 5, "--heads", 1, 2, "--seeds", 1)
THRESHOLD = ("--rank-threshold", 1e-6)
CELL = ("--source", "g", "--N", 6, "--d", 2)


def magnitudes(least: float, most: float) -> st.SearchStrategy[float]:
    """Numbers of all magnitudes, both ends included."""
    powers = st.floats(math.log10(least), math.log10(most))
    return st.sampled_from([least, most]) | powers.map(lambda x: min(max(10**x, least), most))


def require_finite(*paths: Path) -> None:
    """All but conditions: a singular matrix's is infinite."""
    for path in paths:
        with path.open(newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                fields = {name: x for name, x in row.items() if "condition" not in name}
                assert not {"inf", "-inf", "nan"} & set(fields.values()), (path, row)


STRENGTHS = magnitudes(1e-300, STRENGTH["maximum"])


@pytest.mark.filterwarnings("error")
@settings(max_examples=25)
@given(STRENGTHS, st.sampled_from([*FEATURE_MAPS, "softmax"]))
def test_noise_of_any_strength(tmp_path_factory, strength, feature_map):
    folder = tmp_path_factory.mktemp("noise")
    cell = (*CELL, "--feature-map", feature_map, "--scale", 1, "--members", 1)
    run(build_cell, *cell, "--max-N-values", 6, "--output", folder / "f.npz")
    ladders = ("--noise", strength, "--adversary", strength)
    bound = ("--max-N", 6, "--members", 1, *ladders, "--input", folder / "f.npz")
    run(check_bound, *bound, "--output", folder / "b.csv")
    layers = (*LAYERS, "--score-scales", 1, *THRESHOLD, "--noise", strength)
    run(approximate_layers, *layers, "--output", folder / "a.csv")
    require_finite(folder / "b.csv", folder / "a.csv")


@pytest.mark.filterwarnings("error")
@settings(max_examples=25)
@given(magnitudes(1e-300, SCORE_SCALE["maximum"]))
def test_layers_whose_scores_have_any_scale(tmp_path_factory, scale):
    folder = tmp_path_factory.mktemp("layers")
    layers = (*LAYERS, "--score-scales", 0, scale)
    names = ("r.csv", "p.csv", "a.csv", "u.csv", "t.csv", "d.csv")
    ranks, passage, approximations, runs, tasks, differences = (folder / name for name in names)
    run(evaluate_layers, *layers, *THRESHOLD, "--ranks", ranks, "--passage", passage)
    ladders = ("--window", 2, "--truncation", 1, "--performer", 4, "--rounding", "float16")
    run(approximate_layers, *layers, *THRESHOLD, *ladders, "--output", approximations)
    outputs = ("--runs", runs, "--output", tasks, "--differences", differences)
    run(evaluate_tasks, *layers, "--tasks", 1, *outputs)
    require_finite(*(folder / name for name in names))


@settings(max_examples=25)
@given(magnitudes(SCALE["minimum"], SCALE["maximum"]), st.sampled_from([*FEATURE_MAPS, "softmax"]))
@example(SCALE["maximum"], "squared_relu")
@example(SCALE["minimum"], "squared_relu")
@example(SCALE["maximum"], "identity")
def test_draws_of_any_scale(tmp_path_factory, scale, feature_map):
    """Only where exp leaves the doubles is there no cell, and its step says so."""
    folder = tmp_path_factory.mktemp("draws")
    cell = (*CELL, "--feature-map", feature_map, "--scale", scale, "--members", 1)
    try:
        run(build_cell, *cell, "--max-N-values", 6, "--output", folder / "f.npz")
    except SystemExit:
        assert feature_map in ("exp", "softmax") and scale > 10
        return
    factors = ("--input", folder / "f.npz")
    limits = ("--max-N", 6, "--max-N-rounded", 6, "--rounded-members", 1)
    run(compute_singular_values, *limits, *factors, "--output", folder / "v.npz")
    ends = ("--max-N-dense", 6, "--max-N-sums", 6, *factors)
    run(compute_extremes, *ends, "--output", folder / "e.npz")
    values = (*factors, "--singular-values", folder / "v.npz", "--extremes", folder / "e.npz")
    names = ("spectrum", "numerical-rank", "decay", "density", "methods")
    outputs = [word for name in names for word in (f"--{name}", folder / f"{name}.csv")]
    run(measure_spectrum, *values, *outputs)
    bound = ("--max-N", 6, "--members", 1, "--truncation", 1, "--rounding", "float16", "--top-k", 2)
    run(check_bound, *bound, *factors, "--output", folder / "bound.csv")
    require_finite(*(folder / f"{name}.csv" for name in (*names, "bound")))
