"""Declared memory is an upper estimate of what a step takes, and not a wild one; time is close."""

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import check_bound
import resources
from cell_files import Cell
from conftest import ROOT

N, D = 1024, 4
LIMITS = {"singular_values_N": N, "rounded_N": N, "dense_rank_N": N, "bound_N": N, "counts_N": N}
LIMITS["bound_members"] = 3
CELL = f"--source g --N {N} --d {D}"
COMMANDS = {
    "draw_ensemble": f"{CELL} --members 1 --scale 1 --output source.npz",
    "build_cell": f"{CELL} --feature-map softmax --input source.npz --output factors.npz",
    "compute_singular_values": f"--max-N {N} --max-N-rounded {N} --rounded-members 1"
    " --input factors.npz --output sigma.npz",
    "measure_rank": f"--max-N-dense {N} --input factors.npz --singular-values sigma.npz"
    " --output rank.csv --block-rank block_rank.csv",
    "compute_extremes": f"--max-N-dense {N} --max-N-sums {N} --input factors.npz"
    " --output extremes.npz",
    "measure_spectrum": "--input factors.npz --singular-values sigma.npz --extremes extremes.npz"
    " --spectrum s.csv --numerical-rank n.csv --decay d.csv --density c.csv --methods m.csv",
    "measure_baselines": f"--max-N-dense {N} --max-N-sums {N} --input factors.npz"
    " --spectrum s.csv --output b.csv",
    "check_bound": f"--max-N {N} --members 1 --truncation 8 --nystrom 64 --linformer 256"
    " --performer 1024 --top-k 8 --decay 0.9 --rounding bfloat16 --adversary 0.1"
    " --input factors.npz --output bound.csv",
}

MEASURING = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""  # a small process between: a child's peak counts what it was forked from


LAYERS = "--d-model 64 --N 192 --heads 4 --score-scales 1 --seeds 1"
COMMANDS_OF_LAYERS = {
    "evaluate_layers": f"{LAYERS} --rank-threshold 1e-6 --ranks r.csv --passage p.csv",
    "approximate_layers": f"{LAYERS} --rank-threshold 1e-6 --truncation 8 --output a.csv",
    "evaluate_tasks": f"{LAYERS} --tasks 1 --runs runs.csv --differences d.csv --output t.csv",
}


def peak_mb(step: str, folder: Path, options: str = "") -> float:
    words = (options or COMMANDS[step]).split()
    command = [sys.executable, str(ROOT / "scripts" / f"{step}.py"), *words]
    measuring = [sys.executable, "-c", MEASURING, *command]
    run = subprocess.run(measuring, cwd=folder, capture_output=True, text=True, check=True)
    return int(run.stdout) / 1024


def test_memory(tmp_path):
    """The steps run in order, each on the files of those before it."""
    for step in COMMANDS:
        declared_mb = resources.memory_mb(step, N, D, 1, LIMITS)
        assert declared_mb / 6 < peak_mb(step, tmp_path) < declared_mb, step


def test_memory_of_layers(tmp_path):
    for step, command in COMMANDS_OF_LAYERS.items():
        estimate = (
            resources.task_megabytes if step == "evaluate_tasks" else resources.layer_megabytes
        )
        declared_mb = estimate(192, 64)
        assert declared_mb / 6 < peak_mb(step, tmp_path, command) < declared_mb, step


LENGTH = f"--source g --N {N} --input source.npz"
OF_LENGTHS = {
    "measure_concentration": (
        resources.concentration_megabytes(N),
        f"{LENGTH} --kinds softmax/causal/row exp/causal/none --output c.npz",
    ),
    "project_draws": (
        resources.projection_megabytes(N),
        f"{LENGTH} --output p.csv --needed k.csv --uniform u.csv",
    ),
}


@pytest.mark.parametrize("step", OF_LENGTHS)
def test_memory_of_lengths(step, tmp_path):
    peak_mb("draw_ensemble", tmp_path)
    declared_mb, command = OF_LENGTHS[step]
    assert declared_mb / 6 < peak_mb(step, tmp_path, command) < declared_mb


def test_memory_grows_with_the_cell_and_falls_with_the_limits():
    step = "compute_singular_values"
    small = resources.memory_mb(step, N, D, 1, LIMITS)
    large = resources.memory_mb(step, 2 * N, D, 1, LIMITS | {"singular_values_N": 2 * N})
    floor = resources.INTERPRETER_MB
    assert large - floor == pytest.approx(4 * (small - floor), rel=0.1)
    assert resources.memory_mb(step, N, D, 1, LIMITS | {"singular_values_N": 0}) < small


def test_time_grows_with_the_cube_and_then_linearly():
    limits = LIMITS | {"singular_values_N": 4096, "counts_N": 2**17}
    small, large, structured = (resources.seconds(n, 5, limits) for n in (2048, 4096, 2**16))
    assert large == pytest.approx(8 * small, rel=0.1)
    assert resources.seconds(2**17, 5, limits) == pytest.approx(2 * structured, rel=0.1)
    assert resources.seconds(2**16, 5, limits | {"counts_N": 0}) < structured / 2


