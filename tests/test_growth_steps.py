"""The steps that estimate growth rates and compare them with spectra, on small tables."""

import hashlib
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import compare_growth
import estimate_growth
import gather_combinations
import receipts
import resources
from causalrank.feature_maps import FEATURE_MAPS
from causalrank.growth import along_sequence
from test_steps import run
from whole_files import file_digest

KEY = ("--source", "s", "--d", 4, "--feature-map")
KEYS = ["source", "d", "feature_map"]


def estimated(folder, feature_map: str, *options: object) -> pd.DataFrame:
    path = folder / f"source~s/d~4/feature_map~{feature_map}.csv"
    run(estimate_growth, *KEY, feature_map, *options, "--output", path)
    return pd.read_csv(path)


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    folder = tmp_path_factory.mktemp("drawn")
    return folder, estimated(folder, "elu_plus_one", "--scale", 1.0, "--decays", 0.999, 0.9)


def test_a_drawn_source_has_one_row_per_decay(drawn, tmp_path):
    folder, table = drawn
    assert table.decay.tolist() == [1.0, 0.999, 0.9]
    assert table.member.isna().all() and (table.chains == resources.GROWTH_CHAINS).all()
    np.testing.assert_allclose(table.exponent, table.exponent[0] + np.log(table.decay))
    np.testing.assert_allclose(table.critical_decay, math.exp(-table.exponent[0]))
    assert (table.exponent_low < table.exponent).all() and table.reason.isna().all()
    again = estimated(tmp_path, "elu_plus_one", "--scale", 1.0, "--decays", 0.999, 0.9)
    pd.testing.assert_frame_equal(again, table)
    name = "source~s/d~4/feature_map~elu_plus_one.csv"
    assert (tmp_path / name).read_bytes() == (folder / name).read_bytes()


def test_a_file_has_one_row_per_member(tmp_path):
    q, k = np.random.default_rng(0).standard_normal((2, 3, 40, 4))
    q[1, 5] = k[1, 5] = -1.0
    np.savez(tmp_path / "heads.npz", q=q, k=k)
    table = estimated(tmp_path, "relu", "--input", tmp_path / "heads.npz")
    assert table.member.tolist() == [0, 1, 2] and (table.steps == 40).all()
    assert table.exponent.isna()[1] and "of 40 tokens" in table.reason[1]
    table = estimated(tmp_path, "exp", "--input", tmp_path / "heads.npz")
    phi = FEATURE_MAPS["exp"]
    expected = [along_sequence(phi(a), phi(b)).value for a, b in zip(q, k, strict=True)]
    assert table.exponent.tolist() == pytest.approx(expected, rel=1e-14)


def test_a_wrong_file_is_refused_in_one_line(tmp_path, capsys):
    for array, words in (
        (np.zeros((1, 20, 3)), ["the source has d = 3"]),
        (np.full((1, 20, 4), 1e3), ["overflows float64", "1000"]),
    ):
        np.savez(tmp_path / "heads.npz", q=array, k=array)
        with pytest.raises(SystemExit):
            estimated(tmp_path, "exp", "--input", tmp_path / "heads.npz")
        error = capsys.readouterr().err
        assert error.startswith("error: growth of source s, d = 4, feature_map exp: ")
        assert all(word in error for word in words) and error.count("\n") == 1
    assert not list(tmp_path.rglob("*.csv"))


FOLDER = "growth/source~s/d~4/feature_map~elu_plus_one"


def gathered(folder, *paths: Path, decays: int = 3) -> pd.DataFrame:
    """From one batch of the files as they are, in folders named by their keys."""
    output, manifest = folder / "growth.csv", folder / "estimate_growth.txt"
    folders, digests = [path.parent for path in paths], {}
    for path in folders:
        written = {"growth.csv": file_digest(path / "growth.csv")}
        digests[path] = receipts.write_receipt(path, "estimate_growth", "key", written)
    receipts.write_manifest(manifest, digests)
    digest = hashlib.sha256("\n".join(map(str, folders)).encode()).hexdigest()
    batches = ("--read", manifest, "--cells-digests", digest) if paths else ()
    options = ("--table", "growth", "--rows-per-member", decays, "--output", output)
    run(gather_combinations, *options, *batches)
    return pd.read_csv(output)


