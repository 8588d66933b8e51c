"""What a step of a test does before its own work, the first time that it runs.

A copy beside the steps notes the job, its node and its threads in FAULTS/NAME, then goes wrong.
"""

import os
import sys
import time
from pathlib import Path


def once(kind: str, name: str) -> None:
    noted = Path("faults") / name
    if noted.exists():
        return
    noted.parent.mkdir(exist_ok=True)
    part = noted.with_suffix(".part")
    words = (os.environ.get(key, "") for key in ("SLURM_JOB_ID", "SLURMD_NODENAME"))
    part.write_text(" ".join([*words, os.environ["OMP_NUM_THREADS"]]), encoding="utf-8")
    part.rename(noted)
    if kind == "memory":
        held = bytearray(b"x" * 1024 * 2**20)
        time.sleep(600)
        del held
    elif kind == "late":
        while not Path(sys.argv[sys.argv.index("--output") + 1]).exists():
            time.sleep(0.2)
    else:
        time.sleep(600)
