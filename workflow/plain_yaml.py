"""YAML read as plain data, and the one line for its author when it is something else.

A study may come from anyone, so reading it must not cost more than a study can: references that
multiply or go round in circles, deep nesting and endless numbers are refused like a wrong key.
"""

import math
import re
from collections.abc import Hashable, Iterable
from pathlib import Path
from typing import Any

import yaml

MOST_VALUES = 100_000
DEEPEST = 20
LARGEST = 10**15
"""Of an integer; beyond every size that a machine has, and exact as a float."""
LONGEST = 1000
"""Of a message, in characters."""


class StudyError(Exception):
    """What is wrong with a study, in one line for its author, whatever the study's words hold."""

    def __init__(self, message: str):
        shown = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in message[:LONGEST])
        super().__init__(shown + ("..." if len(message) > LONGEST else ""))


class _UniqueKeyLoader(yaml.CSafeLoader):
    """YAML's last-one-wins for repeated keys would hide a source; here they are an error."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict:
        seen = set()
        for key_node, _ in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                continue
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, Hashable):
                raise StudyError(
                    f"{key_node.start_mark.name}, line {key_node.start_mark.line + 1}: "
                    f"{key!r} cannot be a key; write a word"
                )
            if key in seen:
                raise StudyError(
                    f"{key_node.start_mark.name}, line {key_node.start_mark.line + 1}: "
                    f"the key {key!r} appears twice; rename one of them"
                )
            seen.add(key)
        return super().construct_mapping(node, deep)


def read_yaml(path: Path) -> Any:
    try:
        if not path.is_file():
            raise StudyError(
                f"{path}: {'it is no file' if path.exists() else 'there is no such file'}"
            )
        with path.open(encoding="utf-8") as file:
            loader = _UniqueKeyLoader(file)
            try:
                return loader.get_single_data()
            finally:
                loader.dispose()
    except OSError as error:
        raise StudyError(f"{path}: {error.strerror}") from None
    except StudyError:
        raise
    except Exception as error:  # of any kind: !!bool x is a KeyError
        raise StudyError(f"{path}: not valid YAML: {' '.join(str(error).split())}") from None


def require_plain(document: Any, origin: str) -> None:
    """Refuse what YAML allows and no key of ours takes, before anything walks through it all."""
    pending, seen = [((), document)], 0
    while pending:
        path, node = pending.pop()
        seen += 1
        if seen > MOST_VALUES or len(path) > DEEPEST:
            top = key_path(path[:1])
            raise StudyError(
                f"{origin}: {top}: more than {MOST_VALUES} values, or {DEEPEST} inside each other"
            )
        where = f"{origin}: {key_path(path)}"
        if isinstance(node, float) and not math.isfinite(node):
            raise StudyError(f"{where}: {node} is not allowed; a finite number is")
        if isinstance(node, int) and abs(node) > LARGEST:
            raise StudyError(f"{where}: a number beyond {LARGEST} is not allowed")
        if isinstance(node, dict):
            for key in node:
                if not isinstance(key, str):
                    raise StudyError(f"{where}: the key {key!r} is no word; quote it")
            pending += [((*path, key), child) for key, child in node.items()]
        elif isinstance(node, list):
            pending += [((*path, index), child) for index, child in enumerate(node)]


def key_path(parts: Iterable[str | int]) -> str:
    """sources.mine.path or cells[0].N, as an author reads it; `study` for the whole.

    What is no word stands in quotes: an empty key would name the one above it.
    """
    text = ""
    for part in parts:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f".{part}" if re.fullmatch(r"[\w-]+", part) else f".{part!r}"
    return text.removeprefix(".") or "study"
