"""The figures on tiny tables: whole, partial and empty ones."""

import importlib
import itertools
import sys
from collections.abc import Callable
from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd
import pytest
import yaml
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from PIL import Image

import figure_style
import plot_acceptance
from approximation_families import FAMILIES
from causalrank.approximations import APPROXIMATIONS
from copy_to_gallery import shrunk
from figure_style import FEATURE_MAPS, MASKS, grid_axis, maps_of, power_of_ten, sheet, widest
from plot_against_N import lines_of
from plot_claims import EXPECTATIONS, Ruler
from plot_matrix_against_output import FLOOR
from plot_performance import METHODS
from typeset_page import page

ROOT = Path(__file__).resolve().parents[1]
MAGIC = {"pdf": b"%PDF-", "svg": b"<?xml", "png": b"\x89PNG\r\n\x1a\n"}
NAN = float("nan")
LONG = "a statement of some length with $x$ and $ and max_abs_of_everything_there_is " * 2


def grid(maps: tuple[str, ...] = ("elu_plus_one", "relu"), **axes: list) -> pd.DataFrame:
    """Rows for every source, N, d, map, mask and normalization."""
    axes = {"source": ["gaussian"], "N": [8, 16], "d": [2, 7, 8]} | axes
    axes |= {"feature_map": list(maps), "mask": list(MASKS), "normalization": ["none", "row"]}
    return pd.DataFrame(itertools.product(*axes.values()), columns=list(axes))


def summary() -> pd.DataFrame:
    quantities = pd.DataFrame(
        {"quantity": ["exact_rank", "numerical_rank", "stable_rank", "log10_condition"]}
    )
    table = grid().merge(quantities, how="cross")
    return table.assign(members=3, resolved=3, mean=4.0, min=2.0, max=8.0)


def singular_values() -> pd.DataFrame:
    table = grid().assign(member=0).merge(pd.DataFrame({"index": range(1, 9)}), how="cross")
    return table.assign(sigma_relative=np.where(table["index"] < 6, 10.0 ** -table["index"], 0.0))


def all_ones() -> pd.DataFrame:
    return pd.DataFrame(
        {"N": [4, 8, 16], "stable_rank": 1.23, "limit": 1.2337, "condition_number": [5.0, 10, 20]}
    )


def heads() -> pd.DataFrame:
    table = grid(("relu", "softmax"), source=["a_model"], d=[32])
    table = table.merge(pd.DataFrame({"layer": range(3)}), how="cross")
    table = table.merge(pd.DataFrame({"head": range(12)}), how="cross")
    return table.assign(cumulative_at_quarter=0.5 + 0.1 * table.layer + 0.01 * table["head"])


def bound() -> pd.DataFrame:
    """Linformer has no causal form; values are spread over matrices."""
    strengths = [("truncation", "8"), ("linformer", "64"), ("rounding", "float32")]
    kinds = pd.DataFrame([*strengths, ("noise", "0.1")], columns=["approximation", "strength"])
    table = grid().merge(kinds, how="cross")
    lacks = (table.approximation == "linformer") & (table["mask"] == "causal")
    error = (0.001 * (1 + table.index)).where(~lacks)
    bounds = {"output_over_value": error, "row_l1_error_max": 2 * error}
    bounds |= {"spectral_over_value": 3 * error, "entrywise_over_value": 40 * error}
    relative = {"relative_frobenius_error": error, "relative_output_error": 1.1 * error}
    reason = pd.Series("no causal form: why", table.index).where(lacks)
    return table.assign(exists=(~lacks).astype(int), reason=reason, **bounds, **relative)


def matrix_against_output() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "control": ["values_scaled_up", "values_scaled_up", "error_in_the_null_space"],
            "relative_frobenius_error": [1e-6, 1e-6, 10.0],
            "relative_output_error": [1.0, 100.0, 0.0],
        }
    )


def two_token() -> pd.DataFrame:
    a = np.array([0.0, 1e-8, 0.5, 1.0, 4.0])
    with np.errstate(divide="ignore"):
        condition = 1 / np.tanh(a)
    measured = {"condition_number": condition, "condition_closed_form": condition}
    response = {"response_opposite": 1 - np.tanh(a) ** 2, "response_equal": 0.0}
    tanh = {"tanh_a": np.tanh(a), "determinant": np.tanh(a), "saturation": 1 - np.tanh(a) ** 2}
    return pd.DataFrame({"a": a} | measured | response | tanh)


def running_sum() -> pd.DataFrame:
    columns = {"position": [1, 2, 3], "causal_to_bidirectional": [0.8, 0.1, 0.0]}
    return pd.DataFrame(
        columns | {"running_sum_to_masked": [1e-7, 0.0, 1e-8], "rounding_bound": 1e-5}
    )


