"""A step on the cells of a batch: what is valid is reused, and a cell that fails stops no other."""

import argparse
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import receipts
from whole_files import fail, noted

Key = Callable[[Path], str]
Compute = Callable[[Path], None]


def say(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


def discard(damage: receipts.Damaged) -> None:
    """Have Snakemake make a damaged file again, when the same command is run again."""
    damage.manifest.unlink(missing_ok=True)
    say(f"error: {damage}; run the same command again, and it is made anew")


def compute_batch(
    manifest: Path, folders: list[Path], outputs: list[str], key_of: Key, compute: Compute
) -> None:
    """Compute what has no valid receipt, and write the manifest if no cell failed.

    Raises SystemExit, naming the cells that failed.
    """
    step, computed, failed = manifest.stem, 0, []
    found: dict[Path, str] = {}
    for folder in folders:
        try:
            key = key_of(folder)
            if digest := receipts.valid(folder, step, key, outputs):
                found[folder] = digest
                say(f"reused {folder}")
                continue
            with noted() as digests:
                compute(folder)
            written = {name: digests[folder / name] for name in outputs}
            found[folder] = receipts.write_receipt(folder, step, key, written)
            computed += 1
            say(f"computed {folder}")
        except receipts.Damaged as damage:
            discard(damage)
            failed.append(folder)
        except SystemExit:  # of `fail`, which has said why
            failed.append(folder)
        except Exception:
            traceback.print_exc()
            failed.append(folder)
    reused = len(folders) - computed - len(failed)
    say(f"{computed} computed, {reused} reused, {len(failed)} failed")
    if failed:
        fail(f"{step} failed for {', '.join(map(str, failed))}")
    receipts.write_manifest(manifest, found)


def add_batch_options(parser: argparse.ArgumentParser) -> None:
    """Those that a batch has instead of lists of files."""
    parser.add_argument("--manifest", type=Path, help="of a batch, what its cells' receipts are")
    parser.add_argument("--code", help="digest of this step's code and environment")


def options_of(args: argparse.Namespace, without: Iterable[str]) -> dict[str, object]:
    """What a step computes with, its code's digest included."""
    skipped = {"manifest", *without}
    return {name: value for name, value in vars(args).items() if name not in skipped}


@dataclass(frozen=True)
class CellStep:
    """A step that reads and writes files in a cell's folder: names of files by option."""

    inputs: Mapping[str, str]
    outputs: Mapping[str, str]

    def run(self, parser: argparse.ArgumentParser, compute: Callable[..., None]) -> None:
        """Parse the command line and call compute(args, *inputs, *outputs) for each cell.

        The cells are lists of files, or those of a batch, as the manifests of earlier steps have
        them.
        """
        files = {**self.inputs, **self.outputs}
        for option, name in files.items():
            parser.add_argument(option, nargs="+", help=f"{name} of each cell")
        add_batch_options(parser)
        parser.add_argument("--read", nargs="+", type=Path, help="manifests of earlier steps")
        parser.add_argument("--cells-digest", help="sha256 of the batch's cells, a line each")
        args = parser.parse_args()
        lists = [getattr(args, option.lstrip("-").replace("-", "_")) for option in files]
        if args.manifest is None:
            if None in lists:
                parser.error(f"{' and '.join(files)} are needed, or --manifest for a batch")
            for paths in zip(*lists, strict=True):
                compute(args, *paths)
            return
        self.run_batch(args, lambda folder: compute(args, *(folder / x for x in files.values())))

    def run_batch(self, args: argparse.Namespace, compute: Compute) -> None:
        try:
            earlier = {path: receipts.read_manifest(path, args.cells_digest) for path in args.read}
        except receipts.Damaged as damage:
            discard(damage)
            raise SystemExit(1) from None
        names = [option.lstrip("-").replace("-", "_") for option in (*self.inputs, *self.outputs)]
        options = options_of(args, (*names, "read", "cells_digest"))

        def key_of(folder: Path) -> str:
            inputs = {}
            for manifest, entries in earlier.items():
                wanted = self.inputs.values()
                inputs |= receipts.verified(folder, entries[folder], manifest, wanted)
            return receipts.content_key(args.manifest.stem, folder, options, inputs)

        folders = list(earlier[args.read[0]])
        compute_batch(args.manifest, folders, list(self.outputs.values()), key_of, compute)
