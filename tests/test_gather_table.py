"""A table is gathered strictly: whatever is wrong with a cell stops it, with the file's name."""

import csv
import hashlib
import sys
from itertools import product
from pathlib import Path

import pytest

import gather_table
import receipts
from cell_files import MATRIX_KEYS
from whole_files import file_digest

MASKS, NORMALIZATIONS = ("bidirectional", "causal"), ("none", "row")
EXTRA = {
    "rank": ([()], ["exact_rank"]),
    "block_rank": ([(2,), (3,)], ["split", "below_rank"]),
    "spectrum": ([()], ["sigma_max"]),
    "numerical_rank": (
        list(product(("float64", "float32"), ("numpy", "1e-4"))),
        ["precision", "tolerance", "numerical_rank"],
    ),
    "bound": (
        [("noise", "0.1"), ("rounding", "float32")],
        ["approximation", "strength", "violations"],
    ),
    "singular_values": ([(1,), (2,)], ["index", "sigma_relative"]),
}


class Cells:
    """Two cells of two members each, with one table, written by hand and vouched for."""

    def __init__(self, folder: Path, table: str):
        self.folder, self.table = folder, table
        self.paths = [self.path(N) for N in (4, 16)]
        for path, N in zip(self.paths, (4, 16), strict=True):
            self.write(path, N)

    def path(self, N: int) -> Path:
        return self.folder / f"cells/source~s/N~{N}/d~2/feature_map~relu/{self.table}.csv"

    def write(self, path: Path, N: int) -> None:
        subkeys, columns = EXTRA[self.table]
        members = range(1 if self.table == "singular_values" else 2)
        with self.opened(path) as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow([*MATRIX_KEYS, *columns])
            for member, mask, norm, subkey in product(members, MASKS, NORMALIZATIONS, subkeys):
                writer.writerow(["s", N, 2, "relu", member, mask, norm, *subkey, 7])

    def opened(self, path: Path):
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.open("w", newline="")

    def lines(self) -> list[str]:
        return self.paths[1].read_text().splitlines(keepends=True)

    def rewrite(self, lines: list[str]) -> None:
        self.paths[1].write_text("".join(lines))

    def manifest(self, name: str, paths: tuple[Path, ...]) -> tuple[Path, str]:
        """A batch's manifest of the tables as they are now, and the digest of its cells."""
        path = self.folder / "batches" / name / "step.txt"
        folders = [table.parent for table in paths]
        digests = {}
        for folder in folders:
            there = [table for table in (folder / self.paths[0].name,) if table.exists()]
            written = {table.name: file_digest(table) for table in there}
            digests[folder] = receipts.write_receipt(folder, "step", "key", written)
        receipts.write_manifest(path, digests)
        digest = hashlib.sha256("\n".join(map(str, folders)).encode()).hexdigest()
        return path, digest

    def gather(self, *paths: Path, members: int = 2) -> str:
        """Of a batch for each path."""
        batches = enumerate(paths or self.paths)
        return self.gather_batches(
            *(self.manifest(str(i), (x,)) for i, x in batches), members=members
        )

    def gather_batches(self, *batches: tuple[Path, str], members: int = 2) -> str:
        output = self.folder / "table.csv"
        argv = ["gather_table.py", "--table", self.table, "--output", str(output), "--read"]
        argv += [*(str(path) for path, _ in batches), "--cells-digests"]
        argv += [*(digest for _, digest in batches), "--members", f"s={members}", "t=7"]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", argv)
            gather_table.main()
        return output.read_text()

    def refused(self, capsys, *paths: Path | tuple[Path, str], **options) -> str:
        gather = self.gather_batches if paths and isinstance(paths[0], tuple) else self.gather
        with pytest.raises(SystemExit) as caught:
            gather(*paths, **options)
        assert caught.value.code == 1
        assert not (self.folder / "table.csv").exists()
        return capsys.readouterr().err


@pytest.fixture
def cells(tmp_path, request) -> Cells:
    return Cells(tmp_path, getattr(request, "param", "rank"))


every_table = pytest.mark.parametrize("cells", EXTRA, indirect=True)


@every_table
def test_whole_cells_are_gathered_in_the_grids_order(cells):
    header, *first = cells.paths[0].read_text().splitlines(keepends=True)
    table = "".join([header, *first, *cells.lines()[1:]])
    assert cells.gather() == cells.gather(*reversed(cells.paths)) == table
    assert cells.gather_batches(cells.manifest("0", (*reversed(cells.paths),))) == table


@pytest.mark.parametrize(
    "cells", [name for name in EXTRA if name != "singular_values"], indirect=True
)
@pytest.mark.parametrize("line", [1, -1])
def test_a_missing_row(cells, capsys, line):
    lines = cells.lines()
    del lines[line]
    cells.rewrite(lines)
    assert str(cells.paths[1]) in cells.refused(capsys)


