"""Fetching a wheel, from a folder that plays the index: no network."""

import hashlib
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from conftest import ROOT

SCRIPT = ROOT / "scripts" / "fetch_wheel.py"


@pytest.fixture
def index(tmp_path, monkeypatch) -> Path:
    """A folder with the wheel tiny==1.0, and pip set to look nowhere else."""
    folder = tmp_path / "index"
    folder.mkdir()
    metadata = "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n"
    with zipfile.ZipFile(folder / "tiny-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("tiny-1.0.dist-info/METADATA", metadata)
        wheel.writestr("tiny-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        wheel.writestr("tiny-1.0.dist-info/RECORD", "")
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


def fetch(wheel: str, sha256: str, output: Path) -> subprocess.CompletedProcess:
    command = [sys.executable, SCRIPT, "--wheel", wheel, "--sha256", sha256, "--output", output]
    return subprocess.run(command, capture_output=True, text=True)


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_right_hash(index, tmp_path):
    source = index / "tiny-1.0-py3-none-any.whl"
    output = tmp_path / "downloads" / "tiny==1.0.whl"
    run = fetch("tiny==1.0", digest(source), output)
    assert (run.returncode, run.stderr) == (0, "")
    assert output.read_bytes() == source.read_bytes()
    assert [path.name for path in output.parent.glob("*.*")] == [output.name]


def test_wrong_hash_says_both(index, tmp_path):
    got = digest(index / "tiny-1.0-py3-none-any.whl")
    output = tmp_path / "downloads" / "tiny.whl"
    run = fetch("tiny==1.0", "0" * 64, output)
    assert run.returncode == 1
    expected = f"error: tiny==1.0 has another hash: expected sha256 {'0' * 64}, got {got}\n"
    assert run.stderr == expected
    assert not output.exists()


def test_missing_version(index, tmp_path):
    run = fetch("tiny==2.0", "0" * 64, tmp_path / "tiny.whl")
    assert run.returncode == 1
    assert run.stderr == (
        "error: pip could not download tiny==2.0: No matching distribution found for tiny==2.0\n"
    )


def test_unreachable_index(index, tmp_path, monkeypatch):
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.setenv("PIP_RETRIES", "1")
    monkeypatch.setenv("no_proxy", "localhost")
    # Port 9 of this machine, where nothing listens.
    monkeypatch.setenv("PIP_INDEX_URL", "http://localhost:9")
    run = fetch("absent==1.0", "0" * 64, tmp_path / "absent.whl")
    assert run.returncode == 1
    assert run.stderr.startswith("error: pip could not download absent==1.0: the package index")
    assert run.stderr.count("\n") == 1


def test_a_source_archive_is_never_built(index, tmp_path):
    (index / "built-1.0.tar.gz").write_bytes(b"its setup.py would run")
    run = fetch("built==1.0", digest(index / "built-1.0.tar.gz"), tmp_path / "built.whl")
    assert run.returncode == 1
    assert "No matching distribution found for built==1.0" in run.stderr


@pytest.mark.parametrize(
    "wheel",
    ["tiny", "tiny==1.*", "tiny>=1.0", "tiny==1.0\n", "tiny==1.0 --pre", "-r x==1", "tiny @ a==1"],
)
def test_malformed_wheel(tmp_path, wheel):
    run = fetch(wheel, "0" * 64, tmp_path / "x.whl")
    assert run.returncode == 2
    assert "is not NAME==VERSION" in run.stderr


@pytest.mark.parametrize("sha256", ["0" * 63, "0" * 65, "g" * 64, "0" * 64 + "\n", "A" * 64])
def test_malformed_hash(tmp_path, sha256):
    run = fetch("tiny==1.0", sha256, tmp_path / "x.whl")
    assert run.returncode == 2
    assert "is not 64 lower-case hexadecimal digits" in run.stderr
