"""Check the output-error bound on declared perturbations of a cell's mixing matrices."""

import argparse
from collections.abc import Iterator

import numpy as np

from causalrank.bound import noisy, row_errors, truncations
from causalrank.ensembles import seed_of
from causalrank.mixing import matrix
from causalrank.precision import rounded
from cell_files import MATRIX_KEYS, Cell, load_cell, progress
from whole_files import write_csv

HEADER = (
    *MATRIX_KEYS,
    "approximation",
    "strength",
    "row_l1_error_max",
    "value_norm_max",
    "bound_max",
    "output_error_max",
    "tightness_max",
    "tightness_median",
    "violations",
)


def approximations(
    A: np.ndarray, noise: list[float], ranks: list[int], key: tuple
) -> Iterator[tuple[str, object, np.ndarray]]:
    """Every perturbation of A: its name, its strength, and the perturbed matrix."""
    for strength in noise:
        seed = seed_of("noise", *key, repr(strength))
        generator = np.random.Generator(np.random.PCG64(seed))
        yield "noise", strength, noisy(A, strength, generator)
    for precision in ("float32", "bfloat16"):
        yield "rounding", precision, rounded(A, precision)
    for rank, A_hat in zip(ranks, truncations(A, ranks) if ranks else [], strict=True):
        yield "truncation", rank, A_hat


def rows(cell: Cell, max_N: int, noise: list[float], ranks: list[int]) -> Iterator[tuple]:
    """One row per matrix and perturbation; empty where N is too large or the source has no v."""
    blank = ("", "", *[None] * 7)
    for member, mask, normalization in cell.matrices():
        key = (*cell.key, member, mask, normalization)
        if cell.N > max_N or cell.v is None:
            yield (*key, *blank)
            continue
        if (mask, normalization) == ("bidirectional", "none"):
            progress(cell, member)
        A = matrix(cell.F[member], cell.G[member], cell.feature_map, mask, normalization)
        for approximation, strength, A_hat in approximations(A, noise, ranks, key):
            if not np.isfinite(A_hat).all():
                yield (*key, approximation, strength, *blank[2:])
                continue
            errors = row_errors(A, A_hat, cell.v[member])
            told = errors.tightness[~np.isnan(errors.tightness)]
            yield (
                *key,
                approximation,
                strength,
                float(errors.row_l1_error.max()),
                errors.value_norm_max,
                float(errors.bound.max()),
                float(errors.output_error.max()),
                float(told.max()) if len(told) else None,
                float(np.median(told)) if len(told) else None,
                errors.violations,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--max-N", type=int, required=True, help="largest N to check")
    parser.add_argument("--noise", type=float, nargs="*", default=[], help="relative strengths")
    parser.add_argument("--ranks", type=int, nargs="*", default=[], help="ranks to truncate to")
    parser.add_argument("--input", nargs="+", required=True, help="factors.npz of each cell")
    parser.add_argument("--output", nargs="+", required=True, help="a bound.csv for each cell")
    args = parser.parse_args()
    for factors, target in zip(args.input, args.output, strict=True):
        write_csv(target, HEADER, rows(load_cell(factors), args.max_N, args.noise, args.ranks))


if __name__ == "__main__":
    main()
