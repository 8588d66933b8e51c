"""YAML that is no plain data: one line says so, in a moment and without a trace of running it."""

import os
import time
from pathlib import Path

import pytest

from plain_yaml import LARGEST, StudyError, key_path, read_yaml, require_plain

LAUGHS = "".join(
    f"{b}: &{b} [{', '.join([f'*{a}'] * 9)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
)
BAD = {
    "date that is none": ("a: 2001-99-99", "month"),
    "tag that does not fit": ("a: !!timestamp x", "not valid YAML"),
    "boolean that is none": ("a: !!bool x", "not valid YAML"),
    "integer that is none": ("a: !!int x", "not valid YAML"),
    "digits": (f"a: {'9' * 5000}", "4300 digits"),
    "large integer": (f"a: [1, {LARGEST + 1}]", "a[1]: a number beyond"),
    "infinity": ("a: {b: .inf}", "a.b: inf is not allowed"),
    "circle": ("a: &a [*a]", "a: more than"),
    "nesting": (f"a: {'[' * 2000}{']' * 2000}", "a: more than"),
    "laughs": (f"a: &a [1]\n{LAUGHS}", "more than"),
    "call": ("a: !!python/object/apply:pathlib.Path.touch [sprung]", "not valid YAML"),
    "mapping as a key": ("? {a: 1}\n: 2", "cannot be a key"),
    "key twice": ("a: 1\na: 2", "line 2: the key 'a' appears twice"),
    "control character": ('a: "\x01"', "control characters"),
    "no UTF-8": (b"a: \xff", "can't decode"),
    "two documents": ("--- 1\n--- 2", "single document"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_plain_data_is_refused_at_once_in_one_line(tmp_path, name, monkeypatch):
    monkeypatch.chdir(tmp_path)
    content, words = BAD[name]
    Path("s.yaml").write_bytes(content if isinstance(content, bytes) else content.encode())
    start = time.process_time()
    with pytest.raises(StudyError) as caught:
        require_plain(read_yaml(Path("s.yaml")), "s.yaml")
    assert time.process_time() - start < 5
    assert str(caught.value).startswith("s.yaml") and words in str(caught.value)
    assert str(caught.value).isprintable()
    assert [path.name for path in tmp_path.iterdir()] == ["s.yaml"]


def test_references_are_plain_data(tmp_path):
    path = tmp_path / "s.yaml"
    path.write_text("a: &a {N: [8, 16]}\nb: {<<: *a, d: 2}\n", encoding="utf-8")
    document = read_yaml(path)
    require_plain(document, "s.yaml")
    assert document["b"] == {"N": [8, 16], "d": 2}


@pytest.mark.parametrize(
    ("path", "said"),
    [
        *((path, "there is no such file") for path in ("nothing.yaml", "a\0b", "a\nb")),
        *((path, "it is no file") for path in (".", "fifo")),
        ("x" * 300, "File name too long"),
    ],
)
def test_no_file(tmp_path, path, said, monkeypatch):
    monkeypatch.chdir(tmp_path)
    os.mkfifo("fifo")
    with pytest.raises(StudyError, match=said) as caught:
        read_yaml(Path(path))
    assert str(caught.value).isprintable()


def test_a_message_shows_what_does_not_print_and_ends():
    assert str(StudyError("a\nb\x1b[31m\ud800é")) == "a\\nb\\x1b[31m\\ud800é"
    assert len(str(StudyError("x" * 10**6))) < 2000


def test_key_path():
    assert key_path(["cells", 0, "N"]) == "cells[0].N"
    assert key_path([]) == "study"
    assert key_path([""]) == "''" and key_path(["sources", "a.b"]) == "sources.'a.b'"