def rank_one_softmax() -> pd.DataFrame:
    columns = {"N": [2, 4, 64], "score_rank": 1, "exact_rank": [2, 4, 64]}
    return pd.DataFrame(
        columns | {"numerical_rank": [2, 4, 17], "log10_abs_det": [0.06, -1.4, -2819]}
    )


def horizon() -> pd.DataFrame:
    """A drawn source, beyond the search in float64 at d = 64, and heads of fewer tokens."""
    epsilons = {"bfloat16": 2.0**-7, "float16": 2.0**-10, "float32": 2.0**-23, "float64": 2.0**-52}
    formats = pd.DataFrame(epsilons.items(), columns=["precision", "epsilon"])
    kinds = [("normal", 64, 2048, 3), ("normal", 8, 2048, 3), ("a_model", 32, 512, 5)]
    parts = [
        grid(("elu_plus_one", "relu"), source=[source], N=[0], d=[d], member=list(range(members)))
        .merge(formats, how="cross")
        .assign(searched=searched)
        for source, d, searched, members in kinds
    ]
    table = (
        pd.concat(parts, ignore_index=True).query("mask == 'causal'").drop(columns=["N", "mask"])
    )
    found = (-np.log2(table.epsilon) * table.d + table.member).round()
    return table.assign(horizon=found.where(found <= table.searched))


def baselines() -> pd.DataFrame:
    parts = [
        grid(("elu_plus_one", "softmax"), source=[source], d=[d], member=[0, 1, 2, 3])
        for source, d in (("normal", 64), ("a_model", 32))
    ]
    table = pd.concat(parts, ignore_index=True)
    columns = {"stable_rank": 1.2 + 0.1 * table.member, "effective_rank": 5.0 + 9 * table.member}
    for rank, values in columns.items():
        others = {f"{rank}_all_ones": 1.0 + table.N, f"{rank}_shuffled": 2 * values}
        table = table.assign(**{rank: values}, **others)
    return table


def spectral_density() -> pd.DataFrame:
    levels = pd.DataFrame({"level": 10.0 ** -np.arange(1, 7)})
    table = grid(("elu_plus_one", "softmax"), member=[0]).merge(levels, how="cross")
    table = table.assign(count=np.minimum(table.N, 0.2 / table.level).round())
    sampled = (table.N == 16) & (table["mask"] == "causal")
    estimate = {"count_slq": 0.9 * table["count"], "count_slq_error": 0.3 * table["count"]}
    return table.assign(**{name: values.where(sampled) for name, values in estimate.items()})


def growth() -> pd.DataFrame:
    rows = itertools.product(["elu_plus_one", "exp", "relu"], [1, 8, 64], [1.0, 0.99])
    drawn = pd.DataFrame(rows, columns=["feature_map", "d", "decay"])
    drawn = drawn.assign(source="normal", member=NAN, exponent=0.01 * drawn.decay)
    drawn["exponent"] = drawn.exponent.mask(drawn.d == 1, -np.inf)
    drawn["exponent"] = drawn.exponent.mask((drawn.feature_map == "relu") & (drawn.d < 64))
    heads = pd.DataFrame({"member": range(9), "exponent": np.linspace(-0.002, 0.1, 9)})
    heads = heads.assign(source="a_model", feature_map="exp", d=32, decay=1.0)
    table = pd.concat([drawn, heads], ignore_index=True)
    return table.assign(exponent_low=table.exponent - 0.001, exponent_high=table.exponent + 0.001)


def growth_sizes() -> pd.DataFrame:
    table = grid(("elu_plus_one", "exp"), source=["normal"], N=[256, 1024, 4096], d=[8, 64])
    mean = 0.01 * table.N - 3
    return table[table["mask"] == "causal"].assign(mean=mean, min=mean - 1, max=mean + 1)


def growth_slopes() -> pd.DataFrame:
    table = growth_sizes().drop_duplicates(["d", "feature_map", "normalization"])
    line = {"N_from": 1024, "N_to": 4096, "pivot_N": 1700.0, "pivot": 14.0}
    return table.assign(exponent=0.01, exponent_low=0.009, exponent_high=0.011, **line)


