"""Put the exact, numerical and effective rank of each matrix side by side, and why they differ."""

import argparse

import no_garbage_collection  # noqa: F401

import numpy as np
import pandas as pd

from causalrank.spectrum import numpy_tolerance
from causalrank.verdict import why
from cell_files import MATRIX_KEYS
from whole_files import intact, whole


def verdicts(rank: pd.DataFrame, numerical: pd.DataFrame, spectrum: pd.DataFrame) -> pd.DataFrame:
    keys = list(MATRIX_KEYS)
    chosen = numerical.query("precision == 'float64' and tolerance == 'numpy'")
    table = rank[[*keys, "zero_diagonal", "exact_rank", "certificate"]]
    table = table.merge(chosen[[*keys, "numerical_rank"]], on=keys, validate="one_to_one")
    columns = ["effective_rank", "stable_rank", "log10_condition"]
    table = table.merge(spectrum[[*keys, *columns]], on=keys, validate="one_to_one")
    table["reason"] = [
        why(
            None if pd.isna(row.exact_rank) else row.exact_rank,
            None if pd.isna(row.numerical_rank) else row.numerical_rank,
            numpy_tolerance(row.N, np.finfo(float).eps),
        )
        for row in table.itertuples()
    ]
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rank", required=True)
    parser.add_argument("--numerical-rank", required=True)
    parser.add_argument("--spectrum", required=True)
    parser.add_argument("--output", required=True)
    args = parser.parse_args()
    whole_numbers = {"exact_rank": "Int64", "numerical_rank": "Int64"}
    tables = [
        pd.read_csv(intact(path), dtype=whole_numbers)
        for path in (args.rank, args.numerical_rank, args.spectrum)
    ]
    with whole(args.output) as part:
        verdicts(*tables).to_csv(part, index=False)


if __name__ == "__main__":
    main()
