"""The columns of the tables by source, dimension and feature map; the first ones are keys."""

COMBINATION_KEYS = ("source", "d", "feature_map")
GROWTH = (
    *(*COMBINATION_KEYS, "member", "decay", "exponent", "exponent_low", "exponent_high"),
    *("variance", "chains", "steps", "critical_decay", "reason"),
)
HORIZON = (
    *(*COMBINATION_KEYS, "member", "normalization", "precision", "epsilon"),
    *("horizon", "searched"),
)
TABLES = {"growth": (GROWTH, 5), "horizon": (HORIZON, 6)}
"""By name: the columns, and how many of them are keys."""
