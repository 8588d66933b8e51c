"""The study: its YAML read, checked against the schema, and multiplied out into cells.

Everything here runs while Snakemake reads the Snakefile, so whatever is wrong with a study is said
before the first job and before any earlier result is touched. What is no YAML at all, Snakemake
meets before this; `python workflow/study.py STUDY` says it in one line too, and prints where the
results of a good study go.
"""

import difflib
import itertools
import math
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema

from plain_yaml import StudyError, key_path, read_yaml, require_plain

DIRECTORY = Path(__file__).resolve().parent


@dataclass(frozen=True, order=True)
class CellKey:
    """A cell's identity, in the order of the tables."""

    source: str
    N: int
    d: int
    feature_map: str

    @property
    def path(self) -> str:
        return f"source~{self.source}/N~{self.N}/d~{self.d}/feature_map~{self.feature_map}"


@dataclass(frozen=True, order=True)
class CombinationKey:
    """What growth and horizons go by: a source's heads and a feature map, at whatever length."""

    source: str
    d: int
    feature_map: str

    @property
    def path(self) -> str:
        return f"source~{self.source}/d~{self.d}/feature_map~{self.feature_map}"


@dataclass(frozen=True, order=True)
class LengthKey:
    """What concentration and projection go by: a source, and how many tokens of it."""

    source: str
    N: int
    d: int

    @property
    def path(self) -> str:
        return f"source~{self.source}/N~{self.N}/d~{self.d}"


MOST_CELLS = 1_000_000
"""Of a block; the graph of so many jobs takes longer than anyone waits."""
DEFAULTS = {"mask": ["bidirectional", "causal"]}
"""Of keys that a block may leave out."""


def load(paths: list[Path], overrides: Mapping[str, Any]) -> dict[str, Any]:
    """The study in `paths`, a later file's keys replacing an earlier one's, with all defaults."""
    study: dict[str, Any] = {}
    for path in paths:
        document = read_yaml(path)
        if not isinstance(document, dict):
            raise StudyError(f"{path}: a study is a mapping with the keys sources and cells")
        study |= document
    study |= overrides
    origin = ", ".join(str(path) for path in paths)
    validate(study, "study", origin)
    for name, schema in read_schema("study")["properties"].items():
        if "default" in schema:
            study.setdefault(name, schema["default"])
        if schema.get("type") == "object" and "properties" in schema:
            defaults = {
                key: value["default"]
                for key, value in schema["properties"].items()
                if "default" in value
            }
            study[name] = defaults | study[name]
    require_folder(Path(study["results"]), origin)
    return study


def require_folder(results: Path, origin: str) -> None:
    """Raise StudyError if a file is where the results' folder, or one above it, should be."""
    for folder in (*results.parents, results):
        with suppress(PermissionError):  # of which the run says more
            if folder.is_file():
                raise StudyError(f"{origin}: results: {folder} is a file; name a folder")


@cache
def read_schema(name: str) -> dict[str, Any]:
    return read_yaml(DIRECTORY / "schemas" / f"{name}.schema.yaml")


def _matches(validator, pattern: str, instance: Any, schema: dict) -> Iterator:
    """Like jsonschema's own, but `$` does not overlook a final newline."""
    if isinstance(instance, str) and not re.fullmatch(pattern, instance):
        yield jsonschema.ValidationError(f"{instance!r} does not match {pattern!r}")


StrictValidator = jsonschema.validators.extend(
    jsonschema.Draft202012Validator,
    validators={"pattern": _matches},
    type_checker=jsonschema.Draft202012Validator.TYPE_CHECKER.redefine(
        "integer", lambda _, value: type(value) is int
    ),
)
"""JSON counts 512.0 as an integer; as the name of a folder it is another N."""


def validate(document: Any, schema: str, origin: str) -> None:
    """Raise StudyError for the likeliest violation of a schema, its key path and the remedy."""
    require_plain(document, origin)
    validator = StrictValidator(read_schema(schema))
    error = jsonschema.exceptions.best_match(validator.iter_errors(document))
    if error is not None:
        raise StudyError(f"{origin}: {_explain(error)}")


def _explain(error: jsonschema.ValidationError) -> str:
    where = key_path(error.absolute_path)
    if error.validator == "additionalProperties":
        allowed = list(error.schema["properties"])
        unknown = next(key for key in error.instance if key not in allowed)
        nearest = _nearest(unknown, allowed)
        here = key_path([*error.absolute_path, unknown])
        return f"{here}: unknown key{nearest}; allowed here: {', '.join(allowed)}"
    if error.validator == "required":
        missing = next(key for key in error.validator_value if key not in error.instance)
        return f"{where}: the key {missing!r} is missing; required here: " + ", ".join(
            error.validator_value
        )
    if error.validator == "enum":
        values = list(map(str, error.validator_value))
        nearest = _nearest(str(error.instance), values)
        return f"{where}: {error.instance!r} is not known{nearest}; allowed: {', '.join(values)}"
    if error.validator == "anyOf":
        alone_or_list = int(isinstance(error.instance, list))
        return _explain(next(e for e in error.context if e.schema_path[0] == alone_or_list))
    description = error.schema.get("description")
    if error.validator == "pattern" and description:
        return f"{where}: {error.instance!r} is not allowed; allowed: {description}"
    if error.validator == "type" and error.validator_value in ("integer", "number"):
        plain = _number(error.instance, error.validator_value)
        if plain:
            return f"{where}: {error.message}: YAML reads it as a word; write {plain}"
    if error.validator == "type" and error.validator_value == "array":
        if isinstance(error.instance, dict):
            return f"{where}: a mapping, where a list belongs"
        return f"{where}: {error.message}: write a list, [{error.instance}]"
    return f"{where}: {error.message}" + (f" ({description})" if description else "")


