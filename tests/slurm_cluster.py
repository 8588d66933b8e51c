"""A real Slurm on this machine: several nodes, no systemd, nothing left behind.

    python tests/slurm_cluster.py COMMAND...

installs Debian's packages if they are not there, starts the cluster, runs the command, and stops
it. It takes root. The configuration must be at its default place, since a job's step knows no
other, so a machine that has one already is left alone. Where there can be no Slurm it says why, and
exits with 77; where one is installed and does not start, with the last that its daemons said.
"""

import contextlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from slurm_setup import (
    CONFIGURATION,
    NAME,
    NODES,
    PROGRAMS,
    NoSlurm,
    abandoned,
    configuration,
    install,
)

PATIENCE = 120.0  # seconds, for a daemon to answer on a busy machine
SKIPPED = 77  # as Automake's tests say it
LAST_LINES = 10


class DoesNotStart(Exception):
    """What the daemons of a Slurm that is installed said last."""


def _free_ports(number: int) -> list[int]:
    """Consecutive ones, which nothing listens at."""
    while True:
        with contextlib.ExitStack() as opened, contextlib.suppress(OSError, OverflowError):
            first = opened.enter_context(socket.socket())
            first.bind(("127.0.0.1", 0))
            ports = [first.getsockname()[1] + n for n in range(number)]
            for port in ports[1:]:
                opened.enter_context(socket.socket()).bind(("127.0.0.1", port))
            return ports


def _left_behind(folder: Path) -> list[int]:
    """The processes of jobs, by their environment, and of their steps, by a log of their node.

    linuxproc loses what its parent has left.
    """
    mark, found = f"SLURM_CLUSTER_NAME={NAME}".encode(), []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            files = [str(file.readlink()) for file in (process / "fd").iterdir()]
            of_step = any(file.startswith(f"{folder}/") for file in files)
            if of_step or mark in (process / "environ").read_bytes().split(b"\0"):
                found.append(int(process.name))
    return found


class Cluster:
    """A running one; `folder` has the daemons' logs."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.daemons: dict[str, subprocess.Popen] = {}
        self.configuration = ""

    def start(self) -> None:
        munge = self.folder / "munge"
        for name in ("munge", "state", *(f"node{n + 1}" for n in range(NODES))):
            (self.folder / name).mkdir(mode=0o755)
        key = munge / "key"
        key.touch(mode=0o600)
        key.write_bytes(secrets.token_bytes(128))
        files = {"key-file": key, "socket": munge / "socket", "pid-file": munge / "pid"}
        files |= {"log-file": munge / "log", "seed-file": munge / "seed"}
        options = [f"--{name}={path}" for name, path in files.items()]
        self._run("munged", "--foreground", "--force", *options)
        self._until((munge / "socket").exists)
        CONFIGURATION.parent.mkdir(exist_ok=True)
        self.configuration = configuration(self.folder, _free_ports(1 + NODES))
        CONFIGURATION.write_text(self.configuration, encoding="utf-8")
        self._run("slurmctld", "-D", "-c")
        for n in range(NODES):
            self._run("slurmd", "-D", "-N", f"node{n + 1}", name=f"node{n + 1}")
        idle = ("sinfo", "--noheader", "--states=idle", "--format=%D")
        self._until(lambda: self.ask(*idle) == str(NODES))

    def stop(self) -> None:
        """End every job, every daemon and the configuration, and what is left of jobs.

        Where the configuration is not the one that this cluster wrote, the jobs are another's too.
        """
        if self._configured():
            self.ask("scancel", "--partition=main")
        for daemon in reversed(self.daemons.values()):  # munged last: the others need it to end
            daemon.terminate()
            try:
                daemon.wait(10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        for process in _left_behind(self.folder):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        if self._configured():
            CONFIGURATION.unlink()

    def _configured(self) -> bool:
        with contextlib.suppress(FileNotFoundError):
            return CONFIGURATION.read_text(encoding="utf-8") == self.configuration != ""
        return False

    def lose(self, node: str) -> None:
        """Stop a node's daemon; the processes of its jobs go on, as behind a broken switch."""
        self.daemons[node].kill()
        self.daemons[node].wait()

    def ask(self, *command: str) -> str:
        try:
            run = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            return ""
        return run.stdout.strip()

    def _run(self, *command: str, name: str = "") -> None:
        log = (self.folder / f"{name or command[0]}.out").open("w")
        self.daemons[name or command[0]] = subprocess.Popen(
            ("setpriv", "--pdeathsig", "TERM", *command),
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def _until(self, there: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not there():
            ended = [name for name, daemon in self.daemons.items() if daemon.poll() is not None]
            if ended or time.monotonic() > deadline:
                raise DoesNotStart("\n".join(map(self._last_said, ended or self.daemons)))
            time.sleep(0.05)

    def _last_said(self, name: str) -> str:
        files = [self.folder / f"{name}.out", self.folder / f"{name}.log"]
        files += [self.folder / "munge" / "log"] if name == "munged" else []
        there = [
            path.read_text(encoding="utf-8", errors="replace") for path in files if path.exists()
        ]
        lines = [line for text in there for line in text.splitlines()[-LAST_LINES:]]
        state = self.daemons[name].poll()
        how = "does not answer" if state is None else f"ended with {state}"
        return "\n  ".join([f"{name} {how}:", *lines])


@contextlib.contextmanager
def cluster() -> Iterator[Cluster]:
    """One that is stopped afterwards.

    Raises NoSlurm when there can be none, DoesNotStart when one that is installed does not.
    """
    if os.geteuid() != 0:
        raise NoSlurm("only root can run one Slurm with several nodes on one machine")
    if not all(map(shutil.which, PROGRAMS)):
        raise NoSlurm(f"not all of {', '.join(PROGRAMS)} are installed; make test-slurm does it")
    if CONFIGURATION.exists() and not abandoned(CONFIGURATION.read_text(encoding="utf-8")):
        raise NoSlurm(f"{CONFIGURATION} is there: this machine has a Slurm, which is left alone")
    with tempfile.TemporaryDirectory(prefix="slurm.") as folder:
        Path(folder).chmod(0o755)
        started = Cluster(Path(folder))
        try:
            started.start()
            yield started
        finally:
            started.stop()


if __name__ == "__main__":
    try:
        install()
        with cluster():
            sys.exit(subprocess.run(sys.argv[1:]).returncode)
    except NoSlurm as reason:
        print(f"no Slurm here: {reason}", file=sys.stderr)
        sys.exit(SKIPPED)
    except DoesNotStart as reason:
        sys.exit(f"error: Slurm is installed and does not start:\n{reason}")
