"""The steps in their environments, for real: made from wheels, or served on loopback."""

import ast
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import channel
import code_digest
import explicit
import situation
from conftest import ROOT, Repository
from test_environments import ENVIRONMENTS as ALL_ENVIRONMENTS
from test_environments import steps_by_environment
from tiny_packages import served

pytestmark = pytest.mark.deployed
ENVIRONMENTS = [name for name in ALL_ENVIRONMENTS if name != "benchmark"]  # not of the default run
SMOKE = ("--configfile", "config/smoke.yaml")
CREATE = ("--conda-create-envs-only", "--cores", "2")  # those of the default study, all
TWO_TOKEN = ("results/smoke/tables/two_token.csv", "--cores", "1", *SMOKE)


@pytest.fixture(scope="module", autouse=True)
def made_from_wheels() -> None:
    """The channel of this clone, made once; without a conda on PATH, whatever the machine has."""
    channel.make()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", without_conda())
        patch.setenv(situation.VARIABLE, "wheels")
        yield


def without_conda() -> str:
    folders = os.environ["PATH"].split(os.pathsep)
    return os.pathsep.join(folder for folder in folders if not Path(folder, "conda").exists())


def new_repository(folder: Path) -> Repository:
    """A clone that shares the packages made from wheels, and the cache of what they unpack to."""
    repository = Repository(folder, deployed=True)
    (folder / ".snakemake").mkdir()
    for name in ("wheels", "packages"):
        shared = ROOT / ".snakemake" / name
        shared.mkdir(exist_ok=True)
        (folder / ".snakemake" / name).symlink_to(shared)
    return repository


@pytest.fixture
def clone(tmp_path: Path) -> Repository:
    return new_repository(tmp_path / "a repository")


@pytest.fixture(scope="module")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    """A repository in which the smoke study has run in its environments, on one core."""
    repository = new_repository(tmp_path_factory.mktemp("deployed") / "repository")
    repository.snakemake("--cores", "1", *SMOKE)
    return repository


def prefixes(repository: Repository) -> dict[str, Path]:
    """Where each environment is."""
    listed = repository.snakemake("--list-conda-envs").stdout.splitlines()
    rows = [line.split("\t") for line in listed if line.count("\t") == 2]
    return {Path(row[0]).stem: repository.folder / row[2] for row in rows if ".yaml" in row[0]}


@pytest.fixture(scope="module")
def prefix_of(deployed: Repository) -> dict[str, Path]:
    deployed.snakemake(*CREATE)  # that of the model, which the smoke study does without
    return prefixes(deployed)


def environment_folders(repository: Repository) -> list[str]:
    return sorted(path.parent.name for path in repository.folder.glob(".snakemake/conda/*/bin"))


def test_environments_on_one_core_write_what_the_driver_writes_on_two(deployed, smoke_repository):
    """The same bytes, in another folder; what says of the packages whence they are differs."""

    def but_packages(outputs):
        own = ("packages", "receipts/measure_", "receipts/compute_", "receipts/check_")
        own += ("receipts/build_cell", "receipts/estimate_", "receipts/find_", "batches/")
        return {k: content for k, content in outputs.items() if not any(x in k for x in own)}

    expected = but_packages(smoke_repository.outputs("results/smoke"))
    assert len(expected) > 100
    assert but_packages(deployed.outputs("results/smoke")) == expected


def test_the_table_of_packages_says_whence_they_came(deployed):
    lines = (deployed.folder / "results/smoke/tables/packages.csv").read_text().splitlines()[1:]
    rows = {tuple(line.split(",")) for line in lines}
    assert rows == {
        (name, "wheels", p.name, p.version, p.build, p.md5)
        for name in ENVIRONMENTS
        if name != "model"  # of which the smoke study has none
        for p in explicit.read(deployed.folder / "envs" / f"{name}.wheels.pin.txt")
    }


def imported(script: str) -> set[str]:
    """The modules that a step and what it imports of ours import, by their full names."""
    names = set()
    for path in code_digest.import_closure(ROOT / "scripts" / f"{script}.py"):
        for node in ast.walk(code_digest.parsed(path)):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                names.add(node.module)
    ours = {path.stem for path in (ROOT / "scripts").iterdir()}
    return {name for name in names if name.split(".")[0] not in ours}


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_an_environment_has_all_that_its_steps_import_on_its_own(prefix_of, environment):
    """Not by the driver's packages: of those, Snakemake itself cannot be imported."""
    scripts = [script for script, name in steps_by_environment() if name == environment]
    modules = sorted(set().union(*map(imported, scripts)))
    program = f"import sys, {', '.join(modules)}; print(sys.prefix)"
    prefix = prefix_of[environment]
    run = subprocess.run(
        ["bash", "-c", 'source "$1" "$2"; python -I -c "$3"; ! python -I -c "import snakemake"',
         "bash", situation.FRONTEND / "activate", prefix, program],
        capture_output=True,
        text=True,
    )  # fmt: skip
    assert run.stdout.strip() == str(prefix), run.stderr
    assert "No module named 'snakemake'" in run.stderr