@pytest.mark.parametrize("cells", ["bound"], indirect=True)
def test_matrices_that_were_not_measured(cells, capsys):
    header, *rows = cells.lines()
    unmeasured = ["s,16,2,relu,1,causal,none,,,\n", "s,16,2,relu,1,causal,row,,,\n"]
    cells.rewrite([header, *rows[:-4], *unmeasured])
    assert cells.gather().endswith("".join(unmeasured))
    cells.rewrite([header, *rows[:-5], *unmeasured])
    (cells.folder / "table.csv").unlink()
    assert "fewer rows for matrix 1, bidirectional, row" in cells.refused(capsys)


@every_table
def test_a_repeated_row(cells, capsys):
    cells.rewrite([*cells.lines(), cells.lines()[2]])
    error = cells.refused(capsys)
    assert f"{cells.paths[1]}: has more than one row for s, 16, 2, relu, 0" in error


@pytest.mark.parametrize("cells", ["rank", "numerical_rank"], indirect=True)
@pytest.mark.parametrize(
    ("members", "message"),
    [
        (3, "lacks matrix 2, bidirectional, none and 3 more"),
        (1, "has the unexpected matrix 1, bidirectional, none and 3 more"),
    ],
)
def test_another_number_of_members(cells, capsys, members, message):
    error = cells.refused(capsys, members=members)
    assert error.startswith(f"error: {cells.paths[0]}: {message}")


@every_table
@pytest.mark.parametrize(
    ("column", "value"), [(0, "t"), (1, "4"), (2, "3"), (3, "exp")], ids=lambda x: str(x)
)
def test_a_row_of_another_cell(cells, capsys, column, value):
    lines = cells.lines()
    fields = lines[3].split(",")
    fields[column] = value
    cells.rewrite([*lines[:3], ",".join(fields), *lines[4:]])
    error = cells.refused(capsys)
    assert f"{cells.paths[1]}: holds rows of another cell than its folder says" in error


def test_an_unknown_mask(cells, capsys):
    cells.rewrite([line.replace("causal", "window") for line in cells.lines()])
    error = cells.refused(capsys)
    assert f"{cells.paths[1]}: lacks matrix 0, causal, none and 3 more" in error


@pytest.mark.parametrize("old", ["member", "exact_rank"])
def test_another_header(cells, capsys, old):
    lines = cells.lines()
    cells.rewrite([lines[0].replace(old, "other"), *lines[1:]])
    error = cells.refused(capsys)
    assert f"{cells.paths[1]}: has " in error and "columns" in error


@every_table
@pytest.mark.parametrize(("old", "new"), [(",7\n", "\n"), (",7\n", ",7,7\n")])
def test_a_row_of_another_length(cells, capsys, old, new):
    lines = cells.lines()
    cells.rewrite([*lines[:-1], lines[-1].replace(old, new)])
    assert str(cells.paths[1]) in cells.refused(capsys)


@pytest.mark.parametrize("content", [b"", b"\xff\xfe"])
def test_no_table(cells, capsys, content):
    cells.paths[1].write_bytes(content)
    error = cells.refused(capsys)
    assert error.startswith(f"error: {cells.paths[1]}: ") and error.count("\n") == 1


def test_a_cell_of_two_batches(cells, capsys):
    assert "is in two batches" in cells.refused(capsys, *[cells.paths[0]] * 2)


@every_table
def test_a_flipped_byte_is_named_and_its_step_runs_again(cells, capsys):
    """In the last digit, where no rule about tables could see it."""
    batches = [cells.manifest(str(N), (path,)) for N, path in enumerate(cells.paths)]
    cells.rewrite([*cells.lines()[:-1], cells.lines()[-1].replace(",7\n", ",6\n")])
    error = cells.refused(capsys, *batches)
    assert f"{cells.paths[1]}: missing, or not the bytes that step wrote; run the same" in error
    assert [path.exists() for path, _ in batches] == [True, False]


def test_a_lost_table_is_named(cells, capsys):
    batch = cells.manifest("0", (*cells.paths,))
    cells.paths[1].unlink()
    assert f"error: {cells.paths[1]}: missing" in cells.refused(capsys, batch)


@pytest.mark.parametrize("other", ["fewer", "more"])
def test_a_manifest_of_other_cells_than_the_batchs(cells, capsys, other):
    path, digest = cells.manifest("0", (*cells.paths,))
    one = cells.paths[: 1 if other == "fewer" else 2]
    if other == "more":
        digest = cells.manifest("1", one[:1])[1]
    else:
        cells.manifest("0", (*one,))
    assert f"error: {path}: missing, or not" in cells.refused(capsys, (path, digest))
    assert not path.exists()
