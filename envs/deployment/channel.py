"""A local conda channel of packages made from wheels, for where only pip's index can be reached.

Every wheel of envs/wheels.txt, checked by pip against its hash there, becomes a conda package of
the same version, and the Python that runs this becomes the package `python`: links to it, and the
pyvenv.cfg that makes it look for its packages beside them (PEP 405). Then each envs/NAME.yaml is
solved against the channel, and envs/NAME.wheels.pin.txt lists the outcome, with hashes.

A package's build string comes from all that its archive is made of, so a changed wheel, or another
Python, makes a new package, and the others stay as they are. Console scripts of wheels are left
out.

Every run asks whether the channel is current, so what only making it needs is imported there.
"""

import email
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import dependencies
import explicit
from locking import locked
from situation import ROOT

ENVIRONMENTS = ROOT / "envs"
LOCK = ENVIRONMENTS / "wheels.txt"
FOLDER = ROOT / ".snakemake" / "wheels"
CHANNEL = FOLDER / "channel"
STAMP = FOLDER / "stamp"  # of the packages
PINS_STAMP = ROOT / ".snakemake" / "pins.stamp"
PLATFORM = "wheels"  # as the frontend says, and so part of the names of the pin files
LAYOUT = 1  # of the archives: to be raised when what is made from the same wheel changes
CONDA_NAME = {"matplotlib": "matplotlib-base"}  # where conda-forge's name is another
VERSION = f"{sys.version_info.major}.{sys.version_info.minor}.{sys.version_info.micro}"
SITE = f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"


class Wheel(NamedTuple):
    """A wheel and what its package will be."""

    path: Path
    name: str
    version: str
    depends: tuple[str, ...]
    build: str

    @property
    def archive(self) -> Path:
        return CHANNEL / "noarch" / f"{self.name}-{self.version}-{self.build}.conda"


def interpreter() -> str:
    """What tells this Python from another: where it is, what it is, and how it was built."""
    executable = os.path.realpath(sys._base_executable)
    return f"{executable}\n{sys.version}\n{sys.implementation.cache_tag}"


def short_digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(map(str, (LAYOUT, *parts))).encode()).hexdigest()[:10]


def pin_file(environment: Path) -> Path:
    """The list of an environment's packages in this channel: it lies where Snakemake looks."""
    return environment.with_suffix(f".{PLATFORM}.pin.txt")


def made_from() -> str:
    """A digest of all that the packages are made from."""
    return short_digest(interpreter(), str(CHANNEL.resolve()), LOCK.read_text(encoding="utf-8"))


def solved() -> str:
    """A digest of the pin files, as far as they are there, and of all that they are made from."""
    environments = sorted(ENVIRONMENTS.glob("*.yaml"))
    pins = [pin_file(path) for path in environments if pin_file(path).exists()]
    content = [hashlib.sha256(path.read_bytes()).hexdigest() for path in (*environments, *pins)]
    return short_digest(made_from(), *content)


def note_of(archive: Path) -> Path:
    """Where the md5 of an archive is kept, which tells a whole one from a damaged."""
    return FOLDER / "md5" / archive.name


def md5(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "md5").hexdigest()


def says(stamp: Path, digest: str) -> bool:
    return stamp.exists() and stamp.read_text(encoding="utf-8") == digest


def current() -> bool:
    """Whether nothing is to be made."""
    return says(STAMP, made_from()) and says(PINS_STAMP, solved())


def say(line: str) -> None:
    print(f"packages from wheels: {line}", file=sys.stderr, flush=True)


def download(folder: Path) -> list[Path]:
    """The wheels of the lock, as pip gets and checks them.

    Raises ValueError with what pip says went wrong.
    """
    say(f"downloading those of {LOCK.relative_to(ROOT)}")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    command += ["--require-hashes", "--no-deps", "--only-binary", ":all:"]
    command += ["--dest", str(folder), "--requirement", str(LOCK)]
    pip = subprocess.run(command, capture_output=True, text=True, errors="replace")
    if pip.returncode:
        broken = re.search(r"connection broken by '(?:.*>: )?(.*)': ", pip.stderr)
        said = broken[1] if broken else pip.stderr.rpartition("ERROR: ")[2]
        if "Traceback" in said:
            said = said.strip().splitlines()[-1]
        reason = " ".join(said.split())[:400]
        raise ValueError(f"pip could not download the wheels of {LOCK.relative_to(ROOT)}: {reason}")
    return sorted(folder.glob("*.whl"), key=lambda path: -path.stat().st_size)