def acceptance() -> pd.DataFrame:
    """Every method; one in each box, one that only loses the contrast, errors beyond the panel."""
    kinds = [
        ("exact", "", 1.0, 0.0, 1.0, "rank kept, tolerance met"),
        ("rounding", "bfloat16", 1.0, 0.002, 1.0, "rank kept, tolerance met"),
        ("uniform", "", 1.5, 0.9, 0.1, "rank kept, tolerance not met"),
        ("linear", "elu_plus_one", 1.0, 0.01, 0.2, "rank kept, tolerance not met"),
        ("truncation", "8", 0.125, 0.01, 0.9, "rank lost, tolerance met"),
        ("truncation", "1", 0.02, 0.7, 0.0, "rank lost, tolerance not met"),
        ("window", "64", 1.0, 0.0, 1.0, "rank kept, tolerance met"),
        ("truncation", "64", 1.0, 1e-15, 1.0, "rank kept, tolerance met"),
        ("nystrom", "16", 0.9, 1e5, 0.0, "rank lost, tolerance not met"),
    ]
    columns = [
        "method",
        "strength",
        "rank_share_min",
        "output_error_max",
        "contrast_kept_min",
        "box",
    ]
    drawn = {method for method, *_ in kinds} | {"adversary"}
    others = sorted(set(APPROXIMATIONS) - drawn)
    kinds += [(name, "4", 0.5, 0.6, 0.9, "rank lost, tolerance not met") for name in others]
    table = pd.DataFrame(kinds, columns=columns)
    table = table.merge(pd.DataFrame({"mask": MASKS}), how="cross")
    asked = {"asked_output_error": 0.05, "asked_contrast": 0.5, "asked_rank_threshold": 1e-6}
    return table.assign(**asked, heads=4, score_scale=0.125, declaration=2)


def passage() -> pd.DataFrame:
    rows = itertools.product([1, 2, 8], [0.0, 1.0, 4.0], MASKS, range(3))
    table = pd.DataFrame(rows, columns=["heads", "score_scale", "mask", "seed"])
    scores = table.score_scale * (1 + table.seed)
    columns = {"contrast_scores": scores, "contrast_attention": 0.1 * scores}
    columns |= {"contrast_output": 0.3 * scores, "contrast_output_last": 1e-17 + 0.01 * scores}
    return table.assign(**columns, contrast_residual=1.0, parameters=192)


def tasks() -> pd.DataFrame:
    rows = itertools.product([1, 2, 8], [0.0, 1.0, 4.0], ["location", "presence"])
    table = pd.DataFrame(rows, columns=["heads", "score_scale", "kind"])
    table = table.assign(accuracy=0.5 + 0.01 * table.index)
    return table.assign(accuracy_low=table.accuracy - 0.05, accuracy_high=table.accuracy + 0.05)


def concentration() -> pd.DataFrame:
    """Heads over 5 and 2 windows, and drawn members that are no heads."""
    kinds = [("cumulative", 0.25), ("cumulative", 0.5), ("index_of_90", NAN)]
    quantities = pd.DataFrame(kinds, columns=["quantity", "fraction"])
    places = pd.DataFrame(itertools.product(range(3), range(12)), columns=["layer", "head"])
    heads = grid(("elu_plus_one", "softmax"), source=["a_model", "b_model"], N=[8, 16], d=[32])
    heads = heads.merge(places, how="cross")
    heads["windows"] = heads.source.map({"a_model": 2, "b_model": 5})
    drawn = grid(("elu_plus_one", "softmax"), source=["normal"], N=[8, 16, 32], d=[64])
    drawn = drawn.assign(layer=NAN, head=NAN, windows=3)
    table = pd.concat([heads, drawn]).merge(quantities, how="cross")
    mean = 0.4 + 0.1 * table.layer.fillna(0) + 0.01 * table["head"].fillna(0)
    return table.assign(mean=mean, low=mean - 0.05, high=mean + 0.05)


def concentration_layers() -> pd.DataFrame:
    table = concentration()
    return table[table["head"] == 0].drop(columns="head")


def tails() -> pd.DataFrame:
    table = grid(("elu_plus_one", "softmax"), source=["normal"], N=[8, 16, 32, 64], d=[64])
    return table.assign(index_of_90_low=2 / table.N, index_of_90_high=3 / table.N)


def projection() -> pd.DataFrame:
    axes = ["normal"], [64, 256, 4096], ["uniform", "mean_zero", "one_hot"], [0.5, 0.25]
    columns = ["source", "N", "column", "epsilon", "form"]
    forms = ["relative", "norm", "rows"]
    table = pd.DataFrame(itertools.product(*axes, forms), columns=columns)
    frequency = 0.9 * (table.column != "uniform") * (table.form == "relative")
    return table.assign(frequency=frequency, low=frequency - 0.01, high=frequency + 0.01)


