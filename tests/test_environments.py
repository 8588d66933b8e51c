"""The environments of the rules: the pins of the driver, and all that a step imports."""

import ast
import re
import sys
from itertools import combinations

import pytest
import yaml

import code_digest
import explicit
import situation
from conftest import ROOT

ENVIRONMENTS = sorted(path.stem for path in (ROOT / "envs").glob("*.yaml"))
MODULE_OF = {
    "python-flint": "flint",
    "matplotlib-base": "matplotlib",
    "pyyaml": "yaml",
    "pillow": "PIL",
    "scikit-learn": "sklearn",
}
FROM_PIP = {"matplotlib-base": "matplotlib"}


def dependencies(environment: str) -> dict[str, str]:
    """The exact pins of an environment: version by conda package."""
    document = yaml.safe_load((ROOT / "envs" / f"{environment}.yaml").read_text(encoding="utf-8"))
    pins = [line.split("=") for line in document["dependencies"] if "=" in line and ">" not in line]
    return dict(pins)


def steps_by_environment() -> list[tuple[str, str]]:
    """(script, environment) as the rules declare them in `digest(...)`."""
    text = "".join(p.read_text(encoding="utf-8") for p in (ROOT / "workflow/rules").glob("*.smk"))
    pairs = set(re.findall(r'digest\("(\w+)\.py", "(\w+)"\)', text))
    controls = re.search(r"CONTROLS = \(([^)]*)\)", text)[1]
    pairs |= {(name, "exact") for name in re.findall(r'"(\w+)"', controls)}
    pairs |= {("list_packages", name) for name in ENVIRONMENTS}
    return sorted(pairs)


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_pins_are_those_of_the_wheels(environment):
    text = (ROOT / "envs" / "wheels.txt").read_text(encoding="utf-8")
    locked = dict(re.findall(r"^([\w.-]+)==(\S+)", text, re.M))
    for name, version in dependencies(environment).items():
        assert locked[FROM_PIP.get(name, name)] == version


@pytest.mark.parametrize(("script", "environment"), steps_by_environment())
def test_an_environment_has_what_its_steps_import(script, environment):
    imported = set()
    for path in code_digest.import_closure(ROOT / "scripts" / f"{script}.py"):
        for node in ast.walk(code_digest.parsed(path)):
            if isinstance(node, ast.Import):
                imported |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                imported.add(node.module.split(".")[0])
    ours = {path.stem for path in (ROOT / "scripts").iterdir()}
    third_party = imported - set(sys.stdlib_module_names) - ours
    available = {MODULE_OF.get(name, name) for name in dependencies(environment)}
    assert third_party <= available


def test_every_rule_names_the_environment_of_its_digest():
    for path in (ROOT / "workflow" / "rules").glob("*.smk"):
        for rule in re.split(r"^rule ", path.read_text(encoding="utf-8"), flags=re.M)[1:]:
            conda = re.search(r'"\.\./\.\./envs/\{?(\w+)\}?\.yaml"', rule)
            digest = re.search(r'digest\(\s*f?"[^"]+", (?:w\.)?"?(\w+)"?', rule)
            assert conda and digest and conda[1] == digest[1], rule.split(":")[0]


@pytest.mark.parametrize("script", sorted(path.name for path in (ROOT / "scripts").glob("*.py")))
def test_large_modules_are_imported_without_garbage_collection(script):
    """The pause comes before the first of them, or the import pays for what it saves."""
    imported = [
        (node.lineno, (getattr(node, "module", None) or node.names[0].name).split(".")[0])
        for node in ast.walk(code_digest.parsed(ROOT / "scripts" / script))
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    names = [name for _, name in sorted(imported)]
    large = [name for name in names if name in ("pandas", "matplotlib", "scipy")]
    if large and script != "figure_style.py":  # which the scripts of figures import
        assert names.index("no_garbage_collection") < names.index(large[0])


PINNED = sorted(path.name.split(".")[0] for path in (ROOT / "envs").glob("*.linux-64.pin.txt"))


@pytest.mark.parametrize("environment", PINNED)
def test_a_pin_file_agrees_with_its_yaml(environment):
    pins = explicit.read(ROOT / "envs" / f"{environment}.linux-64.pin.txt")
    versions = {package.name: package.version for package in pins}
    assert len(versions) == len(pins)
    assert versions.items() >= dependencies(environment).items()
    assert (3, 11) <= tuple(map(int, versions["python"].split(".")))[:2] < (3, 14)
    for package in pins:
        address = f"{situation.ALIAS}/conda-forge/{package.subdir}/{package.file_name}"
        assert package.url == address and package.subdir in ("linux-64", "noarch")


def test_pinned_environments_share_their_packages():
    builds = {}
    for environment in PINNED:
        for package in explicit.read(ROOT / "envs" / f"{environment}.linux-64.pin.txt"):
            builds.setdefault(package.name, set()).add(package)
    assert all(len(found) == 1 for found in builds.values())


def test_the_driver_and_the_wheels_agree():
    """All are installed in one .venv for the tests."""
    locks = []
    for name in ("requirements", "wheels", "requirements-dev", "slurm"):
        text = (ROOT / "envs" / f"{name}.txt").read_text(encoding="utf-8")
        locks.append(set(re.findall(r"^([\w.-]+)==(\S+)", text, re.M)))
    names = [{name for name, _ in lock} for lock in locks]
    for (one, names_of_one), (other, names_of_other) in combinations(
        zip(locks, names, strict=True), 2
    ):
        shared = names_of_one & names_of_other
        assert {pin for pin in one if pin[0] in shared} == {p for p in other if p[0] in shared}
