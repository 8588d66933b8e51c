"""Whether Snakemake's records of results are gone, without which it notices no changed setting."""

from base64 import urlsafe_b64encode
from collections.abc import Iterable
from pathlib import Path

RECORDS = Path(".snakemake", "metadata")
LONGEST = 254
"""Of a name; Snakemake spreads longer ones over folders."""


def lost(outputs: Iterable[str]) -> bool:
    """Whether some of the outputs are there, and none of these has a record."""
    names = {path: urlsafe_b64encode(path.encode()).decode() for path in outputs}
    there = [name for path, name in names.items() if len(name) <= LONGEST and Path(path).exists()]
    return bool(there) and not any((RECORDS / name).exists() for name in there)