def describe(path: Path, versions: dict[str, str]) -> Wheel:
    """Read a wheel's name, version and requirements; of those, the locked ones that apply here."""
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    with zipfile.ZipFile(path) as archive:
        name = next(n for n in archive.namelist() if re.fullmatch(r"[^/]+\.dist-info/METADATA", n))
        metadata = email.message_from_bytes(archive.read(name))
    depends = [f"python {sys.version_info.major}.{sys.version_info.minor}.*"]
    for line in metadata.get_all("Requires-Dist", []):
        requirement = Requirement(line)
        required = canonicalize_name(requirement.name)
        if not requirement.marker or requirement.marker.evaluate({"extra": ""}):
            if required not in versions:
                raise ValueError(f"{path.name} needs {required}, which {LOCK.name} does not have")
            depends.append(f"{CONDA_NAME.get(required, required)} =={versions[required]}")
    name = canonicalize_name(metadata["Name"])
    with path.open("rb") as file:
        content = hashlib.file_digest(file, "sha256").hexdigest()
    tag = sys.implementation.cache_tag
    build = f"{tag.replace('-', '')}_{short_digest(content, tag, *sorted(depends))}"
    depends = tuple(sorted(set(depends)))
    return Wheel(path, CONDA_NAME.get(name, name), metadata["Version"], depends, build)


def locked_versions(paths: list[Path]) -> dict[str, str]:
    """The version of each wheel, by its normalized name."""
    from packaging.utils import parse_wheel_filename

    return {
        name: str(version) for name, version, *_ in (parse_wheel_filename(p.name) for p in paths)
    }


def unpack(wheel: Path, folder: Path) -> None:
    """Put a wheel's modules into a folder, compiled so that an import need not look at their times.

    Of NAME.data, which is for schemes of installation, only what belongs among modules is taken.
    """
    with zipfile.ZipFile(wheel) as archive:
        for entry in archive.infolist():
            scheme = re.match(r"[^/]+\.data/(\w+)/", entry.filename)
            if scheme and scheme[1] not in ("purelib", "platlib"):
                continue
            if scheme:
                entry.filename = entry.filename[scheme.end() :]
            if entry.filename:
                archive.extract(entry, folder)
    command = [sys.executable, "-m", "compileall", "-q", "-f", "-j", "1"]
    command += ["--invalidation-mode", "unchecked-hash", "-s", str(folder), str(folder)]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    environment["PYTHONHASHSEED"] = "0"  # the order of a frozen set in the bytes
    compiled = subprocess.run(command, capture_output=True, text=True, env=environment)
    # 1 is for files that are no Python of this version; they stay as they are
    if compiled.returncode not in (0, 1) or "[Errno" in compiled.stdout:
        raise ValueError(f"{wheel.name} could not be compiled: {compiled.stdout.strip()[-200:]}")


def assemble(target: Path, files: Path, **what: object) -> None:
    """Make an archive of `files` and put it, whole, at `target`."""
    from rattler_build import assemble_package

    with tempfile.TemporaryDirectory(dir=FOLDER, prefix=".part.") as part:
        try:
            made = assemble_package(
                **what,
                files_dir=files,
                output_dir=part,
                compression_level=3,
                compression_threads=1,
                timestamp=datetime(2026, 1, 1, tzinfo=UTC),
                detect_prefix=False,
            )
        except Exception as error:  # rattler-build's errors share no ancestor
            reason = " ".join(str(error).split())
            raise ValueError(f"{target.name} could not be made: {reason}") from error
        for path in (target, note_of(target)):
            path.parent.mkdir(parents=True, exist_ok=True)
        note_of(target).write_text(md5(made.path), encoding="utf-8")
        made.path.replace(target)


def convert(wheel: Wheel) -> None:
    with tempfile.TemporaryDirectory(dir=FOLDER, prefix=".part.") as staging:
        try:
            unpack(wheel.path, Path(staging) / "site-packages")
        except OSError as error:  # of a full disk, it would not say for what there is no room
            raise ValueError(f"{wheel.name} could not be unpacked: {error}") from error
        assemble(
            wheel.archive,
            Path(staging),
            name=wheel.name,
            version=wheel.version,
            target_platform="noarch",
            build_string=wheel.build,
            depends=list(wheel.depends),
            noarch="python",
        )


