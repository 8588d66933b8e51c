"""A whole run: a threshold that is changed after results existed stays visible."""

import csv

import pytest

from conftest import Repository

pytestmark = pytest.mark.workflow
R = "results/smoke"
TARGETS = [f"{R}/tables/acceptance.csv", f"{R}/pages/acceptance_history.html"]


def declarations(repository: Repository) -> list[str]:
    path = repository.folder / R / "tables" / "acceptance_history.csv"
    with path.open(newline="") as file:
        return [row["output_error"] for row in csv.DictReader(file)]


def test_a_changed_threshold_stays_visible(repository):
    def run(study: str, *options: str, expect: int = 0) -> str:
        command = (*TARGETS, "--cores", "1", *options, "--configfile", study)
        return repository.snakemake(*command, expect=expect).stdout

    smoke, page = "config/smoke.yaml", repository.folder / TARGETS[1]
    run(smoke)
    assert declarations(repository) == ["0.05"]
    before = repository.outputs(R)
    run(smoke, "--forcerun", "judge_acceptance")
    assert repository.outputs(R) == before, "the same criterion appends nothing"
    text = (repository.folder / smoke).read_text(encoding="utf-8")
    looser = repository.write("looser.yaml", text + "acceptance: {output_error: 0.2}\n")
    log = run(looser)
    assert "rule approximate_layers" not in log, "what was measured is not measured again"
    assert declarations(repository) == ["0.05", "0.2"]
    assert "output_error: 0.05 to 0.2" in page.read_text(encoding="utf-8")
    script = repository.folder / "scripts" / "judge_acceptance.py"
    script.write_text(script.read_text() + "\nraise SystemExit(1)\n", encoding="utf-8")
    run(smoke, expect=1)
    assert declarations(repository)[:2] == ["0.05", "0.2"], "a failed job loses no record"
