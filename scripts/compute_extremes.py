"""Find both ends of the spectra of a cell's causal matrices, beyond double precision and at any N.

Beyond the largest N whose singular values are all computed, it is counted for the first member how
many exceed each of some levels, and sums over all of them are known up to that. They are
sampled too, by stochastic Lanczos quadrature.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from causalrank import inertia, quadrature
from causalrank.ensembles import seed_of
from causalrank.extremes import Extremes, extremes
from causalrank.mixing import NORMALIZATIONS
from causalrank.semiseparable import Semiseparable, semiseparable
from cell_batch import CellStep
from cell_files import LEVELS, Cell, load_cell, progress, save_extremes

ENDS = (
    "log10_sigma_max",
    "log10_sigma_min",
    "log10_condition",
    "log10_frobenius_norm",
    "stable_rank",
    "residual_max",
    "residual_min",
    "rounding_min",
)
SUMS = ("nuclear_norm", "effective_rank")
"""The nuclear norm is over sigma_max."""


def counted(A: Semiseparable, ends: Extremes) -> Iterator[tuple[str, object]]:
    """The counts above LEVELS, (levels,), and the sums that they bound."""
    largest = ends.leading.values[0]
    try:
        numbers = inertia.counts_above(A, LEVELS * largest, ends.leading.exponent)
    except OverflowError as error:
        print(f"not counted: {error}", file=sys.stderr, flush=True)
        return
    yield "counts", numbers
    counts = inertia.Counts(LEVELS, numbers, A.N)
    for name in SUMS:
        estimate = getattr(inertia, name)(counts)
        yield name, estimate.value
        yield f"{name}_error", estimate.error


def sampled(
    A: Semiseparable, ends: Extremes, generator: np.random.Generator
) -> Iterator[tuple[str, object]]:
    """The same by quadrature, with intervals: counts of shape (levels, 2)."""
    measure = quadrature.sampled_measure(A, ends.leading, generator)
    counts = quadrature.counts_above(measure, LEVELS)
    yield "counts_slq", np.array([(count.value, count.error) for count in counts])
    for name in SUMS:
        estimate = getattr(quadrature, name)(measure)
        yield f"{name}_slq", estimate.value
        yield f"{name}_slq_error", estimate.error


def compute(cell: Cell, max_N_dense: int, max_N_sums: int) -> dict[str, np.ndarray]:
    """Arrays of shape (members, normalizations, ...), NaN if not computed.

    softmax has no factors, so nothing is computed for it.
    """
    shape = (len(cell.F), len(NORMALIZATIONS))
    methods = ("", "_error", "_slq", "_slq_error")
    names = (*ENDS, *(name + method for name in SUMS for method in methods))
    found = {name: np.full(shape, np.nan) for name in names}
    found["counts"] = np.full((*shape, len(LEVELS)), np.nan)
    found["counts_slq"] = np.full((*shape, len(LEVELS), 2), np.nan)
    if cell.feature_map == "softmax":
        return found
    sums = max_N_dense < cell.N <= max_N_sums
    for member, (F, G) in enumerate(zip(cell.F, cell.G, strict=True)):
        progress(cell, member)
        generator = np.random.Generator(np.random.PCG64(seed_of("lanczos", *cell.key, member)))
        try:
            unnormalized = semiseparable(F, G)
        except ValueError as error:
            print(f"not for the structured engine: {error}", file=sys.stderr, flush=True)
            continue
        for place, normalization in enumerate(NORMALIZATIONS):
            try:
                A = unnormalized if normalization == "none" else unnormalized.row_normalized()
            except ZeroDivisionError as error:
                print(f"not row-normalized: {error}", file=sys.stderr, flush=True)
                continue
            whole = sums and member == 0
            k = quadrature.LEADING if whole else 1
            ends = extremes(A, generator.standard_normal(cell.N), k)
            values = [(name, getattr(ends, name)) for name in ENDS]
            if whole and ends.log10_sigma_max > -np.inf:
                print(
                    f"sums of the matrix normalized by {normalization}", file=sys.stderr, flush=True
                )
                values += counted(A, ends)
                values += sampled(A, ends, generator)
            for name, value in values:
                found[name][member, place] = value
    return found


STEP = CellStep({"--input": "factors.npz"}, {"--output": "extremes.npz"})


def write(args: argparse.Namespace, factors: Path, target: Path) -> None:
    save_extremes(target, compute(load_cell(factors), args.max_N_dense, args.max_N_sums))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--max-N-dense", type=int, required=True, help="largest N whose singular values are known"
    )
    parser.add_argument(
        "--max-N-sums", type=int, required=True, help="largest N whose sums are bounded"
    )
    STEP.run(parser, write)


if __name__ == "__main__":
    main()
