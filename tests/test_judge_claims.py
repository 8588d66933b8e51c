"""The ledger: verdicts, and links to the lines that decided them."""

import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

import judge_claims

CLAIM = {
    "id": "causal",
    "origin": "a paper, p. 3",
    "statement": "Causal matrices have rank N.",
    "table": "rank",
    "select": {"mask": "causal", "N": [4, 8]},
    "column": "rank",
    "minus": "N",
    "statistic": "max_abs",
    "relation": "equal",
    "expected": 0,
    "tolerance": 0,
}
TREND = {"statistic": "trend", "against": "layer", "minus": 0, "expected": 1, "tolerance": 1e-9}
TABLE = """N,mask,rank,layer
4,causal,4,0
4,bidirectional,2,0
8,causal,8,1
8,causal,8,1
16,causal,15,2
8,bidirectional,2,2
8,causal,8,2
2,causal,,2
"""


def judged(
    folder: Path, *claims: dict, table: str = TABLE, **others: str
) -> tuple[pd.DataFrame, str]:
    (folder / "rank.csv").write_text(table)
    (folder / "claims.yaml").write_text(
        yaml.safe_dump([CLAIM | claim for claim in claims], sort_keys=False)
    )
    names = {"claims": "claims.yaml", "tables": "rank.csv"}
    names |= {"output": "claims.csv", "markdown": "claims.md", **others}
    argv = [x for key, name in names.items() for x in (f"--{key}", str(folder / name))]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["judge_claims.py", *argv])
        judge_claims.main()
    return pd.read_csv(folder / "claims.csv"), (folder / "claims.md").read_text()


@pytest.mark.parametrize(
    ("claim", "measured", "verdict"),
    [
        ({}, 0.0, "holds"),
        ({"select": {"mask": "causal", "N": [4, 8, 16]}}, 1.0, "fails"),
        ({"select": {"mask": "causal", "N": [4, 8, 16]}, "tolerance": 1}, 1.0, "holds"),
        ({"select": {"N": 5}}, np.nan, "undetermined"),
        ({"select": {"N": 5}, "relation": "one_more_member"}, np.nan, "undetermined"),
        ({"select": {"N": 2}}, np.nan, "undetermined"),
        ({"table": "absent"}, np.nan, "undetermined"),
        ({"select": {"mask": "causal", "N": 8}, "minus": 7.5}, 0.5, "fails"),
        (TREND | {"select": {"N": [4, 8]}}, 0.5, "fails"),
        (TREND | {"select": {"mask": "causal", "N": [4, 16]}}, 1.0, "holds"),
        ({"select": {"N": 5}, "statistic": "trend", "against": "layer"}, np.nan, "undetermined"),
    ],
)
def test_verdict(tmp_path, claim, measured, verdict):
    table, page = judged(tmp_path, claim)
    # A trend is a quotient of exact numbers and a root: an ulp or two.
    np.testing.assert_allclose(table.measured, [measured], rtol=4e-16)
    assert table.verdict.tolist() == [verdict]
    assert f"## {verdict}: causal" in page
    assert f"1 statements: {int(verdict == 'holds')} holds" in page


@pytest.mark.parametrize(
    ("select", "lines"),
    [
        ({"mask": "causal", "N": [4, 8]}, "2, 4-5, 8"),
        ({"mask": "bidirectional"}, "3, 7"),
        ({}, "2-9"),
        ({"N": 5}, np.nan),
        ({"mask": "causal", "N": [4, 8, 16]}, "2, 4-6, 8"),
    ],
)
def test_lines_are_those_of_the_selected_rows(tmp_path, select, lines):
    table, page = judged(tmp_path, {"select": select})
    np.testing.assert_equal(table.lines[0], lines)
    in_file = dict(enumerate(TABLE.splitlines(), start=1))
    found = []
    for run in re.findall(r"\d+(?:-\d+)?", str(lines)):
        first, last = (run.split("-") * 2)[:2]
        found += [in_file[line] for line in range(int(first), int(last) + 1)]
    wanted = {key: x if isinstance(x, list) else [x] for key, x in select.items()}
    header = TABLE.splitlines()[0].split(",")
    rows = [dict(zip(header, row.split(","), strict=True)) for row in TABLE.splitlines()[1:]]
    kept = [r for r in rows if all(r[key] in map(str, x) for key, x in wanted.items())]
    assert found == [",".join(row.values()) for row in kept]
    assert table.rows[0] == len(kept)
    first = str(lines).split(",")[0].replace("-", "-L")
    assert f"(tables/rank.csv#L{first})" in page if kept else "no row of rank.csv" in page


