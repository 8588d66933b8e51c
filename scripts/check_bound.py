"""Check the bounds on the output error for approximations of a cell's mixing matrices."""

import argparse
from collections.abc import Iterator
from itertools import count
from math import gcd
from pathlib import Path

import numpy as np

from causalrank.approximations import APPROXIMATIONS, approximate
from causalrank.bound import original, row_errors, summarized
from causalrank.ensembles import seed_of
from causalrank.head import Head
from cell_batch import CellStep
from cell_files import MATRIX_KEYS, Cell, load_cell, progress
from ladders import Ladders, add_ladders, ladders_of
from whole_files import write_csv

MEASURED = (
    *("row_l1_error_max", "value_norm_max", "bound_max", "output_error_max"),
    *("tightness_max", "tightness_median", "violations"),
    *("output_error_median", "output_error_q95"),
    *("entrywise_bound", "spectral_bound", "entrywise_violations", "spectral_violations"),
    *("output_over_value", "entrywise_over_value", "spectral_over_value"),
    *("frobenius_error", "spectral_error"),
    *("relative_frobenius_error", "relative_output_error"),
)
HEADER = (*MATRIX_KEYS, "approximation", "strength", *MEASURED, "exists", "reason")
BEYOND = "beyond the study's bound_N or bound_members"
NO_VALUES = "the source has no values"
NONE_ASKED_FOR = "the study asks for no approximation"


def generator_of(*identity: str | int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(seed_of(*identity)))


def matrix_rows(head: Head, v: np.ndarray, key: tuple, ladders: Ladders) -> Iterator[tuple]:
    """One row for each approximation of one matrix, and for each that does not exist."""
    exact = original(head.A, v)
    start = generator_of("start", *key).standard_normal(len(v))
    for name, ladder in ladders.items():
        draws = APPROXIMATIONS[name].draws
        for strength in ladder:
            generator = generator_of(name, *key, str(strength)) if draws else None
            found, reason = approximate(name, head, strength, generator)
            fields = [None] * len(MEASURED)
            if found is not None:
                against = exact
                if APPROXIMATIONS[name].values:
                    against = original(head.A, APPROXIMATIONS[name].values(found - head.A, v))
                summary = summarized(against, row_errors(against, found, start))
                fields = [summary[column] for column in MEASURED]
            yield (*key, name, strength, *fields, int(found is not None), reason)


def spread(members: int, wanted: int) -> set[int]:
    """At most `wanted` of the members, by a stride of at least members / wanted.

    The stride has no divisor in common with their number, so that of the members of a model,
    windows x layers x heads, no two need have the same head, nor the same layer.
    """
    if wanted >= members:
        return {*range(members)}
    stride = next(s for s in count(-(-members // wanted)) if gcd(s, members) == 1)
    return {i * stride % members for i in range(wanted)}


def rows(cell: Cell, max_N: int, members: int, ladders: Ladders) -> Iterator[tuple]:
    """The rows of every matrix; a single one, empty, where none are asked for or there is no v."""
    chosen = spread(len(cell.F), members)
    largest_rank = max(ladders.get("truncation") or [0])
    for member, mask, normalization in cell.matrices():
        key = (*cell.key, member, mask, normalization)
        reason = ""
        if cell.N > max_N or member not in chosen:
            reason = BEYOND
        elif cell.v is None:
            reason = NO_VALUES
        elif not any(ladders.values()):
            reason = NONE_ASKED_FOR
        if reason:
            yield (*key, "", "", *(None,) * (len(MEASURED) + 1), reason)
            continue
        if (mask, normalization) == ("bidirectional", "none"):
            progress(cell, member)
        F, G = cell.F[member], cell.G[member]
        head = Head(F, G, cell.feature_map, mask, normalization, largest_rank)
        yield from matrix_rows(head, cell.v[member], key, ladders)


STEP = CellStep({"--input": "factors.npz"}, {"--output": "bound.csv"})


def check(args: argparse.Namespace, factors: Path, target: Path) -> None:
    limits = args.max_N, args.members
    write_csv(target, HEADER, rows(load_cell(factors), *limits, ladders_of(args)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--max-N", type=int, required=True, help="largest N to check")
    parser.add_argument("--members", type=int, required=True, help="how many, spread out")
    add_ladders(parser)
    STEP.run(parser, check)


if __name__ == "__main__":
    main()
