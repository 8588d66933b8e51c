"""Compute the singular values of a cell's mixing matrices, in every precision asked for."""

import argparse
from pathlib import Path

import numpy as np

from causalrank.mixing import MASKS, NORMALIZATIONS, matrix, normalized_factors
from causalrank.precision import PRECISIONS, rounded
from causalrank.spectrum import factored_singular_values, singular_values
from cell_batch import CellStep
from cell_files import Cell, load_cell, progress
from whole_files import save_arrays


def spectra(
    cell: Cell, max_N: int, max_N_rounded: int, rounded_members: int
) -> dict[str, np.ndarray]:
    """Singular values by precision, each (members, masks, normalizations, N), NaN if not computed.

    In float64 those of a bidirectional factored matrix come from its factors, at any N. Rounded are
    the first `rounded_members`; a matrix that a precision cannot hold keeps its NaN.
    """
    shape = (len(cell.F), len(MASKS), len(NORMALIZATIONS), cell.N)
    sigma = {name: np.full(shape, np.nan) for name in PRECISIONS}
    limits = {name: max_N if name == "float64" else max_N_rounded for name in PRECISIONS}
    within = [name for name in PRECISIONS if cell.N <= limits[name]]
    for member, mask, normalization in cell.matrices():
        place = member, MASKS.index(mask), NORMALIZATIONS.index(normalization)
        if place[1:] == (0, 0):
            progress(cell, member)
        F, G = cell.F[member], cell.G[member]
        dense = [name for name in within if name == "float64" or member < rounded_members]
        if mask == "bidirectional" and cell.is_low_rank:
            factors = (F, G) if normalization == "none" else normalized_factors(F, G)
            sigma["float64"][place] = factored_singular_values(*factors)
            dense = [name for name in dense if name != "float64"]
        if dense:
            A = matrix(F, G, cell.feature_map, mask, normalization)
        for name in dense:
            Ahat = rounded(A, name)
            if np.isfinite(Ahat).all():
                sigma[name][place] = singular_values(Ahat)
    return sigma


STEP = CellStep({"--input": "factors.npz"}, {"--output": "singular_values.npz"})


def write(args: argparse.Namespace, factors: Path, target: Path) -> None:
    limits = args.max_N, args.max_N_rounded, args.rounded_members
    save_arrays(target, **spectra(load_cell(factors), *limits))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--max-N", type=int, required=True, help="largest N computed in float64")
    parser.add_argument(
        "--max-N-rounded", type=int, required=True, help="largest N computed after rounding"
    )
    parser.add_argument(
        "--rounded-members", type=int, required=True, help="how many members are rounded"
    )
    STEP.run(parser, write)


if __name__ == "__main__":
    main()
