"""A receipt vouches for a cell's files, and a manifest for the receipts: each byte is noticed."""

import hashlib
import subprocess
from pathlib import Path

import pytest

import receipts
from receipts import Damaged
from whole_files import file_digest

CELLS = [f"source~s/N~{N}/d~2/feature_map~relu" for N in (4, 8)]
STEP, NAMES = "measure_rank", ["rank.csv", "block_rank.csv"]


@pytest.fixture
def folders(tmp_path) -> list[Path]:
    """Two cells with receipts, below a folder with a space and a letter beyond ASCII."""
    found = [tmp_path / "Größe 1" / "cells" / cell for cell in CELLS]
    for folder in found:
        folder.mkdir(parents=True)
        for name in NAMES:
            (folder / name).write_text(f"{name} of {folder.parts[-3]}\n")
        receipts.write_receipt(folder, STEP, key(folder), written(folder))
    return found


def digests(folders: list[Path]) -> dict[Path, str]:
    return {folder: receipts.valid(folder, STEP, key(folder), NAMES) for folder in folders}


def written(folder: Path) -> dict[str, str]:
    return {name: file_digest(folder / name) for name in NAMES}


@pytest.fixture
def manifest(tmp_path, folders) -> Path:
    path = tmp_path / "batch" / f"{STEP}.txt"
    receipts.write_manifest(path, digests(folders))
    return path


def key(folder: Path, step: str = STEP, inputs: dict | None = None, **options: object) -> str:
    return receipts.content_key(step, folder, options, inputs or {})


def digest(folders: list[Path]) -> str:
    return hashlib.sha256("\n".join(map(str, folders)).encode()).hexdigest()


def flip(path: Path, place: int) -> None:
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)


def test_a_receipt_is_valid_for_its_key_and_outputs_alone(folders):
    folder = folders[0]
    receipt = receipts.receipt_path(folder, STEP)
    assert receipts.valid(folder, STEP, key(folder), NAMES) == file_digest(receipt)
    assert not receipts.valid(folder, STEP, key(folder, max_N=3), NAMES)
    assert not receipts.valid(folder, STEP, key(folder), NAMES[:1])
    assert not receipts.valid(folder, "check_bound", key(folder), NAMES)


@pytest.mark.parametrize("name", [*NAMES, f"receipts/{STEP}.json"])
@pytest.mark.parametrize("place", [0, 3, -2])
def test_a_flipped_byte_makes_it_invalid(folders, capsys, name, place):
    flip(folders[0] / name, place)
    assert not receipts.valid(folders[0], STEP, key(folders[0]), NAMES)
    if name in NAMES:
        assert capsys.readouterr().err == (
            f"{folders[0] / name}: missing, or not the bytes that {STEP} wrote: made anew\n"
        )
    assert receipts.valid(folders[1], STEP, key(folders[1]), NAMES)


def test_a_missing_output_makes_it_invalid(folders):
    (folders[0] / NAMES[0]).unlink()
    assert not receipts.valid(folders[0], STEP, key(folders[0]), NAMES)


def test_the_key_holds_everything_but_where_results_are_kept(folders, tmp_path):
    folder = folders[0]
    different = [
        key(folder),
        key(folders[1]),
        key(folder, "check_bound"),
        key(folder, code="1"),
        key(folder, code="2"),
        key(folder, inputs={"factors.npz": "1"}),
        key(folder, inputs={"factors.npz": "2"}),
    ]
    assert len(set(different)) == len(different)
    assert key(tmp_path / "elsewhere" / CELLS[0]) == key(folder)


def test_a_manifest_vouches_for_every_file(folders, manifest):
    entries = receipts.read_manifest(manifest, digest(folders))
    assert list(entries) == folders
    for folder in folders:
        found = receipts.verified(folder, entries[folder], manifest, ["rank.csv", "factors.npz"])
        assert found == {"rank.csv": file_digest(folder / "rank.csv")}


def test_a_manifest_is_checked_by_sha256sum(manifest):
    run = subprocess.run(["sha256sum", "--check", manifest], capture_output=True, text=True)
    assert run.returncode == 0 and run.stdout.count("OK") == 2, run.stderr


def test_every_flipped_byte_of_a_manifest_is_noticed(folders, manifest):
    content = manifest.read_bytes()
    for place in range(0, len(content), 7):
        flip(manifest, place)
        with pytest.raises(Damaged) as caught:
            entries = receipts.read_manifest(manifest, digest(folders))
            for folder in folders:
                receipts.verified(folder, entries[folder], manifest, NAMES)
        assert caught.value.manifest == manifest
        manifest.write_bytes(content)


@pytest.mark.parametrize("change", ["cut", "twice", "other", "none"])
def test_a_manifest_of_other_cells_is_refused(folders, manifest, change):
    one, two = manifest.read_text().splitlines(keepends=True)
    content = {"cut": one, "twice": one + two + two, "other": two + one, "none": None}[change]
    manifest.unlink()
    if content is not None:
        manifest.write_text(content)
    with pytest.raises(Damaged, match=f"{manifest}: missing, or not"):
        receipts.read_manifest(manifest, digest(folders))


@pytest.mark.parametrize("name", ["rank.csv", f"receipts/{STEP}.json"])
@pytest.mark.parametrize("gone", [True, False])
def test_a_damaged_file_is_named(folders, manifest, name, gone):
    path = folders[1] / name
    path.unlink() if gone else flip(path, 5)
    entries = receipts.read_manifest(manifest, digest(folders))
    receipts.verified(folders[0], entries[folders[0]], manifest, NAMES)
    with pytest.raises(Damaged) as caught:
        receipts.verified(folders[1], entries[folders[1]], manifest, NAMES)
    assert str(caught.value) == f"{path}: missing, or not the bytes that {STEP} wrote"


def test_receipts_and_manifests_repeat_byte_by_byte(folders, manifest):
    paths = [*(receipts.receipt_path(folder, STEP) for folder in folders), manifest]
    before = [path.read_bytes() for path in paths]
    for folder in folders:
        receipts.write_receipt(folder, STEP, key(folder), written(folder))
    receipts.write_manifest(manifest, digests(folders))
    assert [path.read_bytes() for path in paths] == before
