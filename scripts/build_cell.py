"""Build the factors phi(q), phi(k) of a cell from its source's q, k, v, drawn or read."""

import argparse
from functools import cache
from pathlib import Path

import numpy as np

import receipts
from causalrank.ensembles import ensemble
from causalrank.feature_maps import FEATURE_MAPS
from causalrank.mixing import require_finite
from cell_batch import add_batch_options, compute_batch, options_of
from cell_files import CELL_KEYS, Cell, key_of_folder, save_cell
from whole_files import fail, load_arrays

OUTPUT = "factors.npz"


def build(source: str, N: int, d: int, feature_map: str, arrays: dict[str, np.ndarray]) -> Cell:
    """The first N tokens of every member, through the feature map.

    Raises ValueError when the source has no such cell, OverflowError or ZeroDivisionError when
    one of its mixing matrices does not exist in float64.
    """
    q, k, v = arrays["q"], arrays["k"], arrays.get("v")
    if q.shape[1] < N or q.shape[2] != d:
        raise ValueError(f"the source has N = {q.shape[1]} and d = {q.shape[2]}")
    q, k, v = q[:, :N], k[:, :N], None if v is None else v[:, :N]
    phi = (lambda x: x) if feature_map == "softmax" else FEATURE_MAPS[feature_map]
    cell = Cell(source, N, d, feature_map, phi(q), phi(k), v)
    for F, G in zip(cell.F, cell.G, strict=True):
        require_finite(F, G, feature_map)
    return cell


load_source = cache(load_arrays)
"""A batch's cells share their source's file."""


def arrays_of(args: argparse.Namespace, source: str, N: int, d: int) -> dict[str, np.ndarray]:
    if args.input is not None:
        return load_source(args.input)
    q, k, v = ensemble(source, N, d, args.members, args.scale)
    return {"q": q, "k": k} | ({"v": v} if N <= args.max_N_values else {})


def write(args: argparse.Namespace, key: tuple[str, int, int, str], target: str | Path) -> None:
    try:
        cell = build(*key, arrays_of(args, *key[:3]))
    except (ValueError, OverflowError, ZeroDivisionError) as error:
        name = "source {}, N = {}, d = {}, feature_map {}".format(*key)
        fail(f"cell {name}: {error}; change the source or take the cell out of the grid")
    save_cell(target, cell)


def write_batch(args: argparse.Namespace) -> None:
    inputs = {} if args.input is None else {"source": receipts.file_digest(Path(args.input))}
    options = options_of(args, (*CELL_KEYS, "input", "output", "cells"))
    compute_batch(
        args.manifest,
        args.cells,
        [OUTPUT],
        lambda folder: receipts.content_key("build_cell", folder, options, inputs),
        lambda folder: write(args, key_of_folder(folder), folder / OUTPUT),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source")
    parser.add_argument("--N", type=int)
    parser.add_argument("--d", type=int)
    parser.add_argument("--feature-map", choices=[*FEATURE_MAPS, "softmax"])
    arrays = parser.add_mutually_exclusive_group(required=True)
    arrays.add_argument("--input", help="the source's .npz: q, k and, if any, v")
    arrays.add_argument("--scale", type=float, help="of a drawn source, its standard deviation")
    parser.add_argument("--members", type=int, help="draws of a drawn source")
    parser.add_argument("--max-N-values", type=int, help="largest N that v is drawn for")
    parser.add_argument("--output", help="the cell's factors.npz")
    add_batch_options(parser)
    parser.add_argument("--cells", nargs="+", type=Path, help="folders of a batch's cells")
    args = parser.parse_args()
    if args.scale is not None and None in (args.members, args.max_N_values):
        parser.error("--scale needs --members and --max-N-values")
    if args.manifest is not None:
        write_batch(args)
        return
    key = tuple(getattr(args, name) for name in CELL_KEYS)
    if None in (*key, args.output):
        parser.error("--source, --N, --d, --feature-map and --output are needed, or a batch")
    write(args, key, args.output)


if __name__ == "__main__":
    main()