def test_gathering_is_strict(drawn, tmp_path, capsys):
    folder, table = drawn
    text = (folder / "source~s/d~4/feature_map~elu_plus_one.csv").read_text()
    path = tmp_path / FOLDER / "growth.csv"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    pd.testing.assert_frame_equal(gathered(tmp_path, path), table)
    assert gathered(tmp_path).empty
    lines = text.splitlines(keepends=True)
    (tmp_path / "growth.csv").unlink()
    for changed, words in (
        (text[:-1], "cut short"),
        (text.replace("decay", "decoy", 1), "columns"),
        (text.replace("s,4,", "t,4,"), "another source"),
        (lines[0], "no rows"),
        ("".join(lines[:-1]), "3 different rows"),
        ("".join([*lines[:-1], lines[1]]), "3 different rows"),
    ):
        path.write_text(changed)
        with pytest.raises(SystemExit):
            gathered(tmp_path, path)
        error = capsys.readouterr().err
        assert error.startswith(f"error: {path}: ") and words in error and error.count("\n") == 1
    assert not (tmp_path / "growth.csv").exists()


def test_a_batch_is_its_combinations_one_by_one(drawn, tmp_path):
    folder = drawn[0]
    cells = [tmp_path / "growth" / f"source~s/d~4/feature_map~{name}" for name in ("exp", "relu")]
    cells.append(tmp_path / FOLDER)
    cells.append(tmp_path / "growth" / "source~t/d~4/feature_map~elu_plus_one")
    options = ("--scales", "s=1.0", "t=0.5", "--decays", 0.999, 0.9, "--code", "a")
    manifest = tmp_path / "estimate_growth.txt"
    below = tmp_path / "growth"
    options += ("--below", below, "--cells", *(cell.relative_to(below) for cell in cells))
    run(estimate_growth, *options, "--manifest", manifest)
    alone = folder / "source~s/d~4/feature_map~elu_plus_one.csv"
    assert (cells[2] / "growth.csv").read_bytes() == alone.read_bytes()
    other = tmp_path / "other.csv"
    key = ("--source", "t", "--d", 4, "--feature-map", "elu_plus_one")
    run(estimate_growth, *key, "--scale", 0.5, "--decays", 0.999, 0.9, "--output", other)
    assert (cells[3] / "growth.csv").read_bytes() == other.read_bytes()
    assert len(manifest.read_text().splitlines()) == 4


EXPONENT, VARIANCE, OFFSET = 0.01, 0.001, -7.0


def growth(**changes: object) -> pd.DataFrame:
    row = {"source": "s", "d": 8, "feature_map": "elu_plus_one", "member": None, "decay": 1.0}
    row |= {"exponent": EXPONENT, "exponent_low": 0.0099, "exponent_high": 0.0101}
    frame = pd.DataFrame([row | {"variance": VARIANCE} | changes])
    of_a_head, decaying = frame.assign(member=0, exponent=1.0), frame.assign(decay=0.9)
    return pd.concat([of_a_head, decaying, frame])


def spectrum() -> pd.DataFrame:
    """Members that follow the law but for scatter; sigma_min leaves the range of a double."""
    generator = np.random.default_rng(0)
    rows = []
    for N in (64, 512, 4096, 65536, 131072):
        for member in range(4):
            y = EXPONENT * N + OFFSET + math.sqrt(VARIANCE * N) * generator.standard_normal()
            log10_condition = (y + math.log(N)) / math.log(10)
            rows.append(("s", N, 8, "elu_plus_one", member, float(N), log10_condition))
    columns = ["source", "N", "d", "feature_map", "member", "sigma_max", "log10_condition"]
    table = pd.DataFrame(rows, columns=columns).assign(normalization="none", mask="causal")
    return pd.concat([table, table.assign(mask="bidirectional", log10_condition=0.0)])


