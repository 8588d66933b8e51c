"""What a run keeps for its jobs is what it has read, whatever becomes of the files."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import snapshot
import study as studies
from conftest import ROOT, Repository


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def keep(**sources: str) -> None:
    files = {f"{name.replace('__', '/')}.py": text.encode() for name, text in sources.items()}
    snapshot.keep(files, [], {"id": "i", "workflow": "w"})


def test_only_files_that_changed_are_written_and_those_that_are_gone_removed():
    keep(step="import lib.a", lib__a="x = 1", lib__b="x = 2")
    before = {path.name: path.stat().st_ino for path in snapshot.SCRIPTS.rglob("*.py")}
    keep(step="import lib.a", lib__a="x = 3")
    after = {path.name: path.stat().st_ino for path in snapshot.SCRIPTS.rglob("*.py")}
    assert set(before) == {"step.py", "a.py", "b.py"} and set(after) == {"step.py", "a.py"}
    assert after["step.py"] == before["step.py"] and after["a.py"] != before["a.py"]
    assert (snapshot.SCRIPTS / "lib" / "a.py").read_text() == "x = 3"


def test_an_edit_of_the_same_size_in_the_same_second_is_run():
    def said() -> str:
        path = snapshot.SCRIPTS / "lib" / "a.py"
        os.utime(path, (10**9, 10**9))
        command = [sys.executable, snapshot.SCRIPTS / "step.py"]
        environment = os.environ | {"PYTHONDONTWRITEBYTECODE": ""}
        return subprocess.run(command, capture_output=True, text=True, env=environment).stdout

    step = "import lib.a, lib.b; print(lib.a.x)"
    keep(step=step, lib__a="x = 1", lib__b="")
    assert said() == "1\n"
    keep(step=step, lib__a="x = 2", lib__b="")
    compiled = [path.name for path in snapshot.SCRIPTS.rglob("*.pyc")]
    assert [name.partition(".")[0] for name in compiled] == ["b"]
    assert said() == "2\n"


def test_claims_are_kept_as_they_were_read(here):
    claims = studies.load_claims(ROOT / "config" / "claims.yaml")
    odd = yaml.safe_load(
        "{select: {d: [2020-01-01, 1.0e-300, '1e5', null, é, 注意]}, tolerance: 1}"
    )
    snapshot.keep({}, [*claims, odd], {"id": "i"})
    kept = yaml.safe_load(snapshot.CLAIMS.read_text(encoding="utf-8"))
    assert repr(kept) == repr([*claims, odd])


@pytest.mark.parametrize("name", ["config", "smoke", "large", "linformer", "mine"])
def test_a_study_is_kept_as_it_was_read(name):
    """To its last bit, and in its order: parameters of rules derive from both."""
    study = studies.load([ROOT / "config" / f"{name}.yaml"], {})
    snapshot.keep({}, [], {"id": "i", "workflow": "w", "study": study})
    assert repr(snapshot.kept(snapshot.RUN, "w")["study"]) == repr(study)


def test_another_workflow_is_refused():
    keep()
    with pytest.raises(snapshot.Changed, match="run the same command again"):
        snapshot.kept(snapshot.RUN, "x")


def test_the_workflow_is_what_every_snakemake_reads(here):
    repository = Repository(here / "repository")
    before = snapshot.workflow_digest(repository.folder)
    for path in ("workflow/profiles/slurm/config.yaml", "config/config.yaml", "scripts/ladders.py"):
        repository.write(path, "")
    repository.write("envs/exact.wheels.pin.txt", "made by a run")
    assert snapshot.workflow_digest(repository.folder) == before
    for path in (
        *("workflow/Snakefile", "workflow/study.py", "workflow/rules/cells.smk"),
        *("workflow/schemas/study.schema.yaml", "workflow/new.py", "envs/exact.yaml"),
        *("envs/deployment/explicit.py", "envs/linalg.linux-64.pin.txt"),
        *("envs/wheels.txt", "envs/frontend/bin/conda"),
    ):
        repository.write(path, "# other words")
        changed = snapshot.workflow_digest(repository.folder)
        assert changed != before, path
        before = changed


STUDY = """
results: results/frozen
sources: {drawn: {kind: gaussian, members: 1}}
cells: [{source: drawn, N: 8, d: 2, feature_map: relu}]
"""
TABLE = "results/frozen/tables/two_token.csv"
AS_ON_A_NODE = (
    *("--snakefile", "workflow/Snakefile", "--mode", "remote", "--force", "--no-hooks"),
    *("--target-jobs", "tabulate_control:control=two_token", "--allowed-rules", "tabulate_control"),
    *("--cores", "1", "--configfiles", str(snapshot.RUN)),
)


@pytest.mark.workflow
def test_a_job_on_a_node_goes_by_what_its_run_began_with(here):
    repository = Repository(here / "repository")
    repository.write("study.yaml", STUDY)
    repository.snakemake("--cores", "1", "--configfile", "study.yaml", "--", TABLE)
    table = repository.folder / TABLE
    before = table.read_bytes()
    table.unlink()
    repository.write("study.yaml", "no study: [")
    repository.write("config/claims.yaml", "no claims: [")
    repository.write("scripts/two_token.py", "no code: [")
    repository.snakemake(*AS_ON_A_NODE)
    assert table.read_bytes() == before
    table.unlink()
    repository.write("workflow/batches.py", "no code: [")
    text = repository.snakemake(*AS_ON_A_NODE, expect=1).stdout
    error = "error: workflow/ or envs/ has changed since this run began: run the same command again"
    assert error in text.splitlines() and "Traceback" not in text
    assert not table.exists()


@pytest.mark.workflow
def test_a_run_without_hooks_takes_the_files_as_they_are(here):
    """It has no lock either, and what an earlier run has kept is not its own."""
    repository = Repository(here / "repository")
    repository.write("study.yaml", STUDY)
    options = ("--cores", "1", "--configfile", "study.yaml")
    repository.snakemake(*options, "--", TABLE)
    before = (repository.folder / TABLE).read_bytes()
    step = repository.folder / "scripts" / "two_token.py"
    text = step.read_text(encoding="utf-8")
    step.write_text("raise SystemExit(3)\n", encoding="utf-8")
    repository.snakemake(*options, "--no-hooks", "--", TABLE, expect=1)
    step.write_text(text, encoding="utf-8")
    repository.snakemake(*options, "--no-hooks", "--", TABLE)
    assert (repository.folder / TABLE).read_bytes() == before
