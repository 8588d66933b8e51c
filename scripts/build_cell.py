"""Build the factors phi(q), phi(k) of a cell from its source's q, k, v, drawn or read."""

import argparse
from pathlib import Path

import numpy as np

from causalrank.ensembles import ensemble
from causalrank.feature_maps import FEATURE_MAPS
from causalrank.mixing import require_finite
from cell_files import CELL_KEYS, Cell, save_cell
from source_step import Source, SourceStep, add_members
from whole_files import fail

STEP = SourceStep(CELL_KEYS, [*FEATURE_MAPS, "softmax"], "factors.npz")


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


def drawn(args: argparse.Namespace, source: str, N: int, d: int) -> dict[str, np.ndarray]:
    if None in (args.members, args.max_N_values):
        fail("--scale needs --members and --max-N-values")
    q, k, v = ensemble(source, N, d, args.members, args.scale)
    return {"q": q, "k": k} | ({"v": v} if N <= args.max_N_values else {})


def write(
    args: argparse.Namespace, source: Source, key: tuple[str, int, int, str], target: Path
) -> None:
    try:
        cell = build(*key, source() if args.scale is None else drawn(args, *key[:3]))
    except (ValueError, OverflowError, ZeroDivisionError) as error:
        name = "source {}, N = {}, d = {}, feature_map {}".format(*key)
        fail(f"cell {name}: {error}; change the source or take the cell out of the grid")
    save_cell(target, cell)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add_members(parser)
    parser.add_argument("--max-N-values", type=int, help="largest N that v is drawn for")
    STEP.run(parser, write)


if __name__ == "__main__":
    main()
