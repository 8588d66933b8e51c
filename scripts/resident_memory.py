"""The memory of this process."""

import resource
import sys


def resident_mb() -> float:
    """The largest resident set so far, in MiB; the system counts it in KiB, macOS in bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)
