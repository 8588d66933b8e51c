"""From the YAML file of an environment to the packages that it asks for, by py-rattler's solver."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import rattler
import yaml
from rattler import PackageName, RepoDataRecord, Version
from rattler.package import BuildString
from rattler.platform import Subdir
from rattler.virtual_package import GenericVirtualPackage, VirtualPackage

import explicit


def specs(environment: str | Path) -> list[str]:
    """The dependencies that a YAML file asks for.

    Raises ValueError for what this frontend does not know: other channels, or pip's packages.
    """
    try:
        content = yaml.safe_load(Path(environment).read_text(encoding="utf-8"))
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        raise ValueError(f"{environment}: not YAML: {' '.join(str(error).split())}") from None
    if not isinstance(content, dict):
        raise ValueError(f"{environment}: it must have channels and dependencies")
    if content.get("channels") != ["conda-forge"]:
        raise ValueError(f"{environment}: channels: it must be conda-forge alone")
    wanted = content.get("dependencies")
    listed = isinstance(wanted, list) and len(wanted) > 0
    if not listed or not all(isinstance(spec, str) for spec in wanted):
        raise ValueError(f"{environment}: dependencies: each must be a conda package in one line")
    return wanted


def virtual_package(name: str, version: str) -> GenericVirtualPackage:
    """A property of a machine, as a solver sees it."""
    return GenericVirtualPackage(PackageName(name), Version(version), BuildString("0"))


def solve(
    wanted: Sequence[str],
    channel: str,
    subdir: str | None = None,
    machine: Sequence[GenericVirtualPackage | VirtualPackage] | None = None,
    prefer: Sequence[RepoDataRecord] = (),
) -> list[RepoDataRecord]:
    """The packages of a channel that satisfy the specs, for a platform (default: this machine's).

    Raises ValueError with the solver's reason if there are none.
    """
    try:
        return asyncio.run(
            rattler.solve(
                [rattler.Channel(channel)],
                list(wanted),
                platforms=[subdir or Subdir.current(), "noarch"],
                virtual_packages=VirtualPackage.detect() if machine is None else machine,
                locked_packages=list(prefer),
            )
        )
    except Exception as error:  # py-rattler's errors share no ancestor
        reason = " ".join(str(error).split())
        raise ValueError(f"no environment of {', '.join(wanted)} in {channel}: {reason}") from error


def package_of(record: RepoDataRecord) -> explicit.Package:
    """A record as a line of an explicit list."""
    match = explicit.LINE.fullmatch(f"{record.url}#{record.md5.hex()}")
    return explicit.Package(**match.groupdict())
