"""Average a model's spectra over its text windows: one row per layer, head, cell and matrix."""

import argparse

import no_garbage_collection  # noqa: F401

import pandas as pd

from whole_files import intact, whole

KEYS = ["source", "N", "d", "feature_map", "mask", "normalization", "layer", "head"]
QUANTITIES = ["stable_rank", "effective_rank", "cumulative_at_quarter"]


def heads(spectrum: pd.DataFrame, members: pd.DataFrame) -> pd.DataFrame:
    """`members` says layer, head and window of each (source, member).

    Where a window has no value, the mean stays empty.
    """
    table = spectrum.merge(members, on=["source", "member"], validate="many_to_one")
    return table.groupby(KEYS, sort=True)[QUANTITIES].mean(skipna=False).reset_index()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spectrum", required=True)
    parser.add_argument("--source", nargs="+", required=True, help="names of the models")
    parser.add_argument("--members", nargs="+", required=True, help="the members.csv of each")
    parser.add_argument("--output", required=True)
    args = parser.parse_args()
    members = pd.concat(
        pd.read_csv(intact(path)).assign(source=name)
        for name, path in zip(args.source, args.members, strict=True)
    )
    with whole(args.output) as part:
        heads(pd.read_csv(intact(args.spectrum)), members).to_csv(part, index=False)


if __name__ == "__main__":
    main()
