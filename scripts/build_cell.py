"""Build the factors phi(q), phi(k) of a cell from its source's q, k, v."""

import argparse

import numpy as np

from causalrank.feature_maps import FEATURE_MAPS
from causalrank.mixing import require_finite
from cell_files import Cell, save_cell
from whole_files import fail, load_arrays


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", required=True)
    parser.add_argument("--N", type=int, required=True)
    parser.add_argument("--d", type=int, required=True)
    parser.add_argument("--feature-map", required=True, choices=[*FEATURE_MAPS, "softmax"])
    parser.add_argument("--input", required=True, help="the source's .npz: q, k and, if any, v")
    parser.add_argument("--output", required=True, help="the cell's factors.npz")
    args = parser.parse_args()
    key = (args.source, args.N, args.d, args.feature_map)
    try:
        cell = build(*key, load_arrays(args.input))
    except (ValueError, OverflowError, ZeroDivisionError) as error:
        name = "source {}, N = {}, d = {}, feature_map {}".format(*key)
        fail(f"cell {name}: {error}; change the source or take the cell out of the grid")
    save_cell(args.output, cell)


if __name__ == "__main__":
    main()
