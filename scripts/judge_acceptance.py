"""Judge approximations of layers by the declared criterion, and keep a record of declarations.

Nothing else could make the record again, so there are two of it: one that is damaged or lost is put
back from the other.
"""

import argparse
import hashlib
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict, fields
from pathlib import Path

import no_garbage_collection  # noqa: F401

import pandas as pd

from causalrank.acceptance import Criterion, judgement
from causalrank.intervals import mean_interval
from whole_files import fail, intact, is_damaged, whole, write_csv

KEYS = ["d_model", "N", "heads", "width", "parameters", "score_scale", "mask", "method", "strength"]
MEASURED = ["output_error", "contrast_kept"]
ASKED = tuple(field.name for field in fields(Criterion))
HISTORY_HEADER = ("declaration", *ASKED, "changed", "measurements")


def judged(table: pd.DataFrame, ask: Criterion, declaration: int) -> Iterator[dict]:
    """One row per layer, mask and approximation; means and intervals are over seeds."""
    table = table[table.method != "exact"]
    for key, rows in table.groupby(KEYS, sort=False, dropna=False):
        found = judgement(
            *(rows[name].to_numpy() for name in ("rank_before", "rank_after", *MEASURED)), ask
        )
        row = dict(zip(KEYS, key, strict=True)) | {"seeds": len(rows)}
        for name in ("rank_before", "rank_after"):
            row |= {f"{name}_min": rows[name].min(), f"{name}_max": rows[name].max()}
        share = rows.rank_after / rows.rank_before
        row |= {"rank_share_min": share.min(), "rank_share_max": share.max()}
        for name in MEASURED:
            mean, half = mean_interval(rows[name].to_numpy())
            row |= {name: float(mean), f"{name}_interval": float(half)}
            row |= {f"{name}_min": rows[name].min(), f"{name}_max": rows[name].max()}
        row |= {"rank_kept": found.rank_kept, "tolerance_met": found.tolerance_met}
        row |= {"box": found.box, "declaration": declaration}
        yield row | {f"asked_{name}": value for name, value in asdict(ask).items()}


def digest(table: pd.DataFrame) -> str:
    """A digest of what was measured, whatever threshold the ranks have."""
    text = table[[*KEYS, "seed", *MEASURED]].to_csv(index=False, lineterminator="\n")
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def recorded(paths: Iterable[Path]) -> list[list[str]]:
    """The declarations of the longest record that is as it was written, if there is any."""
    records, why = [], ""
    for path in filter(Path.exists, paths):
        try:
            if is_damaged(path):
                raise ValueError("not the bytes that were written")
            record = pd.read_csv(path, dtype=str, keep_default_na=False)
            records.append(record[list(HISTORY_HEADER)].to_numpy().tolist())
        except (KeyError, ValueError, IsADirectoryError) as error:
            why = f"{path}: no record of declarations ({error})"
            print(why, file=sys.stderr)
    if why and not records:
        fail(f"{why}; put it back, or delete it to begin a new history")
    return max(records, key=len, default=[])


def extended(rows: list[list[str]], ask: Criterion, measurements: str) -> list[list[str]]:
    """The declarations, and this one if the last has another criterion or measurements."""
    values = [repr(value) for value in asdict(ask).values()]
    row = [*values, measurements]
    last = [*rows[-1][1:-2], rows[-1][-1]] if rows else []
    if row != last:
        pairs = zip((*ASKED, "measurements"), last, row, strict=True) if last else ()
        changed = "; ".join(f"{name}: {old} to {new}" for name, old, new in pairs if old != new)
        return [*rows, [str(len(rows) + 1), *values, changed, measurements]]
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--approximations", required=True, help="what was measured, a CSV")
    parser.add_argument("--contrast", type=float, required=True, help="share to keep, at least")
    parser.add_argument("--output-error", type=float, required=True, help="relative, at most")
    parser.add_argument("--rank-threshold", type=float, required=True, help="that of the ranks")
    parser.add_argument("--output", required=True, help="the verdicts, a CSV")
    parser.add_argument(
        "--history", nargs=2, type=Path, required=True, help="the declarations, two CSVs: extended"
    )
    args = parser.parse_args()
    ask = Criterion(args.contrast, args.output_error, args.rank_threshold)
    table = pd.read_csv(intact(args.approximations), dtype={"strength": str})
    table["strength"] = table["strength"].fillna("")
    if (table.rank_threshold != ask.rank_threshold).any():
        fail(f"{args.approximations}: its ranks have another threshold than {ask.rank_threshold}")
    declarations = extended(recorded(args.history), ask, digest(table))
    for path in args.history:
        write_csv(path, HISTORY_HEADER, declarations)
    with whole(args.output) as part:
        frame = pd.DataFrame(judged(table, ask, len(declarations)))
        frame.to_csv(part, index=False, lineterminator="\n")


if __name__ == "__main__":
    main()
