"""Receipts: what a step made of a cell and from what, so that nothing valid is made again.

Beside its outputs in a cell's folder, a step writes receipts/STEP.json: a content key of all that
they depend on, and the sha256 of each. The manifest of a step and a batch, in the format of
sha256sum, vouches for the receipts of the batch's cells, and so for every byte of them.
"""

import hashlib
import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from whole_files import file_digest, whole


class Damaged(Exception):
    """A file is not what `manifest` vouches for: the step that wrote this must run again."""

    def __init__(self, path: Path, manifest: Path) -> None:
        super().__init__(f"{path}: missing, or not the bytes that {manifest.stem} wrote")
        self.manifest = manifest


def receipt_path(folder: Path, step: str) -> Path:
    return folder / "receipts" / f"{step}.json"


def identity(folder: Path) -> str:
    """What a folder's name says of its content, wherever results are kept."""
    return "source~" + folder.as_posix().rpartition("source~")[2]


def content_key(
    step: str, folder: Path, options: Mapping[str, object], inputs: Mapping[str, str]
) -> str:
    """SHA-256 over step, identity, options (code among them) and the inputs' digests by name."""
    text = json.dumps([step, identity(folder), options, inputs], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def valid(folder: Path, step: str, key: str, outputs: Iterable[str]) -> str | None:
    """The receipt's digest if the outputs are there, byte by byte as the step wrote them from the
    same content; of what has been damaged or lost since, it says so."""
    try:
        content = receipt_path(folder, step).read_bytes()
        receipt = json.loads(content)
    except (OSError, ValueError):
        return None
    if not isinstance(receipt, dict) or receipt.get("key") != key:
        return None
    paths = {name: folder / name for name in outputs}
    written = {name: file_digest(path) for name, path in paths.items() if path.is_file()}
    if receipt == {"key": key, "outputs": written}:
        return hashlib.sha256(content).hexdigest()
    for name, path in paths.items():
        if receipt.get("outputs", {}).get(name) != written.get(name):
            print(
                f"{path}: missing, or not the bytes that {step} wrote: made anew", file=sys.stderr
            )
    return None


def write_receipt(folder: Path, step: str, key: str, written: Mapping[str, str]) -> str:
    """The receipt's digest; `written` are those of what the step wrote, and not of what may be
    there since."""
    content = f"{json.dumps({'key': key, 'outputs': written}, indent=1)}\n".encode()
    with whole(receipt_path(folder, step)) as part:
        part.write_bytes(content)
    return hashlib.sha256(content).hexdigest()


def write_manifest(path: Path, digests: Mapping[Path, str]) -> None:
    """Of the receipts' digests by folder."""
    with whole(path) as part, part.open("w", encoding="utf-8") as file:
        for folder, digest in digests.items():
            file.write(f"{digest}  {receipt_path(folder, path.stem).as_posix()}\n")


def read_manifest(path: Path, cells_digest: str) -> dict[Path, str]:
    """The digests of receipts by folder; Damaged unless these are the cells of the digest."""
    try:
        lines = [line.split("  ", 1) for line in path.read_text(encoding="utf-8").splitlines()]
        folders = [Path(name).parents[1] for _, name in lines]
    except (OSError, ValueError, IndexError):
        raise Damaged(path, path) from None
    cells = "\n".join(map(str, folders))
    if hashlib.sha256(cells.encode()).hexdigest() != cells_digest or any(
        name != str(receipt_path(folder, path.stem))
        for (_, name), folder in zip(lines, folders, strict=True)
    ):
        raise Damaged(path, path)
    return {folder: digest for folder, (digest, _) in zip(folders, lines, strict=True)}


def verified(
    folder: Path, receipt_digest: str, manifest: Path, names: Iterable[str]
) -> dict[str, str]:
    """The digests of those of the named files that the manifest's step wrote, each verified."""
    receipt = receipt_path(folder, manifest.stem)
    try:
        content = receipt.read_bytes()
    except OSError:
        raise Damaged(receipt, manifest) from None
    if hashlib.sha256(content).hexdigest() != receipt_digest:
        raise Damaged(receipt, manifest)
    written = json.loads(content)["outputs"]
    found = {name: written[name] for name in names if name in written}
    for name, digest in found.items():
        path = folder / name
        if not path.is_file() or file_digest(path) != digest:
            raise Damaged(path, manifest)
    return found