def python_archive(subdir: str) -> Path:
    return CHANNEL / subdir / f"python-{VERSION}-host_{short_digest(interpreter())}.conda"


def package_python(target: Path) -> None:
    """Make the package `python` of links to the Python that runs this."""
    executable = Path(os.path.realpath(sys._base_executable))
    with tempfile.TemporaryDirectory(dir=FOLDER, prefix=".part.") as staging:
        bin_folder = Path(staging) / "bin"
        bin_folder.mkdir()
        real = f"python{sys.version_info.major}.{sys.version_info.minor}"
        (bin_folder / real).symlink_to(executable)
        for name in ("python", "python3"):
            (bin_folder / name).symlink_to(real)
        (Path(staging) / "pyvenv.cfg").write_text(
            f"home = {executable.parent}\ninclude-system-site-packages = false\n"
            f"version = {VERSION}\n",
            encoding="utf-8",
        )
        name, version, build = target.name.removesuffix(".conda").rsplit("-", 2)
        assemble(
            target,
            Path(staging),
            name=name,
            version=version,
            target_platform=target.parent.name,
            build_string=build,
        )


def whole(archive: Path) -> bool:
    return archive.exists() and says(note_of(archive), md5(archive))


def make_packages() -> None:
    """Make the packages that are missing, and remove those that no longer belong."""
    import asyncio
    from concurrent.futures import ThreadPoolExecutor, as_completed

    from rattler.index import index
    from rattler.platform import Subdir

    start, digest = time.monotonic(), made_from()
    STAMP.unlink(missing_ok=True)
    PINS_STAMP.unlink(missing_ok=True)
    for part in FOLDER.glob(".part.*"):
        shutil.rmtree(part)
    with tempfile.TemporaryDirectory(dir=FOLDER, prefix=".part.") as folder:
        paths = download(Path(folder))
        versions = locked_versions(paths)
        wheels = [describe(path, versions) for path in paths]
        missing = [wheel for wheel in wheels if not whole(wheel.archive)]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            jobs = {pool.submit(convert, wheel): wheel for wheel in missing}
            for count, job in enumerate(as_completed(jobs), start=1):
                job.result()
                say(f"{count} of {len(jobs)}: {jobs[job].name} {jobs[job].version}")
    python = python_archive(str(Subdir.current()))
    if not whole(python):
        package_python(python)
    wanted = {python, *(wheel.archive for wheel in wheels)}
    for path in CHANNEL.glob("*/*.conda"):
        if path not in wanted:
            path.unlink()
    try:
        asyncio.run(index.index_fs(CHANNEL, write_zst=False, write_shards=False, force=True))
    except Exception as error:  # py-rattler's errors share no ancestor
        reason = " ".join(str(error).split())
        raise ValueError(f"{CHANNEL} could not be indexed: {reason}") from error
    STAMP.write_text(digest, encoding="utf-8")
    say(f"{len(wanted)} packages ready after {time.monotonic() - start:.0f} s")


def write_pins() -> None:
    """Solve every environment against the channel."""
    import solving

    for environment in sorted(ENVIRONMENTS.glob("*.yaml")):
        try:
            records = solving.solve(dependencies.specs(environment), CHANNEL.resolve().as_uri())
        except ValueError as error:
            raise ValueError(
                f"envs/{environment.name} asks for what envs/{LOCK.name} does not have: {error}"
            ) from error
        packages = map(solving.package_of, records)
        text = explicit.write(packages, ["made from wheels on this machine by channel.py"])
        part = pin_file(environment).with_suffix(".part")
        part.write_text(text, encoding="utf-8")
        part.replace(pin_file(environment))


def make() -> None:
    """Bring the channel and the pin files up to date: about a minute the first time.

    Raises ValueError or OSError, in one line.
    """
    with locked(FOLDER / "lock"):
        if not says(STAMP, made_from()):
            make_packages()
        if not current():
            write_pins()
            PINS_STAMP.write_text(solved(), encoding="utf-8")