def test_a_second_run_has_nothing_to_do_and_a_second_set_up_needs_no_network(deployed, tmp_path):
    assert deployed.planned("config/smoke.yaml") == {}
    again = new_repository(tmp_path / "again")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("http_proxy", "https_proxy", "PIP_INDEX_URL"):
            patch.setenv(name, "http://127.0.0.1:1")
        again.snakemake(*CREATE)
    assert len(environment_folders(again)) == len(ENVIRONMENTS)


def test_a_changed_pin_rebuilds_its_environment_and_reruns_its_steps_alone(deployed):
    yaml = deployed.folder / "envs" / "figures.yaml"
    pin_file = channel.pin_file(yaml)
    plots = {script for script, name in steps_by_environment() if name == "figures"}
    of_a_model = {"plot_depth_by_head", "plot_concentration"}
    elsewhere = of_a_model | {"plot_performance", "plot_approximation_cost"}  # of the benchmark
    expected = plots - elsewhere | {"gather_packages", "typeset_page"}
    deployed.snakemake(*CREATE)
    before, text = environment_folders(deployed), yaml.read_text()
    pins = {name: channel.pin_file(yaml.with_stem(name)).read_bytes() for name in ENVIRONMENTS}
    try:
        yaml.write_text(text + "  - packaging=25.0\n")
        assert set(deployed.planned("config/smoke.yaml")) == expected
        deployed.snakemake(*CREATE)
        after = environment_folders(deployed)
        assert set(before) < set(after) and len(after) == len(before) + 1
    finally:
        yaml.write_text(text)
    assert deployed.planned("config/smoke.yaml") == {}
    for name, content in pins.items():
        assert channel.pin_file(yaml.with_stem(name)).read_bytes() == content
    pin_file.write_text(pin_file.read_text() + "# as if a wheel had changed\n")
    call_it_solved = "import channel; channel.PINS_STAMP.write_text(channel.solved())"
    own = {"PYTHONPATH": str(deployed.folder / "envs" / "deployment")}
    subprocess.run([sys.executable, "-c", call_it_solved], check=True, env=os.environ | own)
    try:
        assert set(deployed.planned("config/smoke.yaml")) == expected
    finally:
        pin_file.write_bytes(pins["figures"])


def test_an_environment_that_is_not_what_is_pinned_stops_the_run_and_is_made_anew(
    deployed, prefix_of
):
    record = next((prefix_of["tables"] / "conda-meta").glob("numpy-*.json"))
    content = json.loads(record.read_text())
    record.unlink()  # not written in place: the file may be shared with the cache
    record.write_text(json.dumps(content | {"md5": 32 * "0"}))
    run = ("--cores", "1", *SMOKE, "--forcerun", "typeset_by_N", "--until", "typeset_by_N")
    message = deployed.snakemake(*run, expect=1).stdout
    line = next(line for line in message.splitlines() if line.startswith("error:"))
    assert "envs/tables.wheels.pin.txt" in line and "numpy 2.4.2" in line
    deployed.snakemake(*run)


