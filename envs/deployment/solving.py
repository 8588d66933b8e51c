"""From the YAML file of an environment to the packages that it asks for, by py-rattler's solver."""

import asyncio
from collections.abc import Sequence

import rattler
from rattler import PackageName, RepoDataRecord, Version
from rattler.package import BuildString
from rattler.platform import Subdir
from rattler.virtual_package import GenericVirtualPackage, VirtualPackage

import explicit


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
