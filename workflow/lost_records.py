"""Whether Snakemake's records of results are gone, without which it notices no changed setting."""

from base64 import urlsafe_b64encode
from collections.abc import Iterable
from pathlib import Path

RECORDS, BEGUN = Path(".snakemake", "metadata"), Path(".snakemake", "incomplete")
LONGEST = 254
"""Of a name; Snakemake spreads longer ones over folders."""


def lost(outputs: Iterable[str]) -> bool:
    """Whether an output is there that has no record, and isn't known to be made again either."""
    names = {path: urlsafe_b64encode(path.encode()).decode() for path in outputs}
    there = [name for path, name in names.items() if len(name) <= LONGEST and Path(path).exists()]
    return any(not ((RECORDS / name).exists() or (BEGUN / name).exists()) for name in there)