def compared(folder, rates: pd.DataFrame, table: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    rates.to_csv(folder / "growth.csv", index=False)
    table.to_csv(folder / "spectrum.csv", index=False)
    options = [("--growth", "growth"), ("--spectrum", "spectrum")]
    options += [("--sizes", "sizes"), ("--slopes", "slopes")]
    run(compare_growth, *(x for name, stem in options for x in (name, folder / f"{stem}.csv")))
    return pd.read_csv(folder / "sizes.csv"), pd.read_csv(folder / "slopes.csv")


def test_the_law_is_found_where_it_holds(tmp_path):
    sizes, slopes = compared(tmp_path, growth(), spectrum())
    assert sizes.N.tolist() == [64, 512, 4096, 65536, 131072]
    assert sizes.in_fit.tolist() == [0, 1, 1, 1, 1]
    assert (sizes.resolved == 4).all() and (sizes["min"] < sizes["max"]).all()
    doubling = EXPONENT * sizes.N + math.log(2)
    np.testing.assert_allclose(sizes.doubling, doubling)
    np.testing.assert_allclose(sizes.doubling_high - doubling, np.sqrt(VARIANCE * sizes.N))
    (row,) = slopes.itertuples()
    assert (row.N_from, row.N_to, row.points) == (512, 131072, 16)
    assert row.slope_low < EXPONENT < row.slope_high and row.intervals_overlap == 1
    half = (row.slope_high - row.slope_low) / 2
    assert half == pytest.approx(2.14 * math.sqrt(VARIANCE / 131072 / 4), rel=0.5)
    assert row.pivot == pytest.approx(EXPONENT * row.pivot_N + OFFSET, abs=1)
    assert row.condition_slope == pytest.approx(row.slope, rel=0.01)
    _, slopes = compared(tmp_path, growth(exponent_low=0.02, exponent_high=0.03), spectrum())
    assert slopes.intervals_overlap.tolist() == [0]


@pytest.mark.parametrize("unresolved", [math.nan, math.inf])
def test_a_size_with_an_unresolved_member_is_left_out(tmp_path, unresolved):
    """Those that are resolved have the larger sigma_min: they alone would mislead."""
    table = spectrum()
    place = (table.N == 512) & (table.member == 2)
    table["log10_condition"] = table.log10_condition.mask(place, unresolved)
    sizes, slopes = compared(tmp_path, growth(), table)
    assert sizes.resolved.tolist() == [4, 3, 4, 4, 4]
    assert sizes["mean"].isna().tolist() == [False, True, False, False, False]
    assert slopes.N_from.tolist() == [4096]
    few = table[table.N != 4096]
    _, slopes = compared(tmp_path, growth(), few)
    assert slopes.slope.isna().all()
    assert slopes.reason.tolist() == ["only 2 N are resolved and large enough for a fit"]


@pytest.mark.parametrize("exponent", [-math.inf, math.nan, 0.0001])
def test_without_growth_there_is_no_fit(tmp_path, exponent):
    rates = growth(exponent=exponent, exponent_low=exponent - 0.01, exponent_high=exponent + 0.01)
    sizes, slopes = compared(tmp_path, rates, spectrum())
    assert (sizes.in_fit == 0).all() and sizes.doubling.isna().all()
    assert sizes["mean"].notna().all()
    assert slopes.slope.isna().all() and slopes.intervals_overlap.isna().all()


def test_nothing_to_compare_gives_tables_without_rows(tmp_path):
    for rates, table in ((growth(member=1), spectrum()), (growth(), spectrum().iloc[:0])):
        sizes, slopes = compared(tmp_path, rates, table)
        assert sizes.empty and slopes.empty
        assert list(sizes.columns) == list(compare_growth.SIZES)
        assert list(slopes.columns) == list(compare_growth.SLOPES)
