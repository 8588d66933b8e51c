"""The lists of packages: what is there, and what must be."""

import csv
import json
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import list_packages
from conftest import ROOT


def step(script, *arguments):
    command = [sys.executable, ROOT / "scripts" / f"{script}.py", *arguments]
    return subprocess.run(command, capture_output=True, text=True)


def rows(path):
    with Path(path).open(newline="") as file:
        return list(csv.DictReader(file))


LIST = ("list_packages", "--environment", "linalg", "--packages-from", "driver")


def test_without_conda_it_lists_what_python_finds(tmp_path):
    out = tmp_path / "linalg.csv"
    run = step(*LIST, "--pins", f"numpy={np.__version__}", "--output", out)
    assert run.returncode == 0, run.stderr
    found = {row["package"]: row for row in rows(out)}
    assert found["numpy"]["version"] == np.__version__
    assert found["python"]["version"] == platform.python_version()
    assert {(r["environment"], r["packages_from"], r["md5"]) for r in rows(out)} == {
        ("linalg", "driver", "")
    }


def test_with_conda_it_lists_the_records(tmp_path, monkeypatch):
    (tmp_path / "conda-meta").mkdir()
    record = {"name": "numpy", "version": "2.4.2", "build": "py312_0", "md5": "ab", "depends": []}
    (tmp_path / "conda-meta" / "numpy.json").write_text(json.dumps(record))
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert list_packages.packages() == [("numpy", "2.4.2", "py312_0", "ab")]


@pytest.mark.parametrize(
    ("pin", "there"), [("numpy=0.1", np.__version__), ("nowhere=1.0", "not at all")]
)
def test_another_version_than_the_yaml_asks_for_is_an_error(tmp_path, pin, there):
    out = tmp_path / "linalg.csv"
    run = step(*LIST, "--pins", pin, "--output", out)
    name, version = pin.split("=")
    assert run.returncode == 1 and not out.exists()
    assert run.stderr == (
        f"error: environment linalg has {name} {there}, and envs/linalg.yaml asks for {version}\n"
    )


def test_gathering_keeps_every_row(tmp_path):
    paths = []
    for name in ("exact", "linalg"):
        paths.append(tmp_path / f"{name}.csv")
        text = f"{','.join(list_packages.COLUMNS)}\n{name},wheels,numpy,2.4.2,0,ab\n"
        paths[-1].write_text(text)
    run = step("gather_packages", "--input", *paths, "--output", tmp_path / "packages.csv")
    assert run.returncode == 0, run.stderr
    assert rows(tmp_path / "packages.csv") == [row for path in paths for row in rows(path)]
