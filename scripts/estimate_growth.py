"""Estimate at what rate the inverse of a source's causal matrices grows with N.

Of a drawn source, from independent chains; of any other, along the tokens of each member.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from causalrank.ensembles import seed_of
from causalrank.feature_maps import FEATURE_MAPS, FeatureMap
from causalrank.growth import PAIRED, Exponent, Rows, along_sequence, top_exponent, with_decay
from combination_tables import COMBINATION_KEYS
from combination_tables import GROWTH as HEADER
from source_step import Source, SourceStep
from whole_files import fail, write_csv

STEP = SourceStep(COMBINATION_KEYS, list(FEATURE_MAPS), "growth.csv")
CHAINS = 32 * PAIRED
STEPS = 512
"""With 512 chains, half an interval is 0.5 % of the exponent of elu+1 at d = 64, in 3 seconds."""


def drawn(source: str, d: int, scale: float, phi: FeatureMap) -> Iterator[Rows]:
    """phi(q), phi(k) of shape (CHAINS, D), a token a time, q and k being N(0, scale^2).

    As in the ensembles, all feature maps see the same draws.
    """
    generator = np.random.Generator(np.random.PCG64(seed_of("growth", source, d)))
    while True:
        q, k = scale * generator.standard_normal((2, CHAINS, d))
        yield phi(q), phi(k)


def exponents(
    source: str, d: int, phi: FeatureMap, scale: float | None, file: Source
) -> Iterator[tuple[int | None, int, int, Exponent]]:
    """(member, chains, tokens of each, exponent): one of a drawn source, else one a member.

    Raises ValueError when the file has another d, OverflowError when a feature leaves float64.
    """
    if scale is not None:
        yield None, CHAINS, STEPS, top_exponent(drawn(source, d, scale, phi), STEPS)
        return
    arrays = file()
    q, k = arrays["q"], arrays["k"]
    if q.shape[2] != d:
        raise ValueError(f"the source has d = {q.shape[2]}")
    for member in range(len(q)):
        yield member, 1, q.shape[1], along_sequence(phi(q[member]), phi(k[member]))


def write(
    args: argparse.Namespace, source: Source, key: tuple[str, int, str], target: Path
) -> None:
    phi = FEATURE_MAPS[key[2]]
    table = []
    try:
        for member, chains, tokens, free in exponents(*key[:2], phi, args.scale, source):
            critical = float(np.exp(-free.value))
            for decay in (1.0, *args.decays):
                e = with_decay(free, decay)
                values = (e.value, e.low, e.high, e.variance, chains, tokens, critical, e.reason)
                table.append((*key, member, decay, *values))
    except (ValueError, OverflowError) as error:
        name = "source {}, d = {}, feature_map {}".format(*key)
        fail(f"growth of {name}: {error}; change the source or take it out of the grid's cells")
    write_csv(target, HEADER, table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--decays", nargs="*", type=float, default=[], help="factors per token")
    STEP.run(parser, write)


if __name__ == "__main__":
    main()