def projection_needed() -> pd.DataFrame:
    table = projection()
    k = table.N.where(table.form == "relative", 40.0).mask(table.column == "one_hot")
    return table.assign(k_needed=k, k_theorem=100 + table.N // 10)


def claims() -> pd.DataFrame:
    verdicts = ["holds", "fails", "undetermined", "holds"]
    relations = ["equal", "at_least", "at_most", "one_more_member"]
    return pd.DataFrame(
        {
            "id": ["first", "a-rather-long-name-that-does-not-fit-its-column", "third", "fourth"],
            "statement": ["Short.", LONG, "At $N$ = 8.", "With_underscores."],
            "expected": [0.0, 1.2337005501361697, 1e-300, 66.0],
            "tolerance": [0.0, 1e-6, 0.0, 0.5],
            "measured": [0.0, -3.4287e-05, NAN, 66.2],
            "verdict": verdicts,
            "table": "spectrum",
            "relation": relations,
            "statistic": "max_abs of stable_rank - 1.2337005501361697",
        }
    )


def performance() -> pd.DataFrame:
    """Every other method gives up after half of the sizes, and the last one never starts."""
    table = pd.DataFrame(itertools.product([256, 512, 1024], METHODS), columns=["N", "method"])
    number = table.method.map({name: i for i, name in enumerate(METHODS)})
    lost = ((number % 2 == 1) & (table.N > 512)) | (number == len(METHODS) - 1)
    seconds = (1.0 + number) * table.N / 256
    return table.assign(seconds=seconds.mask(lost), mb_peak=(50 + seconds).mask(lost))


def approximation_cost() -> pd.DataFrame:
    """Linformer has no causal form, and top-k ends early."""
    axes = itertools.product(["exact", "linformer", "top_k"], MASKS, [256, 1024])
    table = pd.DataFrame(axes, columns=["approximation", "mask", "N"])
    lost = (table.approximation == "linformer") & (table["mask"] == "causal")
    lost |= (table.approximation == "top_k") & (table.N == 1024)
    numbers = {"seconds": 1e-3 * table.N, "mb_peak": 30.0 + table.N}
    return table.assign(**{name: values.mask(lost) for name, values in numbers.items()})


FIGURES: dict[str, dict[str, Callable[[], pd.DataFrame]]] = {
    "rank_against_d": {"summary": summary},
    "singular_value_decay": {"singular-values": singular_values},
    "against_N": {"summary": summary, "all-ones": all_ones},
    "depth_by_head": {"heads": heads},
    "two_token": {"two-token": two_token},
    "bound_tightness": {"bound": bound},
    "matrix_against_output": {"bound": bound, "controls": matrix_against_output},
    "running_sum": {"running-sum": running_sum},
    "rank_one_softmax": {"rank-one-softmax": rank_one_softmax},
    "spectral_density": {"spectral-density": spectral_density},
    "baselines": {"baselines": baselines},
    "horizon": {"horizon": horizon},
    "growth": {"growth": growth, "sizes": growth_sizes, "slopes": growth_slopes},
    "acceptance": {"acceptance": acceptance},
    "contrast": {"passage": passage, "tasks": tasks},
    "concentration": {"concentration": concentration, "layers": concentration_layers},
    "tails": {"tails": tails, "concentration": concentration},
    "projection": {"projection": projection, "needed": projection_needed},
    "claims": {"claims": claims},
    "performance": {"performance": performance},
    "approximation_cost": {"cost": approximation_cost},
}
every_figure = pytest.mark.parametrize("name", FIGURES)


def draw(name: str, change: Callable[[pd.DataFrame], pd.DataFrame] = lambda table: table) -> Figure:
    """The figure of `name`'s tables, each changed, laid out as it will be saved."""
    tables = [change(make()) for make in FIGURES[name].values()]
    figure = importlib.import_module(f"plot_{name}").draw(*tables, 8.0)
    FigureCanvasAgg(figure).draw()
    return figure


def write(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """What the step writes, by format, run as Snakemake runs it."""
    words = [f"plot_{name}.py", "--dpi", "60", "--output"]
    words += [str(folder / f"{name}.{extension}") for extension in MAGIC]
    for option, make in FIGURES[name].items():
        folder.mkdir(exist_ok=True)
        make().to_csv(folder / f"{option}.csv", index=False)
        words += [f"--{option}", str(folder / f"{option}.csv")]
    monkeypatch.setattr(sys, "argv", words)
    importlib.import_module(f"plot_{name}").main()
    return {extension: (folder / f"{name}.{extension}").read_bytes() for extension in MAGIC}


def texts(figure: Figure) -> list[Text]:
    return [text for text in figure.findobj(Text) if text.get_visible() and text.get_text()]


@every_figure
def test_three_formats_repeat_their_bytes_whatever_the_users_style(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = write(name, tmp_path / "first", monkeypatch)
    for extension, magic in MAGIC.items():
        assert first[extension].startswith(magic)
    with matplotlib.rc_context({"axes.facecolor": "red", "font.size": 20, "text.usetex": True}):
        assert write(name, tmp_path / "second", monkeypatch) == first
    assert not any(b"matplotlib.org" in written for written in first.values())


@every_figure
def test_nothing_leaves_the_sheet(name: str) -> None:
    figure = draw(name)
    (left, bottom), (right, top) = figure.get_tightbbox().get_points()
    width, height = figure.get_size_inches()
    assert 0 <= left < right <= width
    assert 0 <= bottom < top <= height


@every_figure
def test_an_empty_table_gives_a_sheet_that_says_so(name: str) -> None:
    figure = draw(name, lambda table: table.iloc[:0])
    said = [text.get_text() for text in texts(figure)]
    assert any(text.startswith(("no ", "0 claims")) for text in said)


@every_figure
def test_tables_without_a_single_value_are_drawn(name: str) -> None:
    values = {"mean", "min", "max", "sigma_relative", "cumulative_at_quarter", "measured"}
    values |= {"output_over_value", "row_l1_error_max", "condition_number", "numerical_rank"}
    values |= {"relative_frobenius_error", "relative_output_error"}
    values |= {"seconds", "mb_peak"}
    values |= {"exponent", "exponent_low", "exponent_high", "pivot"}
    values |= {"output_error_max", "rank_share_min", "contrast_output", "accuracy"}
    values |= {"horizon", "stable_rank", "effective_rank", "count_slq", "count_slq_error"}
    values |= {"causal_to_bidirectional", "running_sum_to_masked", "determinant"}
    draw(name, lambda table: table.assign(**dict.fromkeys(values & set(table), NAN)))


@pytest.mark.parametrize(
    "name",
    [*("rank_against_d", "singular_value_decay"), *("bound_tightness", "matrix_against_output")],
)
def test_a_mask_that_is_not_there_leaves_its_panel_with_a_word(name: str) -> None:
    figure = draw(name, lambda t: t[t["mask"] == "causal"] if "mask" in t else t)
    said = [text.get_text() for text in figure.axes[0].texts]
    assert any("bidirectional" in text for text in said)
    assert figure.axes[1].lines


def test_points_without_a_number_are_named() -> None:
    def lost(table: pd.DataFrame) -> pd.DataFrame:
        if "mean" not in table:
            return table
        relu = (table.feature_map == "relu") & (table.N == 16) & (table.d == 8)
        return table.assign(mean=table["mean"].mask(relu))

    for axes in draw("against_N", lost).axes:
        assert axes.get_title("left") == "not computed: relu at N = 16"
    exact, *_ = draw("rank_against_d", lost).axes
    assert [text.get_text() for text in exact.texts] == ["not measured:\nrelu at d = 8"]


def test_a_numerical_rank_that_is_not_the_exact_one_is_named() -> None:
    def misjudged(table: pd.DataFrame) -> pd.DataFrame:
        point = (table.feature_map == "relu") & (table.d == 7) & (table["mask"] == "causal")
        point |= (table.feature_map == "elu_plus_one") & (table["mask"] == "causal")
        return table.assign(min=table["min"].mask(point & (table.quantity == "numerical_rank"), 1))

    notes = [axes.texts[0].get_text() for axes in draw("rank_against_d", misjudged).axes]
    assert notes == ["", "", "", "not the exact rank:\nelu+1 at every d\nrelu at d = 7"]


def test_a_condition_number_without_a_point_is_named_and_no_line_bridges_it() -> None:
    def lost(table: pd.DataFrame) -> pd.DataFrame:
        if "mean" not in table:
            return table
        condition = (table.quantity == "log10_condition") & (table.d == 8)
        relu = condition & (table.feature_map == "relu") & (table.N == 16)
        elu = condition & (table.feature_map == "elu_plus_one") & (table.N == 8)
        return table.assign(mean=table["mean"].mask(relu).mask(elu, np.inf))

    left, right = draw("against_N", lost).axes
    assert left.get_title("left") == ""
    assert right.get_title("left") == "singular: elu+1 at N = 8\nnot resolved: relu at N = 16"
    for name, finite in (("elu_plus_one", [False, True]), ("relu", [True, False])):
        (line,) = (line for line in right.lines if line.get_marker() == FEATURE_MAPS[name][2])
        assert list(np.isfinite(line.get_ydata())) == finite


def test_condition_numbers_go_on_beyond_double_precision() -> None:
    def larger(table: pd.DataFrame) -> pd.DataFrame:
        beyond = {"mean": 90.0, "min": 80.0, "max": 99.0}
        return table.assign(**beyond) if "mean" in table else table

    axes = draw("against_N", larger).axes[1]
    assert 99.0 < axes.get_ylim()[1]
    assert [*axes.lines[1].get_ydata()] == pytest.approx(-np.log10(np.array([8, 16]) * 2.0**-52))


def test_a_map_with_two_lengths_is_shown_beside_one_with_many() -> None:
    sizes = [256, 512, 1024, 2048, 4096, 16384, 65536]
    table = pd.DataFrame([("exp", N) for N in sizes] + [("softmax", 256), ("softmax", 512)])
    table.columns = ["feature_map", "N"]
    assert lines_of(table) == ["exp", "softmax"]
    assert lines_of(table[table.N == 256]) == ["exp", "softmax"]


def test_horizons_are_medians_and_beyond_the_search_an_arrow_follows() -> None:
    heads, drawn = draw("horizon").axes
    assert heads.get_title("left") == "source a_model, by feature map and d; 5 members"
    table = horizon().query("normalization == 'row'")
    for axes, source, searched in ((heads, "a_model", 512), (drawn, "normal", 2048)):
        rows = table[table.source == source]
        medians = rows.fillna({"horizon": np.inf}).groupby(["feature_map", "d", "precision"])
        medians = medians.horizon.median()
        shown = np.array([line.get_xdata()[0] for line in axes.lines])
        inside = shown[shown <= searched]
        assert sorted(inside) == sorted(medians[np.isfinite(medians)])
        assert len(shown) == len(medians)
        arrows = [text for text in axes.texts if text.arrow_patch]
        lost = rows[rows.horizon.isna()].groupby(["feature_map", "d", "precision"])
        assert len(arrows) == lost.ngroups > 0


def test_ranks_beside_their_baselines_are_medians_of_one_normalization() -> None:
    table = baselines().query("mask == 'causal' and N == 16")
    for number, (axes, rank) in enumerate(
        zip(draw("baselines").axes, ["stable_rank", "effective_rank"] * 2, strict=True)
    ):
        rows = table[table.normalization == ("none" if number < 2 else "row")]
        medians = rows.groupby(["source", "feature_map"])[[rank, f"{rank}_shuffled"]].median()
        shown = [line.get_xdata()[0] for line in axes.lines if len(line.get_xdata()) == 1]
        assert sorted(shown) == pytest.approx(sorted(medians.to_numpy().ravel()))
        (ones,) = (line for line in axes.lines if len(line.get_xdata()) == 2)
        assert set(ones.get_xdata()) == {17.0}


def test_the_density_of_singular_values_shows_counts_and_quadrature_where_it_ran() -> None:
    figure = draw("spectral_density")
    for axes in figure.axes:
        dotted = [line for line in axes.lines if line.get_marker() == "None"]
        marked = [line for line in axes.lines if line.get_marker() != "None"]
        assert len(marked) == 2
        assert sum(len(line.get_xdata()) for line in dotted) == 6
        assert max(line.get_ydata().max() for line in marked) == 1.0
    assert "by quadrature" in {text.get_text() for text in texts(figure)}
    without = draw("spectral_density", lambda table: table.assign(count_slq=NAN))
    assert "by quadrature" not in {text.get_text() for text in texts(without)}


def test_lines_of_growth_have_the_exponent_as_their_slope() -> None:
    left, right = draw("growth").axes
    lines = [
        line for line in left.lines if len(line.get_xdata()) == 3 and line.get_marker() == "None"
    ]
    assert len(lines) == 2
    for line in lines:
        assert list(line.get_xdata()) == [1024, 1700, 4096]
        assert np.diff(line.get_ydata()) / np.diff(line.get_xdata()) == pytest.approx([0.01, 0.01])
    (note,) = right.texts
    assert note.get_text() == "−∞: elu+1, exp at d = 1\nundefined: relu at d = 1, 8"
    heads = next(line for line in right.lines if len(line.get_xdata()) == 9)
    assert heads.get_ydata() == pytest.approx(np.linspace(-0.002, 0.1, 9))


def test_each_box_names_the_method_that_stands_for_it() -> None:
    figure = draw("acceptance")
    for axes in figure.axes:
        notes = {text.get_text().split(":")[0]: text.get_text() for text in axes.texts}
        assert notes["rank lost, tolerance met"].endswith(":\ntruncation 8,\nheads 4, scale 0.125")
        assert "nystrom 16" in notes["rank lost, tolerance not met"]
        assert "uniform" in notes["rank kept, tolerance not met"]
        assert "rounding bfloat16" in notes["rank kept, tolerance met"]
        filled = [line for line in axes.lines if line.get_markerfacecolor() != "none"]
        lost = {x for line in filled for x in line.get_xdata() if line.get_marker() != "None"}
        assert lost == {1.0, 1.5, 0.02, 0.9}
    assert any("declaration 2" in text.get_text() for text in texts(figure))


def test_every_row_of_acceptance_has_a_marker_in_its_panel() -> None:
    table = acceptance()
    figure = draw("acceptance")
    for axes, mask in zip(figure.axes, MASKS, strict=True):
        rows = table[(table["mask"] == mask) & (table.method != "exact")]
        marked = [line for line in axes.lines if line.get_marker() != "None"]
        shown = [(x, y) for line in marked for x, y in line.get_xydata()]
        low, high = axes.get_ylim()
        expected = zip(rows.rank_share_min, rows.output_error_max.clip(low, high), strict=True)
        assert sorted(shown) == sorted(expected)
    names = {name for family, *_ in plot_acceptance.METHODS.values() for name in family}
    assert set(table.method) <= names | {"exact"}


def test_a_box_without_a_method_says_none() -> None:
    figure = draw("acceptance", lambda table: table[~table.box.str.startswith("rank lost")])
    notes = [text.get_text() for text in figure.axes[0].texts]
    assert "rank lost, tolerance met:\nnone" in notes


def test_contrasts_are_medians_over_seeds_and_zeros_fall_out() -> None:
    table = passage()
    axes = draw("contrast").axes[0]
    assert axes.get_title("left") == "heads: 1, no mask"
    rows = table[(table["heads"] == 1) & (table["mask"] == "bidirectional")]
    for line, (_, chosen) in zip(axes.lines, rows.groupby("score_scale"), strict=True):
        shown = line.get_ydata()[:3]
        expected = chosen[["contrast_scores", "contrast_attention", "contrast_output"]].median()
        inside = shown >= axes.get_ylim()[0]
        assert shown[inside] == pytest.approx(expected[inside].to_numpy())
        assert (expected[~inside] == 0).all()


def test_exact_zeros_fall_out_of_the_panel_of_singular_values() -> None:
    axes = draw("singular_value_decay").axes[0]
    lowest = min(line.get_ydata()[-1] for line in axes.lines if len(line.get_ydata()) == 8)
    assert 0 < lowest < axes.get_ylim()[0]


def test_every_number_of_the_heatmap_is_a_field_of_the_table() -> None:
    table = heads()
    fields = {f"{value:.2f}" for value in table.cumulative_at_quarter}
    shown = {text.get_text() for text in draw("depth_by_head").axes[0].texts}
    assert shown == fields


def test_medians_of_errors_and_bounds_are_fields_of_the_table() -> None:
    table = bound()
    markers = [line for line in draw("bound_tightness").axes[0].lines if len(line.get_xdata()) == 1]
    columns = ["output_over_value", "row_l1_error_max"]
    columns += ["spectral_over_value", "entrywise_over_value"]
    fields = set(table[columns].to_numpy().ravel().tolist())
    assert markers and {float(line.get_xdata()[0]) for line in markers} <= fields


def test_what_has_no_form_is_named_in_its_panel() -> None:
    without, causal = draw("bound_tightness").axes
    assert [text.get_text() for text in causal.texts] == ["no causal form"]
    assert not without.texts


def test_every_approximation_belongs_to_one_family() -> None:
    names = [name for family, *_ in FAMILIES.values() for name in family]
    assert sorted(names) == sorted(APPROXIMATIONS)
    assert len({marker for *_, marker in FAMILIES.values()}) == len(FAMILIES)


def test_constructions_lie_in_the_panel_of_their_mask_and_zero_at_the_edge() -> None:
    for axes, expected in zip(
        draw("matrix_against_output").axes, ([[1.0, 100.0], [FLOOR]], []), strict=True
    ):
        shown = [line for line in axes.lines if line.get_marker() in ("*", "v")]
        assert [list(line.get_ydata()) for line in shown] == expected
        assert axes.get_ylim()[0] == FLOOR


def test_the_record_is_that_of_most_windows_and_its_numbers_are_fields() -> None:
    axes = draw("concentration").axes
    table = concentration().query(
        "source == 'b_model' and N == 16 and feature_map == 'softmax' and fraction == 0.25"
        " and normalization == 'row'"
    )
    for panel, mask in zip(axes[:2], MASKS, strict=True):
        assert panel.get_title("left").endswith("N = 16, mean of 5 windows")
        fields = table[table["mask"] == mask].sort_values(["layer", "head"])["mean"]
        assert [text.get_text() for text in panel.texts] == [f"{value:.2f}" for value in fields]
    lines = [line for line in axes[2].lines if len(line.get_xdata()) == 3]
    assert {tuple(line.get_ydata()) for line in lines} >= {(0.4, 0.5, 0.6000000000000001)}


def test_columns_of_a_projection_differ_without_colour() -> None:
    table = projection().query("epsilon == 0.5 and form == 'relative'")
    lines = [x for x in draw("projection").axes[0].lines if x.get_marker() in set("os^")]
    assert len({line.get_marker() for line in lines}) == table.column.nunique()
    drawn = sorted(float(y) for line in lines for y in line.get_ydata())
    assert drawn == sorted(table.frequency)


def test_methods_differ_without_colour_and_a_cross_marks_where_one_ends() -> None:
    assert len({look[2] for look in METHODS.values()}) == len(METHODS)
    table = performance()
    for axes, column in zip(draw("performance").axes, ("seconds", "mb_peak"), strict=True):
        crosses = [line for line in axes.lines if line.get_marker() == "x"]
        done = table[table[column].notna()].groupby("method").N.max()
        ends = sorted(N for N in done if N < table.N.max())
        assert sorted(int(line.get_xdata()[0]) for line in crosses) == ends
    said = {text.get_text() for text in texts(draw("performance"))}
    labels = [look[0] for look in METHODS.values()]
    assert said >= set(labels[:-1]) and labels[-1] not in said


def test_every_feature_map_has_a_style_that_differs_without_colour() -> None:
    schema = yaml.safe_load((ROOT / "workflow/schemas/study.schema.yaml").read_text())
    assert set(FEATURE_MAPS) == set(schema["$defs"]["feature_map"]["enum"])
    for place in (2, 3):
        assert len({str(style[place]) for style in FEATURE_MAPS.values()}) == len(FEATURE_MAPS)
    sizes = [figure_style.map_style(name)["markersize"] for name in FEATURE_MAPS]
    assert sizes[0] == max(sizes)


def test_widest_prefers_more_values_then_the_larger_number_then_the_first_name() -> None:
    rows = [("b", 8, 1), ("b", 8, 2), ("a", 8, 1), ("a", 8, 2), ("a", 4, 1), ("a", 4, 2)]
    table = pd.DataFrame(rows, columns=["source", "N", "d"])
    assert widest(table, ["source", "N"], "d").index.tolist() == [2, 3]
    more = pd.DataFrame([("c", 2, d) for d in range(3)], columns=table.columns)
    chosen = widest(pd.concat([table, more]), ["source", "N"], "d")
    assert set(chosen.source) == {"c"}
    assert widest(table.iloc[:0], ["source", "N"], "d").empty


def test_a_map_with_few_points_is_no_series() -> None:
    rows = [("relu", d) for d in (1, 2, 3)] + [("exp", 1), ("exp", 2), ("softmax", 3)]
    table = pd.DataFrame(rows, columns=["feature_map", "d"])
    assert maps_of(table, "d") == ["exp", "relu"]
    assert maps_of(table.iloc[:0], "d") == []


def test_labels_of_a_grid_axis_do_not_touch() -> None:
    _, ((axes,),) = sheet(8.0, 50)
    grid_axis(axes.xaxis, [1, 2, 4, 7, 8, 16, 16])
    assert axes.get_xscale() == "log"
    assert sorted(axes.xaxis.get_majorticklocs()) == [1, 2, 4, 8, 16]
    assert list(axes.xaxis.get_minorticklocs()) == [7]


@pytest.mark.parametrize(("value", "text"), [(1.0, "10⁰"), (1e-16, "10⁻¹⁶"), (1e8, "10⁸")])
def test_powers_of_ten_are_written_with_superscripts(value: float, text: str) -> None:
    assert power_of_ten(value) == text


def test_lines_of_the_ledger_fit_their_column() -> None:
    figure, _ = sheet(8.0, 50)
    ruler = Ruler(figure)
    font = matplotlib.font_manager.FontProperties(size=7)
    lines = ruler.lines(LONG + "x" * 200, font, 40.0)
    assert all(ruler.width_mm(line, font) <= 40.5 for line in lines)
    assert "".join(lines).replace(" ", "") == (LONG + "x" * 200).replace(" ", "")


def test_every_relation_of_a_claim_can_be_written() -> None:
    schema = yaml.safe_load((ROOT / "workflow/schemas/claims.schema.yaml").read_text())
    assert set(EXPECTATIONS) == set(schema["items"]["properties"]["relation"]["enum"])


def test_verdicts_carry_a_symbol_and_a_word() -> None:
    said = {text.get_text() for text in texts(draw("claims"))}
    assert {"✔ holds", "✘ fails", "? undetermined"} <= said
    assert "no data" in said


def test_a_shrunk_figure_is_small_and_keeps_rare_colours(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (600, 2000), dtype=np.uint8)
    image = Image.fromarray(noise).convert("RGBA")
    image.paste((0, 114, 178, 255), (0, 0, 40, 40))
    written = shrunk(image, 500, 60_000)
    (tmp_path / "small.png").write_bytes(written)
    with Image.open(tmp_path / "small.png") as small:
        assert small.size == (500, 150)
        red, green, blue = small.convert("RGB").getpixel((4, 4))
    assert len(written) <= 60_000
    assert blue > green > red
    assert shrunk(image, 500, 60_000) == written


def test_a_page_shows_six_digits_and_keeps_all() -> None:
    text = page("t<.csv", ["N", "value"], [["512", "1.2337005501361697"], ["", "a < b"]])
    assert "<title>t&lt;.csv</title>" in text
    assert '<td class="number">512</td>' in text
    assert '<td class="number" title="1.2337005501361697">1.2337</td>' in text
    assert "<td></td><td>a &lt; b</td>" in text


@pytest.mark.parametrize("font_size", [4.0, 24.0])
@every_figure
@pytest.mark.filterwarnings("ignore:constrained_layout not applied")
def test_every_font_size_of_the_schema_is_drawn(name: str, font_size: float) -> None:
    tables = [make() for make in FIGURES[name].values()]
    figure = importlib.import_module(f"plot_{name}").draw(*tables, font_size)
    FigureCanvasAgg(figure).draw()
