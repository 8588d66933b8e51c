"""A byte that flips in what a run has made is named when it is next read, and made again.

Which files later steps read, and which jobs do, is what Snakemake says of a finished smoke run. The
time of a file stays, as it does where a disk errs, so its readers are made to read it again.
"""

import csv
import json
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from conftest import Repository

pytestmark = [pytest.mark.workflow, pytest.mark.faults]
R = "results/smoke"
STUDY = ("--configfile", "config/smoke.yaml")
KINDS = {
    "source": r"sources/.*\.npz",
    "concentration of a length": r"concentration/.*\.npz",
    "projections of a length": r"projection(_\w+)?/.*\.csv",
    "packages of an environment": r"packages/\w+\.csv",
    "figure": r"figures/\w+\.png",
    "table": r"claims\.csv|tables/(?!acceptance_history)\w+\.csv",
    "record of declarations": r"tables/acceptance_history\.csv",
    "manifest of a batch": r"batches/.*\.txt",
    "arrays of a cell": r"cells/.*\.npz",
    "table of a cell": r"(cells|growth)/.*\.csv",
    "receipt of a cell": r"(cells|growth)/.*\.json",
}
FLIPPED = 3
"""Files of a kind at once, each with a reader of its own."""


@dataclass(frozen=True)
class Job:
    inputs: frozenset[str]
    outputs: frozenset[str]


def disturb(one: Job, other: Job, jobs: list[Job]) -> bool:
    """Whether the other job reads what goes if this one finds it damaged, or is made anew after."""
    anew = set(one.outputs)
    while made := {x for job in jobs if anew & job.inputs for x in job.outputs} - anew:
        anew |= made
    return bool(one.inputs & other.inputs or anew & (other.inputs | other.outputs))


def vouched_for(folder: Path) -> dict[str, set[str]]:
    """By manifest the files that its receipts vouch for, and these."""
    found = {}
    for manifest in (folder / R / "batches").rglob("*.txt"):
        files = found.setdefault(manifest.relative_to(folder).as_posix(), set())
        for line in manifest.read_text(encoding="utf-8").splitlines():
            receipt = Path(line.split("  ", 1)[1])
            outputs = json.loads((folder / receipt).read_text(encoding="utf-8"))["outputs"]
            files |= {x.as_posix() for x in (receipt, *(receipt.parents[1] / x for x in outputs))}
    return found


def read_by(output: str, path: str) -> bool:
    """Whether a step that reads a manifest reads such a file of what it vouches for, too.

    Other tables of a cell than these test_batch_runs.py damages.
    """
    stem = Path(path).stem
    return path.endswith((".npz", ".json")) or output == f"{R}/tables/{stem}.csv"


@pytest.fixture(scope="module")
def jobs(smoke_repository) -> list[Job]:
    """Those of the finished run, the ones that read the fewest files first."""
    text = smoke_repository.snakemake("--detailed-summary", *STUDY).stdout
    lines = text[text.index("output_file\t") :].splitlines()
    made: dict[tuple[str, str], list[str]] = {}
    for row in csv.DictReader(lines, delimiter="\t"):
        if row["output_file"].startswith(R):
            made.setdefault((row["input-file(s)"], row["shellcmd"]), []).append(row["output_file"])
    vouched, found = vouched_for(smoke_repository.folder), []
    for (inputs, _), outputs in made.items():
        files = {path for path in inputs.split(",") if path.startswith(R)}
        for manifest in files & vouched.keys():
            files |= {path for path in vouched[manifest] if read_by(outputs[0], path)}
        found.append(Job(frozenset(files), frozenset(outputs)))
    assert len(found) > 50
    return sorted(found, key=lambda job: len(job.inputs))


@pytest.fixture(scope="module")
def readers(jobs) -> dict[str, list[Job]]:
    """The jobs that read each file."""
    found: dict[str, list[Job]] = {}
    for job in jobs:
        for path in job.inputs:
            found.setdefault(path, []).append(job)
    return found


@pytest.fixture
def damaged(smoke_repository, tmp_path) -> Repository:
    """A copy, to be damaged."""
    shutil.copytree(smoke_repository.folder, tmp_path / "repository", symlinks=True)
    return Repository.at(tmp_path / "repository")


def kind_of(path: str) -> str | None:
    kinds = [kind for kind, form in KINDS.items() if re.fullmatch(f"{R}/({form})", path)]
    assert len(kinds) <= 1, path
    return kinds[0] if kinds else None


def flip(path: Path) -> None:
    """A bit of the byte in the middle; with the time that the file had."""
    status, content = path.stat(), bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def test_every_file_that_a_later_step_reads_is_of_a_kind(readers):
    assert {path for path in readers if kind_of(path) is None} == set()
    assert {kind_of(path) for path in readers} == set(KINDS)


def choose(kind: str, readers: dict[str, list[Job]], jobs: list[Job]) -> list[tuple[str, Job]]:
    """Some files of the kind, each with a reader, that can be damaged and read at once."""
    files = [path for path in sorted(readers) if kind_of(path) == kind]
    chosen: list[tuple[str, Job]] = []
    for path in [*files[:: max(1, len(files) // FLIPPED)], *files]:
        reader = readers[path][0]
        free = not any(disturb(reader, x, jobs) or disturb(x, reader, jobs) for _, x in chosen)
        if free and len(chosen) < FLIPPED:
            chosen.append((path, reader))
    return chosen


@pytest.mark.parametrize("kind", KINDS)
def test_a_flipped_byte_is_named_and_made_again(smoke_repository, damaged, jobs, readers, kind):
    expected = smoke_repository.outputs(R)
    chosen = choose(kind, readers, jobs)
    assert chosen
    targets = sorted(output for _, job in chosen for output in job.outputs)
    for path, _ in chosen:
        flip(damaged.folder / path)
    for target in targets:
        (damaged.folder / target).unlink()
    command = ("--cores", "2", "--keep-going", *STUDY, "--", *targets)
    text = damaged.snakemake(*command, expect=1).stdout
    for path, _ in chosen:
        # Of a manifest's flipped byte it is a receipt that does not agree.
        named = r"\S+" if kind == "manifest of a batch" else re.escape(path)
        assert re.search(f"error: {named}: .*not the bytes that .* run the same", text), path
    assert "Traceback" not in text
    damaged.snakemake(*command)
    for path in (damaged.folder / R).rglob("*.damaged"):
        path.unlink()
    assert damaged.outputs(R) == expected
