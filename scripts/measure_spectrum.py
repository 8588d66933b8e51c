"""Read spectrum, conditioning and numerical rank off what was computed of a cell's spectra."""

import argparse
from collections.abc import Iterator
from dataclasses import astuple, fields
from pathlib import Path

import numpy as np

from causalrank.methods import against_dense, best, power
from causalrank.mixing import MASKS, NORMALIZATIONS
from causalrank.precision import PRECISIONS
from causalrank.spectrum import Spectrum, decay_indices, numerical_rank, numpy_tolerance
from cell_batch import CellStep
from cell_files import LEVELS, MATRIX_KEYS, Cell, load_cell, load_extremes
from whole_files import load_arrays, write_csv

TOLERANCES = ("numpy", "1e-4", "1e-6", "1e-8", "1e-10", "1e-12")
QUANTITIES = tuple(field.name for field in fields(Spectrum))
ERRORS = ("residual_max", "residual_min", "rounding_min")
SPECTRUM_HEADER = (*MATRIX_KEYS, *QUANTITIES, "method", *ERRORS)
NUMERICAL_RANK_HEADER = (*MATRIX_KEYS, "precision", "tolerance", "numerical_rank")
DECAY_HEADER = (*MATRIX_KEYS, "index", "sigma_relative", "cumulative")
DENSITY_HEADER = (*MATRIX_KEYS, "level", "count", "count_slq", "count_slq_error")
METHODS_HEADER = (
    *MATRIX_KEYS,
    "log10_condition_dense",
    "log10_condition_structured",
    "sigma_max_difference",
    "sigma_min_difference",
    "sigma_min_allowance",
    "nuclear_norm_slq",
    "nuclear_norm_slq_error",
    "effective_rank_slq",
    "effective_rank_slq_error",
)


def keyed(cell: Cell) -> Iterator[tuple[tuple, tuple[int, int, int]]]:
    """The table key of every matrix, and its place in an array of singular values."""
    for member, mask, normalization in cell.matrices():
        place = member, MASKS.index(mask), NORMALIZATIONS.index(normalization)
        yield (*cell.key, member, mask, normalization), place


def structured(extremes: dict[str, np.ndarray], place: tuple[int, int, int]) -> dict[str, float]:
    """What the structured engine found for a matrix; {} if it is none of its kind."""
    member, mask, normalization = place
    if MASKS[mask] != "causal" or np.isnan(extremes["log10_sigma_max"][member, normalization]):
        return {}
    return {
        name: float(values[member, normalization])
        for name, values in extremes.items()
        if values.ndim == 2
    }


def spectrum_rows(
    cell: Cell, sigma: np.ndarray, extremes: dict[str, np.ndarray]
) -> Iterator[tuple]:
    """A row per matrix: all singular values where they are known, with the structured ends."""
    for key, place in keyed(cell):
        values, found = sigma[place], structured(extremes, place)
        errors = [found.get(name) for name in ERRORS]
        low_rank = MASKS[place[1]] == "bidirectional" and cell.is_low_rank
        spectrum, method = best(values, found, low_rank)
        yield (*key, *astuple(spectrum), method, *errors)


def method_rows(cell: Cell, sigma: np.ndarray, extremes: dict[str, np.ndarray]) -> Iterator[tuple]:
    """The methods side by side, where more than one was applied."""
    for key, place in keyed(cell):
        found = structured(extremes, place)
        if not found:
            yield (*key, *[None] * (len(METHODS_HEADER) - len(key)))
            continue
        largest = power(found["log10_sigma_max"])
        nuclear = [found[f"nuclear_norm_slq{x}"] * (largest or np.nan) for x in ("", "_error")]
        effective = [found[f"effective_rank_slq{x}"] for x in ("", "_error")]
        yield (*key, *against_dense(sigma[place], found), *nuclear, *effective)


