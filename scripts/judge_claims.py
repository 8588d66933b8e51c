"""Judge published claims on the study's tables."""

import argparse
from collections.abc import Iterator
from pathlib import Path

import no_garbage_collection  # noqa: F401

import numpy as np
import pandas as pd
import yaml

from causalrank.claims import judge, measure, prediction_interval
from whole_files import fail, intact, whole

COLUMNS = [
    "id",
    "origin",
    "statement",
    "expected",
    "tolerance",
    "measured",
    "verdict",
    "table",
    "selection",
    "relation",
    "statistic",
    "low",
    "high",
    "rows",
    "lines",
]


def selected(table: pd.DataFrame, select: dict) -> pd.DataFrame:
    """The rows whose columns have the values, or one of the lists of values, that are asked for."""
    for column, wanted in select.items():
        table = table[table[column].isin(wanted if isinstance(wanted, list) else [wanted])]
    return table


def line_ranges(rows: pd.DataFrame) -> str:
    """The lines of the CSV that hold the rows, the header being line 1: "2-5, 9"."""
    lines = rows.index.to_numpy() + 2
    runs = np.split(lines, np.flatnonzero(np.diff(lines) > 1) + 1) if len(lines) else []
    return ", ".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else f"{run[0]}" for run in runs)


def ledger(claims: list[dict], tables: dict[str, pd.DataFrame]) -> Iterator[dict]:
    for claim in claims:
        rows = pd.DataFrame()
        values = np.empty(0)
        if claim["table"] in tables:
            rows = selected(tables[claim["table"]], claim["select"])
            values = rows[claim["column"]].to_numpy(float)
            minus = claim.get("minus", 0.0)
            values = values - (rows[minus].to_numpy(float) if isinstance(minus, str) else minus)
        against = (
            rows[claim["against"]].to_numpy(float) if "against" in claim and len(rows) else None
        )
        measured = measure(values, claim["statistic"], against)
        low, high = np.nan, np.nan
        if claim["relation"] == "one_more_member" and len(values) > 1:
            low, high = prediction_interval(values)
        verdict = judge(measured, claim["expected"], claim["tolerance"], claim["relation"], values)
        selection = "; ".join(
            f"{column} = {'|'.join(map(str, wanted)) if isinstance(wanted, list) else wanted}"
            for column, wanted in claim["select"].items()
        )
        yield {
            **claim,
            "measured": measured,
            "verdict": verdict,
            "selection": selection,
            "statistic": f"{claim['statistic']} of {claim['column']}"
            + (f" - {claim['minus']}" if "minus" in claim else "")
            + (f" against {claim['against']}" if "against" in claim else ""),
            "low": low,
            "high": high,
            "rows": len(rows),
            "lines": line_ranges(rows),
        }


def markdown(table: pd.DataFrame) -> str:
    counts = table.verdict.value_counts()
    tally = ", ".join(f"{counts.get(v, 0)} {v}" for v in ("holds", "fails", "undetermined"))
    lines = [f"# Claims\n\n{len(table)} statements: {tally}.\n"]
    for row in table.itertuples():
        measured = "no data" if np.isnan(row.measured) else f"{row.measured:.6g}"
        first_line = str(row.lines).split(",")[0].replace("-", "-L")
        link = f"[{row.table}.csv, {row.rows} rows](tables/{row.table}.csv#L{first_line})"
        rows = link if row.rows else f"no row of {row.table}.csv"
        interval = "" if np.isnan(row.low) else f", interval {row.low:.6g} to {row.high:.6g}"
        lines.append(
            f"## {row.verdict}: {row.id}\n\n{row.statement}\n\n"
            f"- origin: {row.origin}\n"
            f"- measured: {measured} ({row.statistic})\n"
            f"- expected: {row.relation.replace('_', ' ')} {row.expected:.6g}, "
            f"tolerance {row.tolerance:.3g}{interval}\n"
            f"- rows: {rows}, where {row.selection or 'all'}\n"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--claims", required=True, help="the YAML that states them")
    parser.add_argument("--stated-in", help="the file to name for them, if theirs is a copy")
    parser.add_argument("--tables", nargs="+", required=True, help="CSVs, known by their stems")
    parser.add_argument("--output", required=True, help="the ledger as a CSV")
    parser.add_argument("--markdown", required=True, help="the ledger to read")
    args = parser.parse_args()
    stated_in = args.stated_in or args.claims
    claims = yaml.safe_load(Path(args.claims).read_text(encoding="utf-8"))
    paths = [intact(path) for path in args.tables]
    # A strength is a number or a word, which pandas would decide part by part of a long table.
    tables = {path.stem: pd.read_csv(path, dtype={"strength": str}) for path in paths}
    try:
        table = pd.DataFrame(ledger(claims, tables), columns=COLUMNS)
    except KeyError as error:
        fail(f"{stated_in}: no column {error} in the table that a claim names")
    except ValueError as error:
        fail(f"{stated_in}: a claim measures a column that is no number: {error}")
    with whole(args.output) as part:
        table.to_csv(part, index=False)
    with whole(args.markdown) as part:
        part.write_text(markdown(table), encoding="utf-8")


if __name__ == "__main__":
    main()
