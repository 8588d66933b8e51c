"""Lost records are told from none yet, and from those of other results."""

from base64 import urlsafe_b64encode
from pathlib import Path

import pytest

import lost_records

OUTPUTS = ("results/all/tables/rank.csv", "results/all/tables/spectrum.csv")


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def make(path: str) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).touch()


def record(output: str) -> None:
    make(f".snakemake/metadata/{urlsafe_b64encode(output.encode()).decode()}")


def test_before_the_first_run_nothing_is_lost():
    assert not lost_records.lost(OUTPUTS)


def test_results_without_records():
    make(OUTPUTS[0])
    assert lost_records.lost(OUTPUTS)
    record("results/other/tables/rank.csv")
    assert lost_records.lost(OUTPUTS)


def test_every_table_needs_its_record():
    for output in OUTPUTS:
        make(output)
    record(OUTPUTS[1])
    assert lost_records.lost(OUTPUTS)
    record(OUTPUTS[0])
    assert not lost_records.lost(OUTPUTS)


def test_what_a_killed_run_has_begun_is_made_again():
    make(OUTPUTS[0])
    make(f".snakemake/incomplete/{urlsafe_b64encode(OUTPUTS[0].encode()).decode()}")
    assert not lost_records.lost(OUTPUTS)


def test_names_that_are_too_long_say_nothing():
    long = f"results/{'x' * 200}/rank.csv"
    make(long)
    assert not lost_records.lost([long])
