"""The benchmark's clock tells the library's work from the rest of a process."""

import os
import shutil
import subprocess
import sys

import pytest

from conftest import ROOT

CODE = """
import time
def spin(seconds):
    start = time.process_time()
    while time.process_time() - start < seconds:
        pass
"""
LIBRARY = f"""{CODE}
def function(): spin(0.05); return inner()
def inner(): spin(0.05)
def importing(): import slow; spin(0.05)
class Thing:
    def method(self): spin(0.05)
    @property
    def value(self): spin(0.05)
"""
BATCH = """
def compute_batch(manifest, folders, outputs, key_of, compute):
    for folder in folders:
        key_of(folder)
        compute(folder)
"""
STEP = f"""{CODE}
import causalrank
from causalrank import library
from cell_batch import compute_batch
def compute(folder):
    spin(0.1)
    library.function(); library.importing(); library.Thing().method(); library.Thing().value
spin(0.4)
compute_batch(None, [1, 2], [], lambda folder: spin(0.2), compute)
"""


def test_mathematics_and_work(tmp_path):
    package = tmp_path / "causalrank"
    package.mkdir()
    shutil.copy(ROOT / "tests" / "mathematics_clock.py", tmp_path)
    (package / "__init__.py").write_text("import mathematics_clock\n")
    (package / "library.py").write_text(LIBRARY)
    (tmp_path / "cell_batch.py").write_text(BATCH)
    (tmp_path / "slow.py").write_text(f"{CODE}\nimport slower\nspin(0.3)\n")
    (tmp_path / "slower.py").write_text(f"{CODE}\nspin(0.3)\n")
    (tmp_path / "step.py").write_text(STEP)
    environment = os.environ | {"CLOCK": str(tmp_path / "clock")}
    subprocess.run([sys.executable, "step.py"], cwd=tmp_path, env=environment, check=True)
    mathematics, work = map(float, (tmp_path / "clock").read_text().split())
    assert mathematics == pytest.approx(0.5, abs=0.02)
    assert work == pytest.approx(0.5 + 0.2, abs=0.02)
