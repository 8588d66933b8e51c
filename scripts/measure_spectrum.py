"""Read spectrum, conditioning and numerical rank off what was computed of a cell's spectra."""

import argparse
from collections.abc import Iterator
from dataclasses import astuple, fields, replace

import numpy as np

from causalrank.mixing import MASKS, NORMALIZATIONS
from causalrank.precision import PRECISIONS
from causalrank.spectrum import (
    NOTHING,
    Spectrum,
    decay_indices,
    numerical_rank,
    numpy_tolerance,
    summarize,
)
from cell_files import LEVELS, MATRIX_KEYS, Cell, load_cell
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
RESOLVED = 1e-3
"""The relative error of an end of a spectrum above which it stays empty."""


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


def power(log10: float) -> float | None:
    """10^log10, None where no double holds it with all its digits."""
    with np.errstate(over="ignore", under="ignore"):
        value = float(10.0 ** np.float64(log10))
    subnormal = value < np.finfo(float).tiny and log10 > -np.inf
    return None if np.isinf(value) or subnormal else value


def error_min(found: dict[str, float]) -> float:
    """The relative error of the structured sigma_min; infinite where there is none."""
    error = found["residual_min"] + found["rounding_min"]
    return error if np.isfinite(error) else np.inf


def ends(found: dict[str, float]) -> dict[str, float | None]:
    """sigma_min and what rests on it; empty where it is not known to RESOLVED."""
    told = found["residual_max"] <= RESOLVED and error_min(found) <= RESOLVED
    return {
        "sigma_min": power(found["log10_sigma_min"]) if told else None,
        "log10_condition": found["log10_condition"] if told else None,
    }


def from_extremes(found: dict[str, float]) -> Spectrum:
    if not found["residual_max"] <= RESOLVED:
        return replace(NOTHING, frobenius_norm=power(found["log10_frobenius_norm"]))
    largest = power(found["log10_sigma_max"])
    sums = {}
    if largest is not None:
        sums = {name: found[name] * largest for name in ("nuclear_norm", "nuclear_norm_error")}
    return replace(
        NOTHING,
        **ends(found),
        **sums,
        sigma_max=largest,
        frobenius_norm=power(found["log10_frobenius_norm"]),
        stable_rank=found["stable_rank"],
        effective_rank=found["effective_rank"],
        effective_rank_error=found["effective_rank_error"],
    )


def sharper(spectrum: Spectrum, found: dict[str, float], N: int) -> bool:
    """Whether the structured sigma_min is nearer the truth than that of all singular values.

    By Weyl's inequality the latter errs by N eps times the condition number, relatively.
    """
    if spectrum.log10_condition is None:
        return True
    return error_min(found) <= N * np.finfo(float).eps * 10**spectrum.log10_condition


def of_low_rank(spectrum: Spectrum) -> Spectrum:
    """That of F G^T with D < N columns: its smallest singular value is an exact zero."""
    if spectrum.sigma_max == 0.0:
        return spectrum
    return replace(spectrum, sigma_min=0.0, log10_condition=float("inf"))


def spectrum_rows(
    cell: Cell, sigma: np.ndarray, extremes: dict[str, np.ndarray]
) -> Iterator[tuple]:
    """A row per matrix: all singular values where they are known, with the structured ends."""
    for key, place in keyed(cell):
        values, found = sigma[place], structured(extremes, place)
        errors = [found.get(name) for name in ERRORS]
        if not np.isnan(values).any():
            spectrum, method = summarize(values), "gesdd"
            if MASKS[place[1]] == "bidirectional" and cell.is_low_rank:
                spectrum, method = of_low_rank(spectrum), "qr, gesdd"
            if found and spectrum.sigma_max and sharper(spectrum, found, cell.N):
                spectrum, method = replace(spectrum, **ends(found)), "gesdd, lanczos"
        elif found:
            sums = not np.isnan(found["effective_rank"])
            spectrum, method = from_extremes(found), "lanczos, inertia" if sums else "lanczos"
        else:
            spectrum, method = NOTHING, ""
        yield (*key, *astuple(spectrum), method, *errors)


def against_dense(N: int, sigma: np.ndarray, found: dict[str, float]) -> tuple:
    """What a dense method says beside the structured one; differences are relative.

    By Weyl's inequality a dense sigma_min errs by N eps times the condition number, relatively: the
    allowance. From one on, the dense value says nothing.
    """
    if np.isnan(sigma).any() or sigma[0] == 0.0:
        return None, ends(found)["log10_condition"], None, None, None
    with np.errstate(divide="ignore"):
        logs = np.log10(sigma[[0, -1]])
    allowance = power(found["log10_condition"] + np.log10(N * np.finfo(float).eps))
    told = allowance is not None and allowance < 1.0
    other = np.array([found["log10_sigma_max"], found["log10_sigma_min"]])
    with np.errstate(invalid="ignore", over="ignore"):
        difference = np.abs(np.expm1(np.log(10.0) * (logs - other)))
    smallest = (float(difference[1]), allowance) if told else (None, None)
    structured_condition = ends(found)["log10_condition"]
    return float(logs[0] - logs[1]), structured_condition, float(difference[0]), *smallest


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
        yield (*key, *against_dense(cell.N, sigma[place], found), *nuclear, *effective)


