"""Explicit lists: what is written is read, errors name the line, and differences are told."""

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import explicit

MD5 = "0123456789abcdef" * 2
URL = "https://conda.anaconda.org/conda-forge/linux-64/numpy-2.3.1-py312h33ff503_0.conda"
LINE = f"{URL}#{MD5}"


def package(name="numpy", version="2.3.1", build="py312h33ff503_0", **other):
    server = other.pop("server", "https://conda.anaconda.org/conda-forge")
    what = {"subdir": "linux-64", "suffix": ".conda", "md5": MD5} | other
    url = f"{server}/{what['subdir']}/{name}-{version}-{build}{what['suffix']}"
    return explicit.Package(url=url, name=name, version=version, build=build, **what)


lower = "abcxyz0189_."
packages = st.builds(
    package,
    name=st.text(lower + "-", min_size=1),
    version=st.text(lower + "!+", min_size=1),
    build=st.text(lower + "+ABC", min_size=1),
    subdir=st.sampled_from(["linux-64", "osx-arm64", "noarch"]),
    suffix=st.sampled_from([".conda", ".tar.bz2"]),
    md5=st.integers(0, 2**128 - 1).map("{:032x}".format),
    server=st.sampled_from(
        ["https://host/t/a-b/conda-forge", "http://127.0.0.1:80/c", "file:///a%20b/noarch/c"]
    ),
)
lists = st.lists(packages, min_size=1, max_size=4, unique_by=lambda p: p.name)
comments = st.lists(st.text(st.characters(min_codepoint=32, max_codepoint=126)), max_size=2)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("explicit") / "env.pin.txt"


def read(path, text):
    path.write_text(text, encoding="utf-8")
    return explicit.read(path)


def error(path, text):
    with pytest.raises(ValueError) as raised:
        read(path, text)
    assert "\n" not in str(raised.value)
    return str(raised.value)


@settings(max_examples=50)
@given(lists, comments)
def test_what_is_written_is_read_and_differs_in_nothing(path, some, comments):
    text = explicit.write(some, comments)
    assert read(path, text) == sorted(some, key=lambda p: p.name)
    assert explicit.write(reversed(some), comments) == text
    assert explicit.differences(some, read(path, text)) == []


def test_a_list_of_conda_is_read(path):
    text = f"# created-by: conda 24.7.1\n# platform: linux-64\n@EXPLICIT\n\n {LINE} \n"
    assert read(path, text) == [package()]
    assert read(path, text.replace("\n", "\r\n")) == [package()]


def test_a_package_says_what_it_is():
    assert str(package()) == "numpy 2.3.1 py312h33ff503_0"
    assert package().file_name == "numpy-2.3.1-py312h33ff503_0.conda"


@pytest.mark.parametrize("text", ["", "\n", "# no more\n", "@EXPLICIT\n", LINE, f"# x\n{LINE}\n"])
def test_what_is_no_list_is_named(path, text):
    expected = f"{path}: not an explicit list; one has @EXPLICIT and a line per package"
    assert error(path, text) == expected


@pytest.mark.parametrize(
    "line",
    [
        URL,
        f"{URL}#",
        f"{URL}#{MD5[:-1]}",
        f"{URL}#{MD5}0",
        f"{URL}#{MD5.upper()}",
        f"{URL}#sha256:{MD5}",
        f"{URL} #{MD5}",
        f"{URL}#{MD5} # numpy",
        f"{URL.replace('.conda', '.whl')}#{MD5}",
        f"{URL.replace('-py312h33ff503_0', '')[:-6]}#{MD5}",
        f"numpy-2.3.1-py312h33ff503_0.conda#{MD5}",
        "numpy=2.3.1",
        "channels: [conda-forge]",
    ],
)
def test_a_line_that_is_no_package_is_named_with_its_number(path, line):
    found = error(path, f"# a comment\n@EXPLICIT\n{LINE}\n{line}\n{LINE}\n")
    assert found == f"{path}, line 4: not the address of a package with #md5: {line}"


def test_what_is_no_text_is_named(path):
    path.write_bytes(b"\x1f\x8b\x08\xff")
    with pytest.raises(ValueError, match=re.escape(str(path))):
        explicit.read(path)


def meta(prefix, *records):
    folder = prefix / "conda-meta"
    folder.mkdir()
    (folder / "history").write_text("")
    for number, record in enumerate(records):
        (folder / f"{number}.json").write_text(json.dumps(record))


def test_what_is_installed_is_read_in_order(tmp_path):
    one, two = package("b"), package("a", suffix=".tar.bz2", server="file:///channel")
    meta(tmp_path, *({"url": p.url, "md5": p.md5, "name": "not looked at"} for p in (one, two)))
    assert explicit.installed(tmp_path) == [two, one]


@pytest.mark.parametrize("record", [{"url": URL}, {"url": URL, "md5": None}])
def test_what_is_installed_without_md5_is_as_with_none(tmp_path, record):
    meta(tmp_path, record)
    assert explicit.installed(tmp_path) == [package(md5="0" * 32)]


def test_a_record_of_something_else_is_named(tmp_path):
    meta(tmp_path, {"url": "numpy-2.3.1.whl", "md5": MD5})
    with pytest.raises(ValueError) as raised:
        explicit.installed(tmp_path)
    assert str(raised.value).startswith(f"{tmp_path}/conda-meta/0.json: not the record")


@pytest.mark.parametrize("text", ["", "{}", '{"url": "https://'])
def test_a_damaged_record_is_named(tmp_path, text):
    meta(tmp_path)
    (tmp_path / "conda-meta" / "numpy.json").write_text(text)
    with pytest.raises(ValueError, match=r"numpy\.json"):
        explicit.installed(tmp_path)


def test_where_nothing_is_nothing_is_installed(tmp_path):
    assert explicit.installed(tmp_path / "nowhere") == []


OTHER_MD5 = "f" * 32


@pytest.mark.parametrize(
    ("present", "lines"),
    [
        ([], ["numpy 2.3.1 py312h33ff503_0 is missing"]),
        ([package(), package("zlib", "1.3", "h_1")], ["zlib 1.3 h_1 is not pinned"]),
        (
            [package(version="2.2.0")],
            ["numpy 2.2.0 py312h33ff503_0 is there, pinned is numpy 2.3.1 py312h33ff503_0"],
        ),
        (
            [package(build="h_2")],
            ["numpy 2.3.1 h_2 is there, pinned is numpy 2.3.1 py312h33ff503_0"],
        ),
        (
            [package(md5=OTHER_MD5)],
            [f"numpy 2.3.1 py312h33ff503_0 is there with md5 {OTHER_MD5}, pinned is {MD5}"],
        ),
        ([package(server="http://mirror/conda-forge")], []),
    ],
)
def test_differences_are_told(present, lines):
    assert explicit.differences([package()], present) == lines


def test_every_difference_is_told_in_the_order_of_the_names():
    pinned = [package("c"), package("a"), package("d")]
    present = [package("d", "9"), package("b"), package("c")]
    names = [line.split()[0] for line in explicit.differences(iter(pinned), iter(present))]
    assert names == ["a", "b", "d"]