def test_time_of_layers_grows_with_their_number_and_size():
    assert resources.layer_seconds(32, 48) == 2 * resources.layer_seconds(32, 24)
    assert resources.layer_seconds(1024, 1) > 7 * resources.layer_seconds(512, 1)
    assert resources.task_seconds(64, 16, 24, 3) == 2 * resources.task_seconds(32, 16, 24, 3)
    assert resources.task_seconds(32, 16, 24, 6) == 2 * resources.task_seconds(32, 16, 24, 3)


def test_a_retry_has_twice_the_time_and_a_trivial_job_time_to_start():
    first, second, third = (resources.minutes(3600, attempt) for attempt in (1, 2, 3))
    assert 60 < first and (second, third) == (2 * first, 4 * first)
    assert resources.minutes(0, 1) == resources.STARTING_MINUTES
    assert [resources.minutes(3600, attempt, 200) for attempt in (1, 2, 3)] == [first, 200, 200]


@pytest.mark.parametrize("attempt", [1, 2, 3])
@pytest.mark.parametrize("longest", [7, 100, 10**6])
@pytest.mark.parametrize(
    "seconds", [[0.01] * 7, [5.0, 900.0, 0.1, 90.0, 90.0, 3.0, 600.0], [3e4, 0.1], [50.0]]
)
def test_the_steps_of_a_submission_add_up_to_what_it_needs(seconds, longest, attempt):
    """Its start once, whichever of a batch's steps are left, and no more than there may be."""
    each = resources.minutes_each(seconds, attempt, longest)
    needed = resources.STARTING_MINUTES + 2 * sum(seconds) / 60
    assert sum(each) == resources.minutes(sum(seconds), attempt, longest)
    assert min(needed * 2 ** (attempt - 1), longest) <= sum(each) <= longest
    assert sum(each) < (needed + 1) * 2 ** (attempt - 1)
    assert min(each) >= 0 and each[0] >= min(longest, 10) * 10 / (needed + 1) - 1
    if longest == 10**6:
        shares = [2 * cost / 60 * 2 ** (attempt - 1) for cost in seconds]
        assert each[1:] == pytest.approx(shares[1:], abs=2 ** (attempt - 1))


def test_the_steps_of_a_cell_share_its_time():
    limits = LIMITS | {"counts_N": 2**17}
    for N in (64, 1024, 2048, 2**16):
        steps = [resources.step_seconds(step, N, 5, limits, 10) for step in resources.STEPS]
        assert sum(steps) == resources.seconds(N, 5, limits, 10) and min(steps) >= 0
        others = sum(steps) - resources.bound_seconds(N, 5, limits, 10)
        assert others == pytest.approx(
            5 * (12 * 0.6e-9 * N**3 if N <= 1024 else 600e-6 * N), rel=1e-9
        )


def test_time_of_the_bound_grows_with_the_square_and_with_what_is_asked_for():
    limits = LIMITS | {"bound_members": 3, "bound_N": 4096}
    few, many = (resources.bound_seconds(512, 5, limits, number) for number in (10, 30))
    assert 0 < 3 * few == pytest.approx(many)
    assert resources.bound_seconds(4096, 5, limits, 10) == pytest.approx(64 * few, rel=0.15)
    assert resources.bound_seconds(512, 1, limits, 30) == pytest.approx(many / 3)
    assert resources.bound_seconds(512, 9, limits, 30) == many
    assert resources.bound_seconds(4097, 5, limits, 30) == 0
    without = resources.seconds(512, 5, limits, 0)
    assert resources.seconds(512, 5, limits, 30) == pytest.approx(without + many)


@pytest.mark.parametrize("N", [16, 128])
def test_time_of_the_bound_is_about_what_it_takes(N):
    """In CPU seconds, of one member with one strength of each approximation that softmax has."""
    q, k, v = np.random.default_rng(0).standard_normal((3, 1, N, D))
    ladders = {
        "truncation": [4],
        "nystrom": [4],
        "linformer": [8],
        "performer": [64],
        "taylor": [2],
    }
    ladders |= {"window": [8], "top_k": [4], "decay": [0.9], "rounding": ["float16"]}
    ladders |= {"quantization": [4], "noise": [0.1], "adversary": [0.1]}
    for _ in range(2):  # the first one imports
        start = time.process_time()
        rows = list(check_bound.rows(Cell("g", N, D, "softmax", q, k, v), N, 1, ladders))
        spent = time.process_time() - start
    assert len(rows) == 4 * len(ladders)
    expected = resources.bound_seconds(N, 1, LIMITS | {"bound_members": 1}, len(ladders))
    assert expected / 6 < spent < 6 * expected