def rank_above(cell: Cell, place: tuple, sigma: np.ndarray, counts: np.ndarray, level: float):
    """How many singular values exceed a share of the largest; None if nobody knows."""
    values = sigma[place]
    if not np.isnan(values).any():
        return numerical_rank(values, level)
    member, mask, normalization = place
    counted = counts[member, normalization, np.isclose(LEVELS, level, rtol=1e-9)]
    if MASKS[mask] != "causal" or counted.size == 0 or np.isnan(counted[0]):
        return None
    return int(counted[0])


def numerical_rank_rows(
    cell: Cell, sigma: dict[str, np.ndarray], counts: np.ndarray
) -> Iterator[tuple]:
    """From all singular values, or from counts, which stand for the matrix in float64."""
    for key, place in keyed(cell):
        for precision, fmt in PRECISIONS.items():
            known = counts if precision == "float64" else np.full_like(counts, np.nan)
            for name in TOLERANCES:
                level = numpy_tolerance(cell.N, fmt.epsilon) if name == "numpy" else float(name)
                rank = None
                if level is not None:
                    rank = rank_above(cell, place, sigma[precision], known, level)
                yield (*key, precision, name, rank)


def decay_rows(cell: Cell, sigma: np.ndarray) -> Iterator[tuple]:
    """sigma_j / sigma_1 and (sigma_1 + ... + sigma_j) / sum of the first member, j from 1 to N."""
    for key, place in keyed(cell):
        values = sigma[place]
        if place[0] == 0 and not np.isnan(values).any() and values[0] > 0:
            cumulative = np.cumsum(values) / values.sum()
            for j in decay_indices(cell.N):
                yield (*key, int(j), float(values[j - 1] / values[0]), float(cumulative[j - 1]))


def density_rows(cell: Cell, sigma: np.ndarray, extremes: dict[str, np.ndarray]) -> Iterator[tuple]:
    """How many singular values of the first member exceed each level, and by quadrature."""
    for key, place in keyed(cell):
        member, mask, normalization = place
        if member > 0:
            continue
        sampled = extremes["counts_slq"][member, normalization]
        if MASKS[mask] != "causal":
            sampled = np.full_like(sampled, np.nan)
        for level, estimate in zip(LEVELS, sampled, strict=True):
            count = rank_above(cell, place, sigma, extremes["counts"], level)
            if count is not None:
                yield (*key, float(level), count, *map(float, estimate))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--input", nargs="+", required=True, help="factors.npz of each cell")
    parser.add_argument(
        "--singular-values", nargs="+", required=True, help="singular_values.npz of each cell"
    )
    parser.add_argument("--extremes", nargs="+", required=True, help="extremes.npz of each cell")
    parser.add_argument("--spectrum", nargs="+", required=True, help="a spectrum.csv each")
    parser.add_argument("--numerical-rank", nargs="+", required=True, help="a CSV each")
    parser.add_argument("--decay", nargs="+", required=True, help="a singular_values.csv each")
    parser.add_argument("--density", nargs="+", required=True, help="a spectral_density.csv each")
    parser.add_argument("--methods", nargs="+", required=True, help="a methods.csv each")
    args = parser.parse_args()
    inputs = zip(args.input, args.singular_values, args.extremes, strict=True)
    outputs = zip(
        args.spectrum, args.numerical_rank, args.decay, args.density, args.methods, strict=True
    )
    for (factors, values, ends_of), targets in zip(inputs, outputs, strict=True):
        cell, sigma, extremes = load_cell(factors), load_arrays(values), load_arrays(ends_of)
        spectrum, ranks, decay, density, methods = targets
        double = sigma["float64"]
        write_csv(spectrum, SPECTRUM_HEADER, spectrum_rows(cell, double, extremes))
        write_csv(
            ranks, NUMERICAL_RANK_HEADER, numerical_rank_rows(cell, sigma, extremes["counts"])
        )
        write_csv(decay, DECAY_HEADER, decay_rows(cell, double))
        write_csv(density, DENSITY_HEADER, density_rows(cell, double, extremes))
        write_csv(methods, METHODS_HEADER, method_rows(cell, double, extremes))


if __name__ == "__main__":
    main()
