"""A step that makes one file of a folder from the q, k, v of its source, drawn or read."""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np

import receipts
from cell_batch import add_batch_options, compute_batch, options_of
from cell_files import key_of_folder
from whole_files import file_digest, intact, load_arrays

Source = Callable[[], dict[str, np.ndarray]]
"""The arrays of the source's file, which the cells of a batch share: read once, if at all."""


@dataclass(frozen=True)
class SourceStep:
    """The keys that name a folder, the feature maps there may be, and the file that is made."""

    keys: Sequence[str]
    feature_maps: Sequence[str]
    output: str

    def run(self, parser: argparse.ArgumentParser, compute: Callable[..., None]) -> None:
        """Parse the command line and call compute(args, source, key, output) for each folder.

        The folder is one that the command line describes, or those of a batch.
        """
        for key in self.keys:
            choices = self.feature_maps if key == "feature_map" else None
            kind = int if key in "Nd" else str
            parser.add_argument(f"--{key.replace('_', '-')}", type=kind, choices=choices)
        arrays = parser.add_mutually_exclusive_group(required=True)
        arrays.add_argument("--input", help="the source's .npz: q, k and, if any, v")
        arrays.add_argument("--scale", type=float, help="of a drawn source, its standard deviation")
        arrays.add_argument("--scales", nargs="+", help="SOURCE=SCALE, of each of a batch")
        parser.add_argument("--output", help=self.output)
        add_batch_options(parser)
        parser.add_argument("--below", type=Path, help="where the folders of a batch are")
        parser.add_argument("--cells", nargs="+", help="the batch's folders, below that")
        args = parser.parse_args()
        source = cache(partial(load_arrays, args.input))
        if args.manifest is not None:
            self._run_batch(args, source, compute)
            return
        described = tuple(getattr(args, key) for key in self.keys)
        if None in (*described, args.output):
            parser.error(f"{', '.join(self.keys)} and output are needed, or a batch")
        compute(args, source, described, Path(args.output))

    def _run_batch(
        self, args: argparse.Namespace, source: Source, compute: Callable[..., None]
    ) -> None:
        inputs = {} if args.input is None else {"source": file_digest(intact(args.input))}
        not_content = (*self.keys, "input", "output", "below", "cells", "scales", "members_of")

        def own(folder: Path) -> argparse.Namespace:
            return settings_of(args, str(key_of_folder(folder, self.keys)[0]))

        def key_of(folder: Path) -> str:
            options = options_of(own(folder), not_content)
            return receipts.content_key(args.manifest.stem, folder, options, inputs)

        def compute_folder(folder: Path) -> None:
            key = key_of_folder(folder, self.keys)
            compute(own(folder), source, key, folder / self.output)

        folders = [args.below / cell for cell in args.cells]
        compute_batch(args.manifest, folders, [self.output], key_of, compute_folder)


def add_members(parser: argparse.ArgumentParser) -> None:
    """The options of a step that draws a source's members one by one."""
    parser.add_argument("--members", type=int, help="draws of a drawn source")
    parser.add_argument("--members-of", nargs="+", help="SOURCE=NUMBER, of each of a batch")


def settings_of(args: argparse.Namespace, source: str) -> argparse.Namespace:
    """The options as if those of one of a batch's sources were all of it."""
    own = argparse.Namespace(**vars(args))
    for name, plural, kind in (("scale", "scales", float), ("members", "members_of", int)):
        if getattr(args, plural, None) is not None:
            settings = dict(x.split("=", 1) for x in getattr(args, plural))
            setattr(own, name, kind(settings[source]))
    return own
