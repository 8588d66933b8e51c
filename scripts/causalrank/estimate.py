"""A number that is known up to an interval."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Estimate:
    """A value, and how far from it the truth may be; what the interval promises, its maker says."""

    value: float
    error: float
