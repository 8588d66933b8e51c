"""Find from which length on a source's causal matrices are numerically singular, by precision.

A drawn source is drawn token by token, as long as is asked for; of any other, its own tokens.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from causalrank.ensembles import seed_of
from causalrank.feature_maps import FEATURE_MAPS
from causalrank.horizon import Horizon, horizons, log10_condition
from causalrank.mixing import NORMALIZATIONS
from causalrank.precision import FORMATS
from causalrank.semiseparable import Semiseparable, semiseparable
from combination_tables import COMBINATION_KEYS
from combination_tables import HORIZON as HEADER
from source_step import Source, SourceStep, add_members
from whole_files import fail, write_csv

STEP = SourceStep(COMBINATION_KEYS, list(FEATURE_MAPS), "horizon.csv")


def drawn(source: str, d: int, scale: float, member: int, longest: int) -> np.ndarray:
    """q, k of shape (2, longest, d), N(0, scale^2): its first tokens do not depend on `longest`."""
    generator = np.random.Generator(np.random.PCG64(seed_of("horizon", source, d, member)))
    return scale * generator.standard_normal((longest, 2, d)).transpose(1, 0, 2)


def pairs(
    args: argparse.Namespace, file: Source, source: str, d: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """q, k of shape (tokens, d) of each member. Raises ValueError for a file of another d."""
    if args.scale is not None:
        for member in range(args.members):
            yield tuple(drawn(source, d, args.scale, member, args.longest))
        return
    arrays = file()
    if arrays["q"].shape[2] != d:
        raise ValueError(f"the source has d = {arrays['q'].shape[2]}")
    yield from zip(arrays["q"], arrays["k"], strict=True)


def searchable(A: Semiseparable) -> int:
    """How many tokens come before one whose diagonal entry cancels."""
    lost = np.flatnonzero(A.cancelling & ~A.zeros)
    return int(lost[0]) if lost.size else A.N


def searched(F: np.ndarray, G: np.ndarray, normalization: str) -> dict[str, Horizon]:
    """The horizons by precision; nothing is searched where the rows span too much."""
    try:
        A = semiseparable(F, G)
    except ValueError as error:
        print(f"not searched: {error}", file=sys.stderr, flush=True)
        return dict.fromkeys(FORMATS, Horizon(None, 0))
    longest = searchable(A)
    if normalization == "row" and longest:
        A = A.leading(longest).row_normalized()
    return horizons(lambda N: log10_condition(A.leading(N)), longest)


def rows(args: argparse.Namespace, file: Source, key: tuple[str, int, str]) -> Iterator[tuple]:
    """A horizon beyond what was searched stays empty; a pivot that cancels ends the search."""
    phi = FEATURE_MAPS[key[2]]
    for member, (q, k) in enumerate(pairs(args, file, *key[:2])):
        print(f"member {member}", file=sys.stderr, flush=True)
        F, G = phi(q[: args.longest]), phi(k[: args.longest])
        for normalization in NORMALIZATIONS:
            for precision, horizon in searched(F, G, normalization).items():
                matrix = (*key, member, normalization, precision)
                yield (*matrix, FORMATS[precision].epsilon, horizon.N, horizon.searched)


def write(
    args: argparse.Namespace, source: Source, key: tuple[str, int, str], target: Path
) -> None:
    if args.scale is not None and args.members is None:
        fail("--scale needs --members")
    try:
        write_csv(target, HEADER, rows(args, source, key))
    except (ValueError, ArithmeticError) as error:
        name = "source {}, d = {}, feature_map {}".format(*key)
        fail(f"horizon of {name}: {error}; change the source or take it out of the grid's cells")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--longest", type=int, required=True, help="tokens to search")
    add_members(parser)
    STEP.run(parser, write)


if __name__ == "__main__":
    main()
