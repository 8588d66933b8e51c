"""The environments of the rules: the pins of the driver, and all that a step imports."""

import ast
import re
import sys

import pytest
import yaml

import code_digest
from conftest import ROOT

ENVIRONMENTS = sorted(path.stem for path in (ROOT / "envs").glob("*.yaml"))
MODULE_OF = {
    "python-flint": "flint",
    "matplotlib-base": "matplotlib",
    "pyyaml": "yaml",
    "pillow": "PIL",
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
    return sorted(pairs)


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_pins_are_those_of_the_requirements(environment):
    text = (ROOT / "envs" / "requirements.txt").read_text(encoding="utf-8")
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
            conda = re.search(r'"\.\./\.\./envs/(\w+)\.yaml"', rule)
            digest = re.search(r'digest\(\s*f?"[^"]+", "(\w+)"', rule)
            assert conda and digest and conda[1] == digest[1], rule.split(":")[0]
