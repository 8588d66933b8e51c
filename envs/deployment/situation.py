"""Where the packages of the steps' environments come from: one of three situations.

- conda: a conda is on PATH and conda-forge can be reached; that conda is used, untouched.
- conda-forge: there is no conda; the frontend beside this folder stands in, on py-rattler.
- wheels: conda-forge cannot be reached; the frontend takes packages that it makes from wheels.

CAUSALRANK_PACKAGES forces one of them, for that run. Otherwise what the first run chose is kept as
long as the same conda, or none, is on PATH, so that a network that comes and goes changes no
environment; removing .snakemake/packages.json has it chosen anew.

Conda's own variable CONDA_CHANNEL_ALIAS names another server of conda-forge. Explicit lists name
the usual one, and a conda takes them at their word, so behind such a mirror the frontend is used.
"""

import json
import os
import shutil
import sys
import threading
from collections.abc import MutableMapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FRONTEND = ROOT / "envs" / "frontend" / "bin"
RECORD = ROOT / ".snakemake" / "packages.json"
VARIABLE = "CAUSALRANK_PACKAGES"
SITUATIONS = ("conda", "conda-forge", "wheels")
ALIAS = "https://conda.anaconda.org"
PATIENCE = 5.0  # seconds


def channel_url() -> str:
    """The address of conda-forge."""
    return (os.environ.get("CONDA_CHANNEL_ALIAS") or ALIAS).rstrip("/") + "/conda-forge"


def reachable(url: str) -> bool:
    """Whether a channel answers within PATIENCE: its name servers may keep silent for longer."""
    import http.client
    import urllib.request

    answers = []

    def ask() -> None:
        try:
            request = urllib.request.Request(f"{url}/noarch/repodata.json", method="HEAD")
            with urllib.request.urlopen(request, timeout=PATIENCE):
                answers.append(True)
        except (OSError, ValueError, http.client.HTTPException):
            pass

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    return bool(answers)


def conda_on_path(path: str) -> str | None:
    """The first conda on PATH that is not a frontend of ours."""
    name = FRONTEND.parts[-3:]
    folders = [f for f in path.split(os.pathsep) if f and Path(f).resolve().parts[-3:] != name]
    return shutil.which("conda", path=os.pathsep.join(folders))


def _recorded(conda: str | None) -> str | None:
    """What an earlier run chose with the same conda, or none, on PATH."""
    try:
        record = json.loads(RECORD.read_text(encoding="utf-8"))
        usable = record["conda"] == conda and (conda or record["situation"] != "conda")
        return record["situation"] if usable else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def choose(environ: MutableMapping[str, str]) -> tuple[str, str]:
    """The situation, and the line that tells a user of it if it was not chosen before.

    Raises ValueError for a forced situation that cannot be.
    """
    conda = conda_on_path(environ.get("PATH", ""))
    forced = environ.get(VARIABLE)
    if forced:
        if forced not in SITUATIONS:
            raise ValueError(f"{VARIABLE} is {forced!r}; it can be {', '.join(SITUATIONS)}")
        if forced == "conda" and not conda:
            raise ValueError(f"{VARIABLE} is 'conda', but there is no conda on PATH")
        return forced, ""
    recorded = _recorded(conda)
    if recorded in SITUATIONS:
        return recorded, ""
    usual, mirror = f"{ALIAS}/conda-forge", channel_url()
    passed_over = ""
    if conda:
        if reachable(usual):
            return "conda", f"environments: from conda-forge, by {conda}"
        passed_over = f" ({usual} cannot be reached, so {conda} is not used)"
    if not (conda and mirror == usual) and reachable(mirror):
        return "conda-forge", f"environments: from {mirror}, by py-rattler{passed_over}"
    return "wheels", (
        f"environments: made from pip's wheels, since {mirror} cannot be reached{passed_over}"
    )


def enter(environ: MutableMapping[str, str]) -> tuple[str, str]:
    """Choose, and set the environment of this process and its children accordingly."""
    name, line = choose(environ)
    environ[VARIABLE] = name
    environ["PYTHONNOUSERSITE"] = "1"  # nor may a user's own packages hide a missing one
    if name != "conda":
        folders = environ.get("PATH", "").split(os.pathsep)
        kept = [folder for folder in folders if folder and Path(folder).resolve() != FRONTEND]
        environ["PATH"] = os.pathsep.join([str(FRONTEND), str(Path(sys.executable).parent), *kept])
    return name, line


def remember(name: str, path: str) -> None:
    """Record the situation that was chosen, and the conda on that PATH.

    `path` is the user's, from before `enter`, which puts the driver's own folder on it.
    """
    record = json.dumps({"situation": name, "conda": conda_on_path(path)})
    RECORD.parent.mkdir(exist_ok=True)
    part = RECORD.with_suffix(f".{os.getpid()}")
    part.write_text(record, encoding="utf-8")
    part.replace(RECORD)
