"""Typeset the claims, or the table of stable rank and conditioning by N, with LaTeX's booktabs."""

import argparse

import no_garbage_collection  # noqa: F401

import pandas as pd

from whole_files import intact, whole

ESCAPES = str.maketrans(
    {c: f"\\{c}" for c in "&%$#_{}"}
    | {"\\": r"\textbackslash{}", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}"}
)


def escaped(text: object) -> str:
    return str(text).translate(ESCAPES)


def number(value: float, digits: int = 3) -> str:
    return "--" if pd.isna(value) else f"{value:.{digits}g}"


def tabular(columns: str, header: list[str], rows: list[list[str]]) -> str:
    body = "\n".join(" & ".join(row) + r" \\" for row in rows)
    return (
        f"\\begin{{tabular}}{{{columns}}}\n\\toprule\n{' & '.join(header)} \\\\\n\\midrule\n"
        f"{body}\n\\bottomrule\n\\end{{tabular}}\n"
    )


def claims(table: pd.DataFrame) -> str:
    rows = [
        [
            escaped(row.id),
            escaped(row.statement),
            number(row.expected, 4),
            number(row.measured, 4),
            escaped(row.verdict),
        ]
        for row in table.itertuples()
    ]
    return tabular("lp{8cm}rrl", ["claim", "statement", "expected", "measured", "verdict"], rows)


def by_N(summary: pd.DataFrame) -> str:
    """Causal, unnormalized cells; smallest and largest member in brackets."""
    chosen = summary[(summary["mask"] == "causal") & (summary.normalization == "none")]
    keys = ["source", "feature_map", "d", "N"]
    rows = []
    for key, cell in chosen.groupby(keys, sort=True):
        by_quantity = cell.set_index("quantity")
        row = [escaped(part) for part in key]
        for quantity in ("stable_rank", "log10_condition"):
            q = by_quantity.loc[quantity]
            spread = f" [{number(q['min'])}, {number(q['max'])}]" if q.resolved == q.members else ""
            row.append(number(q["mean"], 4) + spread)
        rows.append(row)
    header = ["source", "map", "$d$", "$N$", "stable rank", r"$\log_{10}\kappa$"]
    return tabular("llrrrr", header, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--what", required=True, choices=["claims", "by_N"])
    parser.add_argument("--input", required=True, help="claims.csv or summary.csv")
    parser.add_argument("--output", required=True, help="a .tex file to \\input")
    args = parser.parse_args()
    text = {"claims": claims, "by_N": by_N}[args.what](pd.read_csv(intact(args.input)))
    with whole(args.output) as part:
        part.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
