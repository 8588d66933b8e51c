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
        parser.add_argument("--output", help=self.output)
        add_batch_options(parser)
        parser.add_argument("--cells", nargs="+", type=Path, help="folders of a batch")
        args = parser.parse_args()
        source = cache(partial(load_arrays, args.input))
        if args.manifest is not None:
            self._run_batch(args, partial(compute, args, source))
            return
        described = tuple(getattr(args, key) for key in self.keys)
        if None in (*described, args.output):
            parser.error(f"{', '.join(self.keys)} and output are needed, or a batch")
        compute(args, source, described, Path(args.output))

    def _run_batch(self, args: argparse.Namespace, compute: Callable[..., None]) -> None:
        inputs = {} if args.input is None else {"source": file_digest(intact(args.input))}
        options = options_of(args, (*self.keys, "input", "output", "cells"))
        compute_batch(
            args.manifest,
            args.cells,
            [self.output],
            lambda folder: receipts.content_key(args.manifest.stem, folder, options, inputs),
            lambda folder: compute(key_of_folder(folder, self.keys), folder / self.output),
        )