def test_a_killed_set_up_is_resumed(clone):
    run = subprocess.Popen(
        clone.command(*CREATE),
        cwd=clone.folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    deadline = time.monotonic() + 60
    while not list(clone.folder.glob(".snakemake/conda/.part.*")):
        assert run.poll() is None and time.monotonic() < deadline
        time.sleep(0.005)
    os.killpg(run.pid, signal.SIGKILL)
    run.wait()
    clone.snakemake(*TWO_TOKEN)
    clone.snakemake(*CREATE)
    assert len(environment_folders(clone)) == len(ENVIRONMENTS)
    assert not list(clone.folder.glob(".snakemake/conda/.part.*"))


def test_two_set_ups_at_the_same_time(clone):
    runs = [
        subprocess.Popen(
            clone.command(*CREATE),
            cwd=clone.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for _ in range(2)
    ]
    for run in runs:
        output, _ = run.communicate()
        assert run.returncode == 0, output[-3000:]
    for name, prefix in prefixes(clone).items():
        pins = explicit.read(clone.folder / "envs" / f"{name}.wheels.pin.txt")
        assert explicit.differences(pins, explicit.installed(prefix)) == []


@pytest.fixture(scope="module")
def loopback(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A server whose channel conda-forge is the one made from wheels."""
    folder = tmp_path_factory.mktemp("server")
    (folder / "conda-forge").symlink_to(channel.CHANNEL)
    with served(folder) as address:
        yield address


@pytest.fixture
def connected(clone: Repository, loopback: str, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """A clone on a machine that reaches conda-forge; `exact` has a pin file there."""
    (clone.folder / ".snakemake" / "packages").unlink()
    monkeypatch.setenv("CONDA_CHANNEL_ALIAS", loopback)
    monkeypatch.delenv(situation.VARIABLE)
    made = explicit.read(channel.pin_file(ROOT / "envs" / "exact.yaml"))
    home = f"{situation.ALIAS}/conda-forge"
    served = [p._replace(url=f"{home}/{p.subdir}/{p.file_name}") for p in made]
    clone.write("envs/exact.linux-64.pin.txt", explicit.write(served))
    return clone


def test_without_conda_the_frontend_takes_what_conda_forge_serves(connected):
    output = connected.snakemake(*TWO_TOKEN).stdout
    assert "by py-rattler" in output
    record = json.loads((connected.folder / ".snakemake" / "packages.json").read_text())
    assert record["situation"] == "conda-forge"
    urls = [p.url for p in explicit.installed(*connected.folder.glob(".snakemake/conda/*_"))]
    assert urls and all(url.startswith("http://127.0.0.1") for url in urls)
    connected.snakemake("results/smoke/packages/exact.csv", "--cores", "1", *SMOKE)
    table = (connected.folder / "results/smoke/packages/exact.csv").read_text()
    assert "exact,conda-forge,numpy,2.4.2" in table


def test_an_environment_without_pins_is_solved_from_its_yaml(connected):
    (connected.folder / "envs" / "exact.linux-64.pin.txt").unlink()
    connected.snakemake(*TWO_TOKEN)
    (prefix,) = connected.folder.glob(".snakemake/conda/*_")
    assert {"numpy", "scipy", "python-flint", "python"} <= {
        package.name for package in explicit.installed(prefix)
    }


def test_a_wrong_hash_stops_the_run_whatever_the_yaml_would_give(connected):
    pins = connected.folder / "envs" / "exact.linux-64.pin.txt"
    right = pins.read_text()
    md5 = next(p.md5 for p in explicit.read(pins) if p.name == "numpy")
    pins.write_text(right.replace(md5, md5[::-1]))
    output = connected.snakemake(*TWO_TOKEN, expect=1).stdout
    assert any(
        line.startswith("error: ") and "numpy-2.4.2" in line for line in output.splitlines()
    ), output
    assert "is not solved anew, since its pin file failed" in output
    assert environment_folders(connected) == []
    pins.write_text(right)
    connected.snakemake(*TWO_TOKEN)


@pytest.fixture
def conda(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A conda on PATH; what it is called with is in the file calls beside it."""
    program = tmp_path / "conda" / "bin" / "conda"
    program.parent.mkdir(parents=True)
    shutil.copy(situation.FRONTEND / "activate", program.parent)
    program.write_text(
        f'#!/bin/sh\necho "$*" >> {program.with_name("calls")}\n'
        f'exec {sys.executable} {situation.FRONTEND / "conda"} "$@"\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    return program


def test_a_conda_on_path_is_called_and_not_shadowed(connected, conda, monkeypatch):
    """Forced, since no test can be sure to reach the server that a conda would ask."""
    monkeypatch.setenv(situation.VARIABLE, "conda")
    connected.snakemake(*TWO_TOKEN)
    calls = conda.with_name("calls").read_text().splitlines()
    assert "info --json" in calls
    assert any(call.startswith("create") and ".pin.txt" in call for call in calls)


def test_a_conda_that_reaches_no_conda_forge_is_passed_over(clone, conda, monkeypatch):
    monkeypatch.delenv(situation.VARIABLE)
    monkeypatch.setenv("CONDA_CHANNEL_ALIAS", "http://127.0.0.1:1")
    output = clone.snakemake(*TWO_TOKEN).stdout
    lines = [line for line in output.splitlines() if line.startswith("environments:")]
    assert len(lines) == 1 and f"so {conda} is not used" in lines[0]
    assert not conda.with_name("calls").exists()
