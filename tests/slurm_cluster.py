"""A real Slurm on this machine: several nodes, no systemd, nothing left behind.

    python tests/slurm_cluster.py COMMAND...

installs Debian's packages if they are not there, starts the cluster, runs the command, and stops
it. It takes root. The configuration must be at its default place, since a job's step knows no
other, so a machine that has one already is left alone.
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
from collections.abc import Iterator
from pathlib import Path

PACKAGES = ("slurmctld", "slurmd", "slurm-client", "munge")
PROGRAMS = ("slurmctld", "slurmd", "sbatch", "munged")
CONFIGURATION = Path("/etc/slurm/slurm.conf")
MADE_BY = "# for tests/slurm_cluster.py, process "
NODES = 4
NODE_MB = 2000
PATIENCE = 30.0  # seconds, for a daemon to answer
NODE_LOST = 10  # seconds without an answer


class NoSlurm(Exception):
    """Why there can be no cluster here."""


def install() -> None:
    """Install what is missing, by apt.

    Raises NoSlurm when that cannot be.
    """
    if all(map(shutil.which, PROGRAMS)):
        return
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise NoSlurm(f"Slurm is not installed; as root: apt-get install {' '.join(PACKAGES)}")
    for words in (["update"], ["install", "-y", "--no-install-recommends", *PACKAGES]):
        environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
        run = subprocess.run(
            ["apt-get", "-qq", *words], capture_output=True, text=True, env=environment
        )
        if run.returncode:
            last = run.stderr.strip().splitlines()[-1:] or ["no reason given"]
            raise NoSlurm(f"Slurm could not be installed: {last[0]}")


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def _configuration(folder: Path, ports: list[int]) -> str:
    """Nodes as large as asked for, memory and time enforced, decisions within a second."""
    host = socket.gethostname().split(".")[0]
    names = f"node[1-{NODES}]"
    return f"""{MADE_BY}{os.getpid()}
ClusterName=tests
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/%n.log
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SlurmdParameters=config_overrides
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1
JobAcctGatherParams=OverMemoryKill
SchedulerParameters=sched_interval=1,sched_min_interval=100000,bf_interval=1
KillWait=2
SlurmdTimeout={NODE_LOST}
ReturnToService=2
NodeName={names} NodeHostname={host} NodeAddr=127.0.0.1 Port=[{ports[1]}-{ports[-1]}] \
CPUs=2 RealMemory={NODE_MB} State=UNKNOWN
PartitionName=main Nodes={names} Default=YES MaxTime=1-0 State=UP
"""


def _writing_below(folder: Path) -> list[int]:
    """The processes that hold a file of a folder open: of a job step, its node's log."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            files = [str(file.readlink()) for file in (process / "fd").iterdir()]
            if any(file.startswith(f"{folder}/") for file in files):
                found.append(int(process.name))
    return found


def _descendants(pid: int) -> list[int]:
    found = []
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in map(int, (task / "children").read_text().split()):
                found += [child, *_descendants(child)]
    return found


class Cluster:
    """A running one; `folder` has the daemons' logs."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.daemons: dict[str, subprocess.Popen] = {}

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
        self._until("munged", (munge / "socket").exists)
        first = _free_port()
        ports = [_free_port(), *range(first, first + NODES)]
        CONFIGURATION.parent.mkdir(exist_ok=True)
        CONFIGURATION.write_text(_configuration(self.folder, ports), encoding="utf-8")
        self._run("slurmctld", "-D", "-c")
        for n in range(NODES):
            self._run("slurmd", "-D", "-N", f"node{n + 1}", name=f"node{n + 1}")
        self._until("slurmctld", lambda: self.ask("sinfo", "-h", "-t", "idle", "-o", "%D") == "4")

    def stop(self) -> None:
        """End every job, every daemon and the configuration; of a lost node, what its jobs left."""
        self.ask("scancel", "--partition=main")
        for daemon in self.daemons.values():
            if daemon.poll() is None:
                daemon.terminate()
        for daemon in self.daemons.values():
            try:
                daemon.wait(10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        for step in _writing_below(self.folder):
            for pid in [step, *_descendants(step)]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        CONFIGURATION.unlink(missing_ok=True)

    def lose(self, node: str) -> None:
        """Stop a node's daemon; the processes of its jobs go on, as behind a broken switch."""
        self.daemons[node].kill()
        self.daemons[node].wait()

    def ask(self, *command: str) -> str:
        run = subprocess.run(command, capture_output=True, text=True)
        return run.stdout.strip()

    def _run(self, *command: str, name: str = "") -> None:
        log = (self.folder / f"{name or command[0]}.out").open("w")
        self.daemons[name or command[0]] = subprocess.Popen(
            ("setpriv", "--pdeathsig", "TERM", *command),
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def _until(self, name: str, there) -> None:
        deadline = time.monotonic() + PATIENCE
        while not there():
            if self.daemons[name].poll() is not None or time.monotonic() > deadline:
                said = (self.folder / f"{name}.out").read_text(encoding="utf-8", errors="replace")
                raise NoSlurm(f"{name} does not start: {said.strip()[-500:]}")
            time.sleep(0.05)


def _abandoned(configuration: str) -> bool:
    """Whether a configuration is of a process of ours that was killed."""
    first = configuration.partition("\n")[0]
    maker = first.removeprefix(MADE_BY)
    return maker != first and not Path("/proc", maker).exists()


@contextlib.contextmanager
def cluster() -> Iterator[Cluster]:
    """One that is stopped afterwards. Raises NoSlurm when there can be none."""
    if os.geteuid() != 0:
        raise NoSlurm("only root can run one Slurm with several nodes on one machine")
    if not all(map(shutil.which, PROGRAMS)):
        raise NoSlurm(f"not all of {', '.join(PROGRAMS)} are installed; make test-slurm does it")
    if CONFIGURATION.exists() and not _abandoned(CONFIGURATION.read_text(encoding="utf-8")):
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
        sys.exit(f"no Slurm here: {reason}")
