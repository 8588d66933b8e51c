"""The frontend as a command: what Snakemake and snakedeploy call, in their order."""

import functools
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import explicit
import situation
from conftest import ROOT
from tiny_packages import index, package, served

ACTIVATE = situation.FRONTEND / "activate"
DRIVER = str(Path(sys.executable).parent)


@pytest.fixture(scope="module")
def conda(tmp_path_factory):
    """The frontend of a clone, so that its cache is its own."""
    envs = tmp_path_factory.mktemp("clone") / "envs"
    shutil.copytree(ROOT / "envs", envs, ignore=shutil.ignore_patterns("__pycache__"))
    return functools.partial(run, envs / "frontend" / "bin")


def run(frontend, *arguments, packages_from="conda-forge", **environment):
    return subprocess.run(
        ["conda", *map(str, arguments)],
        capture_output=True,
        text=True,
        env={
            "PATH": f"{frontend}:{DRIVER}:/usr/bin:/bin",
            situation.VARIABLE: packages_from,
        }
        | environment,
    )


@pytest.fixture
def conda_forge(own_folders, monkeypatch):
    """The address of a server whose conda-forge has the packages `a`, which needs `b`, and `b`."""
    import channel

    folder = own_folders / "server"
    folder.mkdir()
    monkeypatch.setattr(channel, "CHANNEL", folder / "conda-forge")
    for subdir in ("noarch", "linux-64"):
        (channel.CHANNEL / subdir).mkdir(parents=True)
    package("a", {"share/a": "a"}, depends=["b"])
    package("b", {"share/b": "b"})
    index()
    with served(folder) as address:
        yield address


def test_snakemake_finds_the_version_that_it_needs(conda):
    from packaging.version import Version
    from snakemake.deployment.conda import MIN_CONDA_VER

    (version,) = re.findall(r"\d+\.\d+\.\d+", conda("--version").stdout)
    assert Version(version) >= Version(MIN_CONDA_VER)


def test_info_says_where_activate_is_and_the_platform(conda):
    info = json.loads(conda("info", "--json").stdout)
    assert Path(info["conda_prefix"], "bin", "activate").read_text() == ACTIVATE.read_text()
    assert info["platform"] in ("linux-64", "linux-aarch64", "osx-64", "osx-arm64")


def test_channel_priority_is_strict(conda):
    got = json.loads(conda("config", "--get", "channel_priority", "--json").stdout)
    assert got["get"]["channel_priority"] == "strict"


def test_as_snakedeploy_pins(conda, conda_forge, tmp_path):
    """Create from a YAML, list explicitly, create from the list, remove."""
    yaml = tmp_path / "a.yaml"
    yaml.write_text("channels: [conda-forge]\ndependencies: [a=1.0]\n")
    alias = {"CONDA_CHANNEL_ALIAS": conda_forge}
    made = conda("env", "create", "--prefix", tmp_path / "one", "--file", yaml, **alias)
    assert made.returncode == 0, made.stderr
    assert {(tmp_path / "one/share" / name).read_text() for name in "ab"} == {"a", "b"}
    listed = conda("list", "--explicit", "--md5", "--prefix", tmp_path / "one")
    pins = tmp_path / "a.pin.txt"
    pins.write_text(listed.stdout)
    assert [str(p) for p in explicit.read(pins)] == ["a 1.0 0", "b 1.0 0"]
    again = ("create", "--quiet", "--no-default-packages", "--yes", "--file", pins)
    assert conda(*again, "--prefix", tmp_path / "two").returncode == 0
    found = explicit.installed(tmp_path / "two")
    assert explicit.differences(explicit.read(pins), found) == []
    names = json.loads(conda("list", "--json", "--prefix", tmp_path / "two").stdout)
    assert [name["name"] for name in names] == ["a", "b"]
    assert conda("env", "remove", "--prefix", tmp_path / "two", "-y").returncode == 0
    assert not (tmp_path / "two").exists()


def test_a_failed_pin_file_is_not_replaced_by_the_yaml(conda, conda_forge, tmp_path):
    yaml = tmp_path / "one.yaml"
    yaml.write_text("channels: [conda-forge]\ndependencies: [a=1.0]\n")
    (tmp_path / "one.pin.txt").write_text("whatever Snakemake put there")
    alias = {"CONDA_CHANNEL_ALIAS": conda_forge}
    made = conda("env", "create", "--prefix", tmp_path / "one", "--file", yaml, **alias)
    assert made.returncode == 1 and not (tmp_path / "one").exists()
    assert re.fullmatch(r"error: .*since its pin file failed.*\n", made.stderr)


def test_archives_are_installed_as_they_are(conda, conda_forge, tmp_path):
    archives = sorted((tmp_path / "server" / "conda-forge" / "noarch").glob("*.conda"))
    made = conda("create", "--quiet", "--yes", "--prefix", tmp_path / "one", *archives)
    assert made.returncode == 0, made.stderr
    assert (tmp_path / "one/share/b").read_text() == "b"


@pytest.mark.parametrize(
    ("arguments", "cause"),
    [
        (("create", "--prefix", "one", "--file", "no.pin.txt"), "no.pin.txt"),
        (("env", "create", "--prefix", "one", "--file", "no.yaml"), "no.yaml"),
        (("list", "--prefix", "one"), "one"),
    ],
)
def test_an_error_is_one_line_that_names_its_cause(conda, arguments, cause):
    done = conda(*arguments)
    assert done.returncode == 1 and re.fullmatch(r"error: .*\n", done.stderr)
    assert cause in done.stderr


def test_what_it_does_not_know_it_refuses(conda):
    done = conda("install", "numpy")
    assert done.returncode == 2 and "invalid choice" in done.stderr


def test_a_folder_with_a_space_is_quoted_for_the_shell(tmp_path):
    """Snakemake has bash source the script below what info says, as it is."""
    envs = tmp_path / "my clone" / "envs"
    shutil.copytree(ROOT / "envs", envs, ignore=shutil.ignore_patterns("__pycache__"))
    info = json.loads(run(envs / "frontend" / "bin", "info", "--json").stdout)
    python = tmp_path / "my env" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    line = f"source {info['conda_prefix']}/bin/activate '{tmp_path}/my env'; echo $CONDA_PREFIX"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == (f"{tmp_path}/my env\n", "")


def test_an_environment_without_python_is_not_activated(tmp_path):
    """Or the driver's Python would run its steps."""
    line = f"source {ACTIVATE} '{tmp_path}'; python -c pass"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr == f"error: {tmp_path} has no python; remove it, and run again\n"
