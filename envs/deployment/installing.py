"""Put the packages of an explicit list into an environment that appears whole or not at all."""

import asyncio
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote, urlsplit

import rattler
from rattler import PackageRecord, RepoDataRecord
from rattler.package import BuildString
from rattler.package_cache import PackageCache, ValidationMode

import channel
import explicit
from locking import locked
from situation import ALIAS, ROOT, channel_url

CACHE = ROOT / ".snakemake" / "packages"


def local_record(package: explicit.Package) -> RepoDataRecord:
    """The record of an archive of the local channel, checked, since py-rattler does not.

    A damaged archive is removed, so that the next run makes it anew. Raises ValueError for one.
    """
    path = Path(unquote(urlsplit(package.url).path))
    if not path.exists():
        channel.STAMP.unlink(missing_ok=True)
        raise ValueError(f"{path} is missing; run again, and it is made anew")
    if channel.md5(path) != package.md5:
        channel.STAMP.unlink(missing_ok=True)
        path.unlink()
        raise ValueError(
            f"{path} was damaged (md5 is not {package.md5}); run again, and it is made anew"
        )
    record = asyncio.run(RepoDataRecord.from_package_archive(path))
    record.md5 = bytes.fromhex(package.md5)
    record.url = package.url
    record.channel = package.url.rsplit("/", 2)[0]
    return record


def remote_record(package: explicit.Package) -> RepoDataRecord:
    """What an explicit list says of a package, its address on the server that is configured."""
    url = package.url.replace(f"{ALIAS}/conda-forge", channel_url(), 1)
    record = PackageRecord(
        name=package.name,
        version=package.version,
        build=BuildString(package.build),
        build_number=0,
        subdir=package.subdir,
        arch=None,
        platform=None,
        md5=bytes.fromhex(package.md5),
    )
    return RepoDataRecord(record, package.file_name, url, url.rsplit("/", 2)[0])


def cached(record: PackageRecord) -> Path:
    """Where py-rattler keeps a package that it has unpacked."""
    return CACHE / f"{record.name.normalized}-{record.version}-{record.build}"


def forget_others(wanted: list[RepoDataRecord]) -> None:
    """Remove from the cache what has a wanted package's name and not, for all we know, its md5.

    Without a sha256, which explicit lists lack, py-rattler takes whatever has the name.
    """
    for record in wanted:
        if record.sha256 is None and cached(record).exists():
            note = cached(record).with_name(f"{cached(record).name}.md5")
            if not note.exists() or note.read_text() != record.md5.hex():
                shutil.rmtree(cached(record))


def note_hashes(wanted: list[RepoDataRecord]) -> None:
    """Note, beside each package that has been fetched and so been checked, its md5."""
    for record in wanted:
        if record.md5:
            note = cached(record).with_name(f"{cached(record).name}.md5")
            note.write_text(record.md5.hex())


def records(packages: list[explicit.Package]) -> list[RepoDataRecord]:
    return [
        (local_record if package.url.startswith("file:") else remote_record)(package)
        for package in packages
    ]


def install(wanted: list[RepoDataRecord], prefix: Path) -> None:
    """Make an environment of the records; if another process made it meanwhile, leave that.

    Snakemake puts its file list beside the environment, and a flag when all is done. It removes an
    environment without the flag, even one that another run has just made, so the flag comes first.
    Raises ValueError, in one line, for packages that cannot be had, and OSError.
    """
    prefix.parent.mkdir(parents=True, exist_ok=True)
    CACHE.mkdir(parents=True, exist_ok=True)
    if not any(Path(f"{prefix}.{kind}").exists() for kind in ("pin.txt", "yaml")):
        _install(wanted, prefix)
        return
    with locked(prefix.with_name(f".{prefix.name}.lock")):
        if not (prefix / "conda-meta").exists():
            for part in prefix.parent.glob(f".part.{prefix.name}.*"):
                shutil.rmtree(part)
            flag = Path(f"{prefix}.env_setup_done")
            try:
                _install(wanted, prefix, before_rename=flag.touch)
            except OSError:
                flag.unlink(missing_ok=True)
                raise


def _install(
    wanted: list[RepoDataRecord], prefix: Path, before_rename: Callable[[], None] = lambda: None
) -> None:
    part = Path(tempfile.mkdtemp(dir=prefix.parent, prefix=f".part.{prefix.name}."))
    try:
        part.chmod(0o755)
        forget_others(wanted)
        done = rattler.install(
            wanted,
            part,
            package_cache=PackageCache.new_layered([CACHE], validation_mode=ValidationMode.full()),
            show_progress=False,
            alternative_target_prefix=prefix,
        )
        asyncio.run(done)
        note_hashes(wanted)
        before_rename()
        part.rename(prefix)
    except OSError:
        if not (prefix / "conda-meta").exists():
            raise
    except Exception as error:  # py-rattler's errors share no ancestor
        reason = " ".join(str(error).split())
        raise ValueError(f"the packages could not be installed: {reason}") from error
    finally:
        patience = time.monotonic() + 5  # py-rattler's threads go on for a moment after a failure
        while part.exists() and time.monotonic() < patience:
            shutil.rmtree(part, ignore_errors=True)
            time.sleep(0.1)
