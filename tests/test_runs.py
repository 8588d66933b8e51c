"""Whole runs of the smoke study: bytes, resumption, failures; and clean sources."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import study
from conftest import ROOT, Repository

pytestmark = pytest.mark.workflow
SMOKE = "config/smoke.yaml"


def test_a_finished_run_has_nothing_to_do(smoke_repository):
    assert not smoke_repository.planned(SMOKE)


def test_every_job_leaves_a_log_and_a_benchmark(smoke_repository):
    results = smoke_repository.folder / "results" / "smoke"
    cells = list((results / "cells").glob("*/*/*/*"))
    assert len(cells) == 9
    steps = {path.stem for path in (cells[0] / "receipts").iterdir()}
    assert len(steps) == 7
    for log in results.glob("batches/*/*/logs/*.log"):
        assert (log.parents[1] / "benchmarks" / f"{log.stem}.tsv").exists()
    for step in steps:
        logs = "".join(path.read_text() for path in results.glob(f"batches/**/{step}.log"))
        assert all(
            f"computed {cell.relative_to(smoke_repository.folder)}\n" in logs for cell in cells
        )


def test_no_study_can_write_into_a_folder_of_another(smoke_repository):
    results = smoke_repository.folder / "results" / "smoke"
    pattern = study.read_schema("study")["properties"]["results"]["pattern"]
    for name in ("benchmark", *(path.name for path in results.iterdir())):
        assert re.fullmatch(pattern, f"results/my_{name}")
        assert not re.fullmatch(pattern, f"results/mine/{name}")


def test_a_killed_run_is_resumed_by_the_same_command(smoke_repository, repository):
    command = repository.command("--cores", "2", "--configfile", SMOKE)
    first = subprocess.Popen(
        command,
        cwd=repository.folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    cells = repository.folder / "results" / "smoke" / "cells"
    while not list(cells.glob("*/*/*/*/rank.csv")):
        assert first.poll() is None, "the run ended before it could be killed"
        time.sleep(0.05)
    second = repository.snakemake("--cores", "1", "--configfile", SMOKE, expect=1)
    assert "another run" in second.stdout
    os.killpg(first.pid, signal.SIGKILL)
    first.wait()
    done = {path: path.stat().st_mtime_ns for path in cells.glob("*/*/*/*/rank.csv")}
    repository.snakemake("--cores", "2", "--configfile", SMOKE)
    again = [path for path, time_ns in done.items() if path.stat().st_mtime_ns != time_ns]
    assert len(again) <= 2, "only what was at work when the run was killed may run again"
    assert repository.outputs("results/smoke") == smoke_repository.outputs("results/smoke")


def test_claims_edited_while_a_run_is_at_work(smoke_repository, tmp_path):
    """They are judged as the run has read them, and as they are by the next one."""
    folder = tmp_path / "repository"
    shutil.copytree(smoke_repository.folder, folder, symlinks=True)
    edited = Repository.at(folder)
    ledger, claims = folder / "results" / "smoke" / "claims.csv", folder / "config" / "claims.yaml"
    before, text = ledger.read_bytes(), claims.read_text(encoding="utf-8")
    ledger.unlink()
    kept = folder / ".snakemake" / "causalrank" / "claims.yaml"
    kept.unlink()
    command = ("--cores", "1", "--configfile", SMOKE, "--", "results/smoke/claims.csv")
    with subprocess.Popen(edited.command(*command), cwd=folder) as run:
        while not kept.exists():
            assert run.poll() is None, "the run ended before the edit could come"
            time.sleep(0.01)
        claims.write_text(text.replace("\n  statement: ", "\n  statement: Edited. ", 1), "utf-8")
    assert run.returncode == 0 and ledger.read_bytes() == before
    assert edited.planned(SMOKE)["judge_claims"] == 1
    tomorrow = time.time() + 86400
    os.utime(claims, (tomorrow, tomorrow))
    edited.snakemake(*command)
    assert b"Edited. " in ledger.read_bytes()


def test_a_poisoned_cell_costs_no_other_cell_of_its_batch_that_step(repository):
    q = np.random.default_rng(0).standard_normal((1, 8, 2))
    np.savez(repository.folder / "cold.npz", q=q, k=q, v=q)
    study = repository.write(
        "poisoned.yaml",
        "results: results/poisoned\n"
        "sources:\n"
        "  hot: {kind: gaussian, members: 1, scale: 1000}\n"
        "  cold: {kind: file, path: cold.npz}\n"
        "cells:\n"
        "  - {source: hot, N: 8, d: 2, feature_map: [exp, relu]}\n"
        "  - {source: cold, N: 8, d: 2, feature_map: exp}\n",
    )
    run = repository.snakemake("--cores", "2", "--keep-going", "--configfile", study, expect=1)
    results = repository.folder / "results" / "poisoned"
    cells = results / "cells" / "source~hot" / "N~8" / "d~2"
    assert (cells / "feature_map~relu" / "factors.npz").exists()
    assert not (cells / "feature_map~exp" / "factors.npz").exists()
    (cold,) = results.glob("batches/source~cold/*/check_bound.txt")
    (bound,) = results.glob("cells/source~cold/*/*/*/bound.csv")
    assert cold.exists() and bound.exists()
    (path,) = results.glob("batches/drawn/*/logs/build_cell.log")
    assert str(path.relative_to(repository.folder)) in "\n".join(run.stdout.splitlines()[-8:])
    log = path.read_text(encoding="utf-8")
    assert re.search(r"error: cell source hot, N = 8, d = 2, feature_map exp: overflows", log)
    assert log.endswith(
        f"build_cell failed for {cells.relative_to(repository.folder)}/feature_map~exp\n"
    )
    repaired = repository.folder / study
    repaired.write_text(repaired.read_text().replace("[exp, relu]", "relu"))
    targets = [str(path.parents[1].relative_to(repository.folder) / "check_bound.txt")]
    repository.snakemake("--cores", "2", "--configfile", study, "--", *targets)
    assert "0 computed, 1 reused" in path.read_text(encoding="utf-8")


def test_a_cell_that_does_not_fit_is_refused_with_the_number(repository):
    study = repository.write(
        "large.yaml",
        "results: results/large\n"
        "sources: {drawn: {kind: gaussian, members: 1}}\n"
        "cells: [{source: drawn, N: 4096, d: 2, feature_map: relu}]\n"
        "limits: {memory_mb: 500, singular_values_N: 4096}\n",
    )
    text = repository.snakemake("--cores", "1", "--configfile", study, expect=1).stdout
    assert re.search(r"N = 4096, d = 2 needs \d+ MB in \w+, and there are 500 MB", text)
    assert not (repository.folder / "results" / "large").exists()


def test_a_study_replaces_the_default_one(smoke_repository):
    text = smoke_repository.snakemake("-n", "--forceall", "--configfile", SMOKE).stdout
    assert "fetch_wheel" not in text


@pytest.mark.parametrize(
    "command",
    [
        ["ruff", "check", "."],
        ["ruff", "format", "--check", "."],
        ["snakefmt", "--check", "workflow"],
        ["snakemake", "--lint"],
    ],
    ids=" ".join,
)
def test_sources_are_clean(command):
    executable = shutil.which(command[0], path=str(Path(sys.executable).parent))
    run = subprocess.run([executable, *command[1:]], cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
