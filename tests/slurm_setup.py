"""Debian's Slurm for one machine that is all of its nodes: its packages and its configuration."""

import os
import shutil
import socket
import subprocess
from pathlib import Path

PACKAGES = ("slurmctld", "slurmd", "slurm-client", "munge")
PROGRAMS = ("slurmctld", "slurmd", "sbatch", "munged")
CONFIGURATION = Path("/etc/slurm/slurm.conf")
MADE_BY = "# for tests/slurm_cluster.py, process "
NAME = f"tests{os.getpid()}"
NODES = 4
NODE_MB = 2000
NODE_LOST = 20  # seconds without an answer, which a busy machine may take
APT = 300.0  # seconds, for each of its commands


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
    patient = ("-o", "DPkg::Lock::Timeout=60", "-o", "Acquire::http::Timeout=20")
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    for words in (["update"], ["install", "-y", "--no-install-recommends", *PACKAGES]):
        command = ["timeout", str(APT), "apt-get", "-qq", *patient, *words]
        run = subprocess.run(command, capture_output=True, text=True, env=environment)
        if run.returncode:
            last = run.stderr.strip().splitlines()[-1:] or [f"exit status {run.returncode}"]
            raise NoSlurm(f"Slurm could not be installed: {last[0]}")


def configuration(folder: Path, ports: list[int]) -> str:
    """Memory and time enforced, decisions within a second; a core a node, which one job loses."""
    host = socket.gethostname().split(".")[0]
    names = f"node[1-{NODES}]"
    return f"""{MADE_BY}{os.getpid()}
ClusterName={NAME}
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
MessageTimeout=60
TCPTimeout=20
BatchStartTimeout=120
MinJobAge=7200
SlurmdTimeout={NODE_LOST}
ReturnToService=2
NodeName={names} NodeHostname={host} NodeAddr=127.0.0.1 Port=[{ports[1]}-{ports[-1]}] \
CPUs=1 RealMemory={NODE_MB} State=UNKNOWN
PartitionName=main Nodes={names} Default=YES MaxTime=1-0 State=UP
"""


def abandoned(configuration: str) -> bool:
    """Whether a configuration is of a process of ours that was killed."""
    first = configuration.partition("\n")[0]
    maker = first.removeprefix(MADE_BY)
    return maker != first and not Path("/proc", maker).exists()