def test_the_claim_is_repeated_as_it_was_stated(tmp_path):
    table, page = judged(tmp_path, {}, {"id": "other", "expected": 3, "tolerance": 0.5})
    assert list(table.columns) == judge_claims.COLUMNS
    for column in ("origin", "statement", "relation"):
        assert table[column].tolist() == [CLAIM[column]] * 2
    assert table.id.tolist() == ["causal", "other"]
    assert table.expected.tolist() == [0, 3] and table.tolerance.tolist() == [0, 0.5]
    assert table.selection[0] == "mask = causal; N = 4|8"
    assert table.statistic[0] == "max_abs of rank - N"
    assert "2 statements: 1 holds, 1 fails, 0 undetermined" in page


def test_without_minus_and_with_against(tmp_path):
    (tmp_path / "rank.csv").write_text(TABLE)
    claim = {key: value for key, value in CLAIM.items() if key != "minus"}
    claim |= {"statistic": "trend", "against": "layer"}
    (row,) = judge_claims.ledger([claim], {"rank": pd.read_csv(tmp_path / "rank.csv")})
    assert row["statistic"] == "trend of rank against layer"
    assert row["measured"] == pytest.approx(np.sqrt(3) / 2)  # ranks 1, 2.5, 2.5 of 1, 2, 3


@pytest.mark.parametrize(
    "claim",
    [
        {"column": "rnak"},
        {"minus": "rnak"},
        {"select": {"rnak": 1}},
        {"statistic": "trend", "against": "rnak"},
    ],
)
def test_an_unknown_column_is_said_in_one_line(tmp_path, capsys, claim):
    with pytest.raises(SystemExit) as caught:
        judged(tmp_path, claim)
    assert caught.value.code == 1
    error = capsys.readouterr().err
    assert error.startswith(f"error: {tmp_path}/claims.yaml: no column 'rnak'")
    assert error.count("\n") == 1
    assert not (tmp_path / "claims.csv").exists() and not (tmp_path / "claims.md").exists()


def test_of_a_copy_the_original_is_named(tmp_path, capsys):
    with pytest.raises(SystemExit):
        judged(tmp_path, {"column": "rnak"}, **{"stated-in": "mine.yaml"})
    assert capsys.readouterr().err.startswith(f"error: {tmp_path}/mine.yaml: no column 'rnak'")


def test_bytes_repeat(tmp_path):
    folders = [tmp_path / name for name in "ab"]
    for folder in folders:
        folder.mkdir()
        judged(folder, {}, {"id": "b", "select": {"N": 5}})
    for name in ("claims.csv", "claims.md"):
        assert len({(folder / name).read_bytes() for folder in folders}) == 1


@pytest.mark.parametrize("others", ["float32", "128"])
def test_a_strength_is_a_word_in_a_long_table_and_in_one_of_numbers(tmp_path, others):
    """pandas reads a table in parts of 256 KiB, and would take numbers for numbers in some."""
    lines = ["mask,strength,rank"] + ["causal,64,4"] * 40000 + [f"causal,{others},5"] * 40000
    select = {"mask": "causal", "strength": "64"}
    claim = {"select": select, "minus": 4}
    ledger, _ = judged(tmp_path, claim, table="\n".join(lines) + "\n")
    assert ledger.loc[0, "rows"] == 40000 and ledger.loc[0, "verdict"] == "holds"
