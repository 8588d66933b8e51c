"""What a run began with, kept for its jobs: an edit meanwhile waits for the next run.

Steps run from a copy of the code, written of what the digests were made of. Each job on a cluster
is a Snakemake of its own; it is given the study as the run has read it. Workflow and environments
it has to find as they were.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(".snakemake", "causalrank")
RUN = FOLDER / "run.json"
CLAIMS = FOLDER / "claims.yaml"
SCRIPTS = FOLDER / "scripts"
ID = FOLDER / "id"
"""Of the run that is at work: a step of another one, which was killed, writes nothing any more."""
READ_BY_ALL = (
    *("workflow/Snakefile", "workflow/*.py", "workflow/rules/*.smk", "workflow/schemas/*.yaml"),
    *("envs/*.yaml", "envs/*.linux-64.pin.txt", "envs/wheels.txt"),
    *("envs/deployment/*.py", "envs/frontend/bin/*"),
)
"""What every Snakemake of a run reads for itself."""


class Changed(Exception):
    """The workflow is not the one that the run began with."""


def workflow_digest(root: Path) -> str:
    """SHA-256 over the files of READ_BY_ALL below `root`."""
    digest = hashlib.sha256()
    for path in sorted(path for pattern in READ_BY_ALL for path in root.glob(pattern)):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(root).as_posix()} {len(content)}\n".encode() + content)
    return digest.hexdigest()


def keep(sources: Mapping[str, bytes], claims: list, run: Mapping[str, Any]) -> None:
    """Write the code, files by their path below scripts/, the claims, and what else jobs are told.

    Files that are as they should be stay, and with them what Python has compiled.
    """
    for path in list(SCRIPTS.rglob("*.py")):
        if path.relative_to(SCRIPTS).as_posix() not in sources:
            path.unlink()
    for name, content in sources.items():
        path = SCRIPTS / name
        if _write(path, content):
            # Python knows what it has compiled by size and second alone.
            for compiled in path.parent.glob(f"__pycache__/{path.stem}.*"):
                compiled.unlink()
    text = yaml.dump(claims, Dumper=yaml.CSafeDumper, allow_unicode=True, sort_keys=False)
    _write(CLAIMS, text.encode())
    _write(RUN, json.dumps(run).encode())
    _write(ID, run["id"].encode())


def _write(path: Path, content: bytes) -> bool:
    """Whether the file had to be written: a disk that is full may have it already."""
    if path.is_file() and path.read_bytes() == content:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".part.{path.name}")
    part.write_bytes(content)
    part.replace(path)
    return True


def kept(path: Path, workflow: str) -> dict[str, Any]:
    """What jobs are told, by the file at `path`.

    Raises Changed unless the workflow's digest is the one that the run began with.
    """
    run = json.loads(path.read_bytes())
    if run["workflow"] != workflow:
        raise Changed(
            "workflow/ or envs/ has changed since this run began: run the same command again"
        )
    return run
