"""Find both ends of the spectra of a cell's causal matrices, beyond double precision and at any N.

Beyond the largest N whose singular values are all computed, the sums over them are estimated too.
"""

import argparse
import sys

import numpy as np

from causalrank.ensembles import seed_of
from causalrank.extremes import Extremes, extremes
from causalrank.mixing import NORMALIZATIONS
from causalrank.quadrature import counts_above, effective_rank, nuclear_norm, spectral_measure
from causalrank.semiseparable import Semiseparable, semiseparable
from cell_files import LEVELS, Cell, load_cell, progress
from whole_files import save_arrays

LEADING, PROBES, STEPS = 8, 8, 60
ENDS = (
    "log10_sigma_max",
    "log10_sigma_min",
    "log10_condition",
    "log10_frobenius_norm",
    "stable_rank",
    "residual_max",
    "residual_min",
)
SUMS = ("nuclear_norm", "nuclear_norm_error", "effective_rank", "effective_rank_error")


def estimated_sums(
    A: Semiseparable, ends: Extremes, generator: np.random.Generator
) -> tuple[dict[str, float], np.ndarray]:
    """Nuclear norm relative to sigma_max, effective rank, and counts above LEVELS: (levels, 2)."""
    probes = generator.choice([-1.0, 1.0], (A.N, PROBES))
    measure = spectral_measure(A.product, A.transposed_product, ends.leading, probes, STEPS)
    nuclear, effective = nuclear_norm(measure), effective_rank(measure)
    counts = counts_above(measure, LEVELS)
    return {
        "nuclear_norm": nuclear.value / measure.scale,
        "nuclear_norm_error": nuclear.error / measure.scale,
        "effective_rank": effective.value,
        "effective_rank_error": effective.error,
    }, np.array([(count.value, count.error) for count in counts])


def compute(cell: Cell, max_N_dense: int, max_N_sums: int) -> dict[str, np.ndarray]:
    """Arrays of shape (members, normalizations), NaN if not computed, and `counts` of a member.

    `counts` has shape (normalizations, levels, 2): of the first member, with errors. softmax has
    no factors, so nothing is computed for it.
    """
    shape = (len(cell.F), len(NORMALIZATIONS))
    found = {name: np.full(shape, np.nan) for name in (*ENDS, *SUMS)}
    found["counts"] = np.full((len(NORMALIZATIONS), len(LEVELS), 2), np.nan)
    if cell.feature_map == "softmax":
        return found
    sums = max_N_dense < cell.N <= max_N_sums
    for member, (F, G) in enumerate(zip(cell.F, cell.G, strict=True)):
        progress(cell, member)
        generator = np.random.Generator(np.random.PCG64(seed_of("lanczos", *cell.key, member)))
        unnormalized = semiseparable(F, G)
        for place, normalization in enumerate(NORMALIZATIONS):
            A = unnormalized if normalization == "none" else unnormalized.row_normalized()
            ends = extremes(A, generator.standard_normal(cell.N), LEADING if sums else 1)
            for name in ENDS:
                found[name][member, place] = getattr(ends, name)
            if sums and ends.log10_sigma_max > -np.inf:
                print(f"sums of the {normalization} matrix", file=sys.stderr, flush=True)
                values, counts = estimated_sums(A, ends, generator)
                for name, value in values.items():
                    found[name][member, place] = value
                if member == 0:
                    found["counts"][place] = counts
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--max-N-dense", type=int, required=True, help="largest N whose singular values are known"
    )
    parser.add_argument(
        "--max-N-sums", type=int, required=True, help="largest N whose sums are estimated"
    )
    parser.add_argument("--input", nargs="+", required=True, help="factors.npz of each cell")
    parser.add_argument("--output", nargs="+", required=True, help="an .npz for each cell")
    args = parser.parse_args()
    for source, target in zip(args.input, args.output, strict=True):
        save_arrays(target, **compute(load_cell(source), args.max_N_dense, args.max_N_sums))


if __name__ == "__main__":
    main()
