"""Summarize a cell's members: count, mean, smallest and largest value of each quantity."""

import argparse

import no_garbage_collection  # noqa: F401

import pandas as pd

from cell_files import CELL_KEYS
from whole_files import intact, whole

KEYS = [*CELL_KEYS, "mask", "normalization"]


def summary(verdicts: pd.DataFrame, spectrum: pd.DataFrame) -> pd.DataFrame:
    """One row per cell, mask, normalization and quantity.

    `resolved` counts the members that have a value. Where it is not all of them, mean, min and
    max stay empty: those of the others alone would mislead.
    """
    quantities = ["exact_rank", "numerical_rank", "effective_rank", "stable_rank"]
    quantities += ["log10_condition", "zero_diagonal"]
    long = pd.concat(
        [
            verdicts.melt(id_vars=KEYS, value_vars=quantities, var_name="quantity"),
            spectrum.melt(id_vars=KEYS, value_vars=["cumulative_at_quarter"], var_name="quantity"),
        ]
    )
    table = (
        long.groupby([*KEYS, "quantity"], sort=True)["value"]
        .agg(members="size", resolved="count", mean="mean", min="min", max="max")
        .reset_index()
    )
    table.loc[table.resolved < table.members, ["mean", "min", "max"]] = float("nan")
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--verdicts", required=True)
    parser.add_argument("--spectrum", required=True)
    parser.add_argument("--output", required=True)
    args = parser.parse_args()
    verdicts, spectrum = (pd.read_csv(intact(x)) for x in (args.verdicts, args.spectrum))
    with whole(args.output) as part:
        summary(verdicts, spectrum).to_csv(part, index=False)


if __name__ == "__main__":
    main()
