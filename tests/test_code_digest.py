"""The code digest: comments and formatting change nothing, every imported function does."""

import ast
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import code_digest
from conftest import ROOT

STEPS = sorted(
    path.name
    for path in (ROOT / "scripts").glob("*.py")
    if "def main()" in path.read_text(encoding="utf-8") and path.name != "hook_transformers.py"
)
MODULES = sorted(
    path.relative_to(ROOT / "scripts").as_posix()
    for path in [*(ROOT / "scripts").glob("*.py"), *(ROOT / "scripts" / "causalrank").glob("*.py")]
)
INSIDE_FUNCTIONS = {"read_user_file.py": {"whole_files.py"}}
LOADED = """
import importlib, json, sys
sys.path.insert(0, sys.argv[1])
importlib.import_module(sys.argv[2])
files = [getattr(m, "__file__", None) for m in list(sys.modules.values())]
print(json.dumps([f for f in files if f and f.startswith(sys.argv[1])]))
"""


def closure(script: str) -> set[str]:
    """The closure as the digest sees it, relative to scripts/."""
    paths = code_digest.import_closure(ROOT / "scripts" / script)
    return {path.relative_to(ROOT / "scripts").as_posix() for path in paths}


def loaded(script: str) -> set[str]:
    """What Python really loads from scripts/ when the step is imported."""
    root = str(ROOT / "scripts")
    command = [sys.executable, "-c", LOADED, root, Path(script).stem]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    return {Path(name).relative_to(root).as_posix() for name in json.loads(run.stdout)}


@pytest.mark.parametrize("script", STEPS)
def test_closure_is_what_python_loads(script):
    """Imports inside functions are in the closure though a mere import does not run them."""
    assert loaded(script) <= closure(script)
    assert closure(script) - loaded(script) == INSIDE_FUNCTIONS.get(script, set())


@pytest.fixture
def copy(tmp_path):
    """A copy of scripts/ in which files may be edited, with a fresh cache."""
    shutil.copytree(ROOT / "scripts", tmp_path / "scripts")
    for function in (code_digest.parsed, code_digest.imports, code_digest.fingerprint):
        function.cache_clear()
    yield tmp_path / "scripts"
    for function in (code_digest.parsed, code_digest.imports, code_digest.fingerprint):
        function.cache_clear()


def digests(scripts: Path) -> dict[str, str]:
    for function in (code_digest.parsed, code_digest.imports, code_digest.fingerprint):
        function.cache_clear()
    environment = ROOT / "envs" / "linalg.yaml"
    return {name: code_digest.code_digest(scripts / name, environment) for name in STEPS}


@pytest.fixture(scope="module")
def before() -> dict[str, str]:
    return digests(ROOT / "scripts")


@pytest.mark.parametrize("module", MODULES)
def test_a_changed_function_changes_its_import_closure_and_nothing_else(copy, before, module):
    path = copy / module
    path.write_text(path.read_text(encoding="utf-8") + "\n\ndef added():\n    return 1\n")
    changed = {name for name, digest in digests(copy).items() if digest != before[name]}
    assert changed == {name for name in STEPS if module in closure(name)}


def test_comments_docstrings_and_formatting_change_nothing(copy, before):
    for path in copy.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        body = text.splitlines(keepends=True)[ast.parse(text).body[0].end_lineno :]
        path.write_text('"""Other words."""\n# a comment\n\n' + "".join(body) + "\n# the end\n")
    assert digests(copy) == before


def test_the_environment_counts(copy):
    scripts = {name: (ROOT / "envs" / f"{name}.yaml") for name in ("linalg", "exact")}
    one, other = (code_digest.code_digest(copy / "build_cell.py", env) for env in scripts.values())
    assert one != other


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("wheels.txt", True),
        ("linalg.linux-64.pin.txt", True),
        ("linalg.osx-arm64.pin.txt", True),
        ("tables.linux-64.pin.txt", False),
        ("linalg.wheels.pin.txt", False),
        ("requirements-dev.txt", False),
    ],
)
def test_what_an_environment_is_made_with_counts(tmp_path, name, counts):
    """But not what its deployment writes, which would rerun everything once it was there."""
    shutil.copytree(ROOT / "envs", tmp_path / "envs", ignore=shutil.ignore_patterns("*.wheels.*"))
    environment = tmp_path / "envs" / "linalg.yaml"
    before = code_digest.code_digest(ROOT / "scripts" / "build_cell.py", environment)
    with (tmp_path / "envs" / name).open("a", encoding="utf-8") as file:
        file.write("another==1\n")
    code_digest.pins.cache_clear()
    after = code_digest.code_digest(ROOT / "scripts" / "build_cell.py", environment)
    assert (after != before) is counts


def test_what_a_digest_was_made_of_is_kept_to_the_byte(copy):
    path = copy / "causalrank" / "bound.py"
    before = path.read_bytes() + b"# a remark\r\n"
    path.write_bytes(before)
    digests(copy)
    path.write_text("edited = True\n")
    assert code_digest.sources[path] == before
    kept = {path for path in code_digest.sources if copy in path.parents}
    assert kept == {copy / name for step in STEPS for name in closure(step)}
