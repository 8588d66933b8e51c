"""Batches in whole runs: what is valid is reused, what is damaged is named and made again."""

import re
from pathlib import Path

import pytest
import yaml

from conftest import Repository

pytestmark = pytest.mark.workflow
RESULTS = "results/batched"
TABLES = [f"{RESULTS}/tables/{name}.csv" for name in ("rank", "spectrum", "bound")]
STUDY = {
    "results": RESULTS,
    "sources": {"drawn": {"kind": "gaussian", "members": 1}},
    "cells": [{"source": "drawn", "N": [8, 9, 10], "d": [2, 3], "feature_map": ["exp", "relu"]}],
    "approximations": {"noise": [0.1]},
}
STEPS = ("build_cell", "compute_singular_values", "compute_extremes", "measure_rank")
STEPS += ("measure_spectrum", "check_bound")


@pytest.fixture(scope="module")
def repository(tmp_path_factory) -> Repository:
    """One in which STUDY has run, its dozen cells in a few batches, as more would be."""
    made = Repository(tmp_path_factory.mktemp("batched") / "repository")
    path = made.folder / "workflow" / "batches.py"
    text = path.read_text(encoding="utf-8")
    changed = re.sub(r"^BATCH_SECONDS = .*", "BATCH_SECONDS = 0.6", text, flags=re.M)
    path.write_text(changed, encoding="utf-8")
    run(made)
    return made


def run(repository: Repository, expect: int = 0, **changes: object) -> str:
    study = repository.write("study.yaml", yaml.safe_dump(STUDY | changes))
    arguments = ("--cores", "2", "--configfile", study, "--", *TABLES)
    return repository.snakemake(*arguments, expect=expect).stdout


def tables(repository: Repository) -> list[bytes]:
    return [(repository.folder / path).read_bytes() for path in TABLES]


def forget_logs(repository: Repository) -> None:
    for path in (repository.folder / RESULTS / "batches").rglob("*.log"):
        path.unlink()


def counts(repository: Repository, step: str) -> tuple[int, int]:
    """How many cells the last jobs of a step computed and reused."""
    logs = (repository.folder / RESULTS / "batches").glob(f"**/{step}.log")
    text = "".join(path.read_text(encoding="utf-8") for path in logs)
    found = re.findall(r"^(\d+) computed, (\d+) reused, 0 failed$", text, re.M)
    return sum(int(x) for x, _ in found), sum(int(x) for _, x in found)


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-40] ^= 1
    path.write_bytes(content)


def test_cells_are_spread_over_batches(repository):
    batches = list((repository.folder / RESULTS / "batches").glob("drawn/shared~*"))
    assert len(batches) > 2
    assert counts(repository, "measure_rank") == (12, 0)


@pytest.mark.parametrize(("added", "new"), [({"d": [2, 3, 4]}, 6), ({"N": [8, 9, 10, 11]}, 4)])
def test_an_added_d_or_N_computes_its_cells_alone(repository, added, new):
    before, files = tables(repository), {}
    for path in (repository.folder / RESULTS / "cells").rglob("*.*"):
        files[path] = path.stat().st_mtime_ns
    forget_logs(repository)
    run(repository, cells=[STUDY["cells"][0] | added])
    for step in STEPS:
        assert counts(repository, step)[0] == new, step
    assert all(path.stat().st_mtime_ns == time for path, time in files.items())
    assert set(before[0].splitlines()) < set(tables(repository)[0].splitlines())
    forget_logs(repository)
    run(repository)
    assert tables(repository) == before
    for step in STEPS:
        assert counts(repository, step)[0] == 0, step


def test_batches_that_change_leave_no_manifest_that_is_believed(repository):
    """A plan of one batch writes other values; back in the plan of several, none is kept."""
    before = tables(repository)
    path = repository.folder / "workflow" / "batches.py"
    several = path.read_text(encoding="utf-8")
    path.write_text(several.replace("BATCH_SECONDS = 0.6", "BATCH_SECONDS = 100"), encoding="utf-8")
    run(repository, approximations={"noise": [0.2]})
    assert tables(repository)[:2] == before[:2] and tables(repository)[2] != before[2]
    assert counts(repository, "check_bound")[0] == 12
    path.write_text(several, encoding="utf-8")
    run(repository)
    assert tables(repository) == before


@pytest.mark.parametrize("name", ["factors.npz", "singular_values.npz", "receipts/build_cell.json"])
def test_a_damaged_intermediate_is_named_and_made_again(repository, name):
    before = tables(repository)
    path = sorted((repository.folder / RESULTS / "cells").rglob(name))[3]
    whole = path.read_bytes()
    flip(path)
    ranked_anew = {"limits": {"dense_rank_N": {"factors.npz": 500}.get(name, 400 + len(name))}}
    text = run(repository, expect=1, **ranked_anew)
    relative = path.relative_to(repository.folder)
    assert re.search(f"error: {relative}: missing, or not the bytes that .* wrote; run the", text)
    run(repository, **ranked_anew)
    assert path.read_bytes() == whole and tables(repository) == before


def test_a_damaged_table_of_a_cell_is_not_gathered(repository):
    before = tables(repository)
    path = sorted((repository.folder / RESULTS / "cells").rglob("spectrum.csv"))[3]
    flip(path)
    (repository.folder / TABLES[1]).unlink()
    relative = path.relative_to(repository.folder)
    assert f"{relative}: missing, or not" in run(repository, expect=1)
    run(repository)
    assert tables(repository) == before
    logs = (repository.folder / RESULTS / "batches").rglob("measure_spectrum.log")
    texts = [log.read_text(encoding="utf-8") for log in logs]
    (log,) = [text for text in texts if f" {relative.parent}\n" in text]
    assert f"computed {relative.parent}\n" in log and "\n1 computed" in log


def test_lost_tables_are_all_named_at_once(repository):
    before = tables(repository)
    (repository.folder / TABLES[0]).unlink()
    lost = sorted((repository.folder / RESULTS / "cells").rglob("N~8/d~[23]/*/rank.csv"))
    for path in lost:
        path.unlink()
    text = run(repository, expect=1)
    assert all(f"error: {path.relative_to(repository.folder)}: missing" in text for path in lost)
    run(repository)
    assert tables(repository) == before


def test_another_source_computes_its_own_cells_alone(repository):
    """Added to the batches of the first, and edited there."""
    other = {"source": "other", "N": [8, 9], "d": 2, "feature_map": ["exp", "relu"]}
    before = tables(repository)
    for settings in ({}, {"scale": 0.5, "members": 2}):
        forget_logs(repository)
        sources = STUDY["sources"] | {"other": {"kind": "gaussian", "members": 1} | settings}
        run(repository, sources=sources, cells=[*STUDY["cells"], other])
        for step in STEPS:
            assert counts(repository, step)[0] == 4, (step, settings)
        assert set(before[0].splitlines()) < set(tables(repository)[0].splitlines())
    forget_logs(repository)
    run(repository)
    assert tables(repository) == before
    assert not sum(counts(repository, step)[0] for step in STEPS)
