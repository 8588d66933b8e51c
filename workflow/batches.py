"""Which cells share a job: small ones, in a bounded number of batches; large ones are alone."""

import hashlib
from collections.abc import Collection, Iterable, Mapping
from typing import Protocol

LEAST_SECONDS = 0.05
"""What a cell takes over all its steps, however small it is: measured of ten thousand."""
STARTING_SECONDS = 4.5
"""What a batch's seven jobs take before they do anything: measured, 0.3 to 0.7 s each of Python and
its imports, those that scipy is needed for included, and 0.1 s each of Snakemake."""
BATCH_SECONDS = 10 * STARTING_SECONDS
"""What a batch of several should take at least, so that a tenth of it at most is its start; a cell
that takes as long is a batch of its own, while there are few of these."""
ALONE, SHARED = 28, 32
"""At most so many batches of one cell and, but for one a source that is read, of several. This
bounds what a cluster is sent, a batch being one submission there, and the graph: 420 jobs of these
and less than 80 of the rest."""

LETTERS = 40_000
"""Of the cells that a job is told of, about: beyond 131,072 Linux refuses a command. Twice as many
are in a batch at most, for a power of two, and a third more by the chance of a hash."""


class Key(Protocol):
    source: str
    path: str


def plan(
    seconds: Mapping[Key, float],
    drawn: Collection[str] = (),
    alone: int = ALONE,
    shared: int = SHARED,
) -> dict[str, list[Key]]:
    """The batches by name, each with its cells, sorted, from the estimated seconds of every cell.

    At most `alone` have one cell for its size, and beyond one a source, `shared` have several, or
    as many more as the names of cells need.

    A cell alone gives the batch its name. The others are spread over a power of two of batches by a
    hash of their identity, so that an added cell moves no other, most often: those of all `drawn`
    sources together, those of any other source by themselves, or they would wait for its encoding.
    """
    limit = BATCH_SECONDS
    while sum(cost > limit for cost in seconds.values()) > alone:
        limit *= 2
    batches = {key.path: [key] for key, cost in seconds.items() if cost > limit}
    small = {key: LEAST_SECONDS + cost for key, cost in seconds.items() if cost <= limit}
    target = max(BATCH_SECONDS, sum(small.values()) / shared)
    pools: dict[str, dict[Key, float]] = {}
    for key, cost in small.items():
        pool = "drawn" if key.source in drawn else f"source~{key.source}"
        pools.setdefault(pool, {})[key] = cost
    for pool, costs in pools.items():
        letters = sum(len(key.path) + 1 for key in costs)
        wanted = max(sum(costs.values()) / target, letters / LETTERS)
        number = 1 << max(0, int(wanted).bit_length() - 1)
        for key in costs:
            name = f"{pool}/shared~{_hash(key.path) % number:02d}"
            batches.setdefault(name, []).append(key)
    return {name: sorted(batches[name]) for name in sorted(batches)}


def _hash(path: str) -> int:
    return int.from_bytes(hashlib.sha256(path.encode()).digest()[:8], "big")


def digest(folders: Iterable[str]) -> str:
    """What the steps compare a batch's cells with, in its manifests."""
    return hashlib.sha256("\n".join(folders).encode()).hexdigest()
