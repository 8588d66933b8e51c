"""The folders that a table is gathered from, as the manifests of all batches vouch for them."""

from collections.abc import Sequence
from pathlib import Path

from cell_batch import discard
from cell_files import key_of_folder
from receipts import Damaged, read_manifest, verified
from whole_files import fail


def vouched_for(
    manifests: Sequence[Path], cells_digests: Sequence[str], name: str, keys: Sequence[str]
) -> list[Path]:
    """Every folder once, sorted by its keys, with the named file as its step wrote it.

    Whatever is wrong ends the step.
    """
    found: dict[Path, Path] = {}
    damages = []
    for manifest, digest in zip(manifests, cells_digests, strict=True):
        try:
            entries = read_manifest(manifest, digest)
        except Damaged as damage:
            damages.append(damage)
            continue
        for folder, receipt in entries.items():
            if folder in found:
                fail(f"{folder} is in two batches, {found[folder]} and {manifest}")
            found[folder] = manifest
            try:
                if not verified(folder, receipt, manifest, [name]):
                    raise Damaged(folder / name, manifest)
            except Damaged as damage:
                damages.append(damage)
    for damage in damages:
        discard(damage)
    if damages:
        raise SystemExit(1)
    return sorted(found, key=lambda folder: key_of_folder(folder, keys))