def _number(word: Any, kind: str) -> str:
    """A word that a number was meant by, as YAML reads it as a number; empty if none was."""
    try:
        number = float(word) if isinstance(word, str) else math.nan
    except ValueError:
        return ""
    if not math.isfinite(number):
        return ""
    if kind == "integer":
        return str(int(number)) if number == int(number) else ""
    digits, e, exponent = repr(number).partition("e")
    return f"{digits}{'' if '.' in digits else '.0'}{e}{exponent}"


def _nearest(word: str, allowed: list[str]) -> str:
    matches = difflib.get_close_matches(word, allowed, n=1, cutoff=0.5)
    return f", did you mean {matches[0]!r}?" if matches else ""


def _as_list(value: Any) -> list:
    return value if isinstance(value, list) else [value]


def cells(study: Mapping[str, Any]) -> list[CellKey]:
    """The distinct cells of all blocks, sorted, so that the order of lists has no effect."""
    keys = _multiplied(study, "cells", ("source", "N", "d", "feature_map"))
    return sorted(set(itertools.starmap(CellKey, keys)))


def concentrations(study: Mapping[str, Any]) -> dict[LengthKey, list[str]]:
    """The kinds of matrices, map/mask/normalization, by source and length; both sorted.

    Softmax is normalized by row, linear attention also not at all.
    """
    axes = ("source", "N", "d", "feature_map", "mask")
    kinds: dict[LengthKey, set[str]] = {}
    for source, N, d, feature_map, mask in _multiplied(study, "concentration", axes):
        normalizations = ["row"] if feature_map == "softmax" else ["none", "row"]
        names = {f"{feature_map}/{mask}/{name}" for name in normalizations}
        kinds.setdefault(LengthKey(source, N, d), set()).update(names)
    return {key: sorted(kinds[key]) for key in sorted(kinds)}


def projections(study: Mapping[str, Any]) -> list[LengthKey]:
    """The matrices that Linformer's theorem is tested on, sorted."""
    keys = _multiplied(study, "projection", ("source", "N", "d"))
    return sorted(set(itertools.starmap(LengthKey, keys)))


def _multiplied(study: Mapping[str, Any], section: str, names: tuple[str, ...]) -> Iterator[tuple]:
    """Every combination of the blocks of a section, as a tuple of `names`, source, N, d first."""
    for index, block in enumerate(study[section]):
        where = f"{section}[{index}]"
        axes = [_as_list(block.get(name, DEFAULTS.get(name))) for name in names]
        for source in axes[0]:
            if source not in study["sources"]:
                known = list(study["sources"])
                raise StudyError(
                    f"{where}.source: {source!r} is not among the sources"
                    f"{_nearest(source, known)}; allowed: {', '.join(known)}"
                )
        size = math.prod(map(len, axes))
        if size > MOST_CELLS:
            raise StudyError(f"{where}: {size} combinations, more than {MOST_CELLS}; take fewer")
        for key in itertools.product(*axes):
            _check_shape(study["sources"][key[0]], LengthKey(*key[:3]), where)
            yield key


def _check_shape(source: Mapping[str, Any], key: LengthKey, where: str) -> None:
    if source["kind"] != "model":
        return
    if key.d != source["head_dimension"]:
        allowed = f"sources.{key.source}.head_dimension is d = {source['head_dimension']}"
        raise StudyError(f"{where}.d: {key.d} is not to be had; {allowed}")
    if key.N > source["window"]:
        allowed = f"sources.{key.source}.window is {source['window']} tokens"
        raise StudyError(f"{where}.N: {key.N} is not to be had; {allowed}")
    if key.N < 3 and not where.startswith("cells"):
        raise StudyError(f"{where}.N: {key.N} is not to be had; a window has 3 tokens or more")


def check_evaluation(study: Mapping[str, Any]) -> None:
    """Raise StudyError for heads that do not divide d_model, whose parameters would differ, and for
    scales of which none makes scores."""
    d_model, scales = study["evaluation"]["d_model"], study["evaluation"]["score_scales"]
    if not any(scales):
        raise StudyError(f"evaluation.score_scales: {scales} is not allowed; one must be above 0")
    for index, heads in enumerate(study["evaluation"]["heads"]):
        if d_model % heads:
            raise StudyError(
                f"evaluation.heads[{index}]: {heads} does not divide evaluation.d_model ="
                f" {d_model}; take a divisor"
            )


def load_claims(path: Path) -> list[dict[str, Any]]:
    """The claims, checked: schema, and ids that differ."""
    try:
        claims = read_yaml(path)
    except StudyError as error:
        raise StudyError(f"claims: {error}") from None
    validate(claims, "claims", str(path))
    ids = [claim["id"] for claim in claims]
    for index, name in enumerate(ids):
        if ids.index(name) < index:
            first = f"appears twice, first as [{ids.index(name)}].id"
            raise StudyError(f"{path}: [{index}].id: {name!r} {first}; rename one of them")
    return claims


def main() -> None:
    path = Path(sys.argv[1])
    try:
        study = load([path], {})
    except StudyError as error:
        sys.exit(f"error in the study: {error}")
    try:
        cells(study), concentrations(study), projections(study), check_evaluation(study)
    except StudyError as error:
        sys.exit(f"error in the study: {path}: {error}")
    print(study["results"])


if __name__ == "__main__":
    main()
