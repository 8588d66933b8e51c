"""Tiny wheels, conda packages, channels and servers, made within a test."""

import asyncio
import functools
import hashlib
import http.server
import tempfile
import threading
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

import channel
import explicit

Files = Mapping[str, str | bytes]


def point_at(folder: Path, patch: pytest.MonkeyPatch) -> None:
    """Have the modules that deploy environments, and pip, know no other folder."""
    import installing

    patch.setattr(channel, "ROOT", folder)
    patch.setattr(channel, "ENVIRONMENTS", folder / "envs")
    patch.setattr(channel, "LOCK", folder / "envs" / "wheels.txt")
    patch.setattr(channel, "FOLDER", folder / "wheels")
    patch.setattr(channel, "CHANNEL", folder / "wheels" / "channel")
    patch.setattr(channel, "STAMP", folder / "wheels" / "stamp")
    patch.setattr(channel, "PINS_STAMP", folder / "pins.stamp")
    patch.setattr(installing, "CACHE", folder / "cache")
    patch.setenv("PIP_CONFIG_FILE", "/dev/null")
    patch.setenv("PIP_NO_INDEX", "1")
    patch.setenv("PIP_FIND_LINKS", str(folder / "index"))
    patch.setenv("NO_PROXY", "127.0.0.1")
    for name in ("envs", "wheels", "index"):
        (folder / name).mkdir(exist_ok=True)


def wheel(folder: Path, name: str, files: Files, requires: Sequence[str] = ()) -> Path:
    """A wheel of version 1.0."""
    path = folder / f"{name}-1.0-py3-none-any.whl"
    lines = ["Metadata-Version: 2.1", f"Name: {name}", "Version: 1.0"]
    lines += [f"Requires-Dist: {requirement}" for requirement in requires]
    about = {
        "METADATA": "\n".join(lines) + "\n",
        "WHEEL": "Wheel-Version: 1.0\nTag: py3-none-any\n",
        "RECORD": "",
    }
    with zipfile.ZipFile(path, "w") as archive:
        for file, text in (
            files | {f"{name}-1.0.dist-info/{k}": v for k, v in about.items()}
        ).items():
            archive.writestr(zipfile.ZipInfo(file), text)
    return path


def package(name: str, files: Files, version: str = "1.0", **what: object) -> explicit.Package:
    """A conda package in the local channel, which is to be indexed afterwards."""
    from rattler_build import assemble_package

    what = {"target_platform": "noarch", "noarch": "generic", "build_string": "0"} | what
    folder = channel.CHANNEL / what["target_platform"]
    with tempfile.TemporaryDirectory() as staging:
        for file, content in files.items():
            path = Path(staging, file)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        made = assemble_package(
            name,
            version,
            output_dir=folder,
            files_dir=staging,
            compression_level=1,
            detect_prefix=False,
            **what,
        )
    target = folder / made.path.name
    made.path.replace(target)
    return listed(target)


def listed(archive: Path) -> explicit.Package:
    """An archive as a line of an explicit list."""
    md5 = hashlib.md5(archive.read_bytes()).hexdigest()
    line = f"{archive.parent.as_uri()}/{archive.name}#{md5}"
    return explicit.Package(**explicit.LINE.fullmatch(line).groupdict())


def index() -> str:
    """Index the local channel; return its address."""
    from rattler.index import index

    asyncio.run(index.index_fs(channel.CHANNEL, write_zst=False, write_shards=False))
    return channel.CHANNEL.as_uri()


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """A server of a folder on the loopback; its address."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    handler = functools.partial(Quiet, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