def ranks_above(
    place: tuple[int, int, int], sigma: np.ndarray, counts: np.ndarray, levels: np.ndarray
) -> list[int | None]:
    """How many singular values exceed shares of the largest; None where nobody knows."""
    values = sigma[place]
    if not np.isnan(values).any():
        return numerical_rank(values, levels).tolist()
    member, mask, normalization = place
    if MASKS[mask] != "causal":
        return [None] * len(levels)
    counted = counts[member, normalization]
    found = [counted[np.isclose(LEVELS, level, rtol=1e-9)] for level in levels]
    return [int(x[0]) if x.size and not np.isnan(x[0]) else None for x in found]


def tolerances(N: int, epsilon: float) -> dict[str, float]:
    """TOLERANCES that are below one, in numbers."""
    numbers = {name: float(name) for name in TOLERANCES if name != "numpy"}
    tolerance = numpy_tolerance(N, epsilon)
    return numbers if tolerance is None else numbers | {"numpy": tolerance}


def numerical_rank_rows(
    cell: Cell, sigma: dict[str, np.ndarray], counts: np.ndarray
) -> Iterator[tuple]:
    """From all singular values, or from counts, which stand for the matrix in float64."""
    unknown = np.full_like(counts, np.nan)
    levels = {name: tolerances(cell.N, format.epsilon) for name, format in PRECISIONS.items()}
    for key, place in keyed(cell):
        for precision, numbers in levels.items():
            known = counts if precision == "float64" else unknown
            found = ranks_above(place, sigma[precision], known, np.array([*numbers.values()]))
            ranks = dict(zip(numbers, found, strict=True))
            for name in TOLERANCES:
                yield (*key, precision, name, ranks.get(name))


def decay_rows(cell: Cell, sigma: np.ndarray) -> Iterator[tuple]:
    """sigma_j / sigma_1 and (sigma_1 + ... + sigma_j) / sum of the first member, j from 1 to N."""
    indices = decay_indices(cell.N)
    for key, place in keyed(cell):
        values = sigma[place]
        if place[0] == 0 and not np.isnan(values).any() and values[0] > 0:
            relative = (values / values[0])[indices - 1].tolist()
            cumulative = (np.cumsum(values) / values.sum())[indices - 1].tolist()
            for row in zip(indices.tolist(), relative, cumulative, strict=True):
                yield (*key, *row)


def density_rows(cell: Cell, sigma: np.ndarray, extremes: dict[str, np.ndarray]) -> Iterator[tuple]:
    """How many singular values of the first member exceed each level, and by quadrature."""
    for key, place in keyed(cell):
        member, mask, normalization = place
        if member > 0:
            continue
        sampled = extremes["counts_slq"][member, normalization]
        if MASKS[mask] != "causal":
            sampled = np.full_like(sampled, np.nan)
        counts = ranks_above(place, sigma, extremes["counts"], LEVELS)
        for level, count, estimate in zip(LEVELS.tolist(), counts, sampled.tolist(), strict=True):
            if count is not None:
                yield (*key, level, count, *estimate)


STEP = CellStep(
    {
        "--input": "factors.npz",
        "--singular-values": "singular_values.npz",
        "--extremes": "extremes.npz",
    },
    {
        "--spectrum": "spectrum.csv",
        "--numerical-rank": "numerical_rank.csv",
        "--decay": "singular_values.csv",
        "--density": "spectral_density.csv",
        "--methods": "methods.csv",
    },
)


def measure(
    args: argparse.Namespace, factors: Path, values: Path, ends: Path, *targets: Path
) -> None:
    cell, sigma, extremes = load_cell(factors), load_arrays(values), load_extremes(ends)
    spectrum, ranks, decay, density, methods = targets
    double = sigma["float64"]
    write_csv(spectrum, SPECTRUM_HEADER, spectrum_rows(cell, double, extremes))
    write_csv(ranks, NUMERICAL_RANK_HEADER, numerical_rank_rows(cell, sigma, extremes["counts"]))
    write_csv(decay, DECAY_HEADER, decay_rows(cell, double))
    write_csv(density, DENSITY_HEADER, density_rows(cell, double, extremes))
    write_csv(methods, METHODS_HEADER, method_rows(cell, double, extremes))


def main() -> None:
    STEP.run(argparse.ArgumentParser(description=__doc__), measure)


if __name__ == "__main__":
    main()
