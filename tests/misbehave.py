"""What a step of a test does before its own work, the first time that it runs.

A copy beside the steps notes the job, its node, its cores and the threads of each library in
FAULTS/NAME, then goes wrong.
"""

import os
import sys
import time
from pathlib import Path

NOTED = (
    *("SLURM_JOB_ID", "SLURMD_NODENAME", "SLURM_CPUS_ON_NODE"),
    *("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"),
)


def once(kind: str, name: str) -> None:
    noted = Path("faults") / name
    if noted.exists():
        return
    noted.parent.mkdir(exist_ok=True)
    part = noted.with_suffix(".part")
    part.write_text(" ".join(os.environ.get(key, "none") for key in NOTED), encoding="utf-8")
    part.rename(noted)
    if kind == "memory":
        held = bytearray(1024 * 2**20)
        held[::1024] = b"x" * 2**20  # or no page of it would be taken
        time.sleep(600)
        del held
    elif kind == "late":
        option = "--manifest" if "--manifest" in sys.argv else "--output"
        written = Path(sys.argv[sys.argv.index(option) + 1])
        while not written.exists():
            time.sleep(0.2)
        seen = f"{written} {written.stat().st_ino}"
        noted.with_suffix(".late").write_text(seen, encoding="utf-8")
    else:
        time.sleep(600)
