"""Explicit lists of packages, as `conda list --explicit --md5` writes them, and what is installed.

A line is the address of a package and, after #, the md5 of its archive. The name of an archive is
NAME-VERSION-BUILD.conda or .tar.bz2, in a folder named after its platform.
"""

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

LINE = re.compile(
    r"(?P<url>\S+/(?P<subdir>[\w-]+)/"
    r"(?P<name>[^/\s]+)-(?P<version>[^-/\s]+)-(?P<build>[^-/\s]+)(?P<suffix>\.conda|\.tar\.bz2))"
    r"#(?P<md5>[0-9a-f]{32})"
)


class Package(NamedTuple):
    """One package of an explicit list; `md5` in hexadecimal."""

    url: str
    subdir: str
    name: str
    version: str
    build: str
    suffix: str
    md5: str

    @property
    def file_name(self) -> str:
        return f"{self.name}-{self.version}-{self.build}{self.suffix}"

    def __str__(self) -> str:
        return f"{self.name} {self.version} {self.build}"


def read(path: str | Path) -> list[Package]:
    """The packages of an explicit list.

    Raises ValueError, in one line that names the file, for anything else.
    """
    packages = []
    explicit = False
    try:
        text = Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ValueError(f"{path}: not an explicit list: it is no text") from None
    for number, line in enumerate(map(str.strip, text.splitlines()), start=1):
        if line == "@EXPLICIT":
            explicit = True
        elif line and not line.startswith("#"):
            match = LINE.fullmatch(line)
            if not match:
                raise ValueError(
                    f"{path}, line {number}: not the address of a package with #md5: {line}"
                )
            packages.append(Package(**match.groupdict()))
    if not explicit or not packages:
        raise ValueError(f"{path}: not an explicit list; one has @EXPLICIT and a line per package")
    return packages


def write(packages: Iterable[Package], comments: Iterable[str] = ()) -> str:
    """The text of an explicit list, in the order of the names."""
    lines = [f"# {comment}" for comment in comments]
    lines.append("@EXPLICIT")
    lines += [f"{p.url}#{p.md5}" for p in sorted(packages, key=lambda p: p.name)]
    return "\n".join(lines) + "\n"


def installed(prefix: str | Path) -> list[Package]:
    """The packages of an environment, from its records in conda-meta, in the order of the names."""
    packages = []
    for path in Path(prefix, "conda-meta").glob("*.json"):
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
            match = LINE.fullmatch(f"{record['url']}#{record.get('md5') or 32 * '0'}")
        except (ValueError, KeyError, TypeError):
            match = None
        if not match:
            raise ValueError(f"{path}: not the record of a package")
        packages.append(Package(**match.groupdict()))
    return sorted(packages, key=lambda p: p.name)


def differences(pinned: Iterable[Package], present: Iterable[Package]) -> list[str]:
    """What is installed otherwise than pinned, a line each; from which server does not matter."""
    wanted = {p.name: p for p in pinned}
    found = {p.name: p for p in present}
    lines = []
    for name in sorted(wanted.keys() | found.keys()):
        if name not in found:
            lines.append(f"{wanted[name]} is missing")
        elif name not in wanted:
            lines.append(f"{found[name]} is not pinned")
        elif wanted[name][1:] != found[name][1:]:
            of_other_bytes = str(wanted[name]) == str(found[name])
            lines.append(
                f"{found[name]} is there with md5 {found[name].md5}, pinned is {wanted[name].md5}"
                if of_other_bytes
                else f"{found[name]} is there, pinned is {wanted[name]}"
            )
    return lines
