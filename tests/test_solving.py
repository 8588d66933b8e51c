"""From an environment's YAML to packages, in a channel of a few tiny ones."""

import hashlib

import pytest

import solving
from tiny_packages import index, package

pytestmark = pytest.mark.usefixtures("own_folders")


@pytest.fixture
def channel_of_two(own_folders):
    """`a` 1.0 depends on `b`, of which there are 1.0, 2.0 and, for a newer glibc, 3.0."""
    package("a", {"share/a": "a"}, depends=["b >=1.0"])
    package("b", {"share/b": "old"})
    package("b", {"share/b": "new"}, "2.0")
    package("b", {"share/b": "newer"}, "3.0", depends=["__glibc >=2.99"])
    return index()


def found(records):
    return sorted((record.name.normalized, str(record.version)) for record in records)


def test_what_is_needed_comes_along_and_is_the_newest_that_can_be(channel_of_two):
    glibc = solving.virtual_package("__glibc", "2.28")
    assert found(solving.solve(["a"], channel_of_two, machine=[glibc])) == [
        ("a", "1.0"),
        ("b", "2.0"),
    ]


def test_the_machine_may_be_another(channel_of_two):
    glibc = solving.virtual_package("__glibc", "3.0")
    assert found(solving.solve(["b"], channel_of_two, machine=[glibc])) == [("b", "3.0")]


def test_the_platform_may_be_another(own_folders):
    for platform in ("linux-64", "linux-aarch64", "osx-arm64"):
        package("c", {"share/c": platform}, target_platform=platform, noarch=None)
    address = index()
    (record,) = solving.solve(["c"], address, "osx-arm64", machine=[])
    assert record.subdir == "osx-arm64"


def test_what_is_preferred_stays(channel_of_two):
    old = solving.solve(["b ==1.0"], channel_of_two)
    assert found(solving.solve(["a"], channel_of_two, prefer=old)) == [("a", "1.0"), ("b", "1.0")]
    assert found(solving.solve(["b ==2.0"], channel_of_two, prefer=old)) == [("b", "2.0")]


@pytest.mark.parametrize("wanted", [["a", "b <1"], ["a", "nobody >=3"], ["a", "b =="]])
def test_what_cannot_be_is_one_line_that_names_the_specs(channel_of_two, wanted):
    with pytest.raises(ValueError) as raised:
        solving.solve(wanted, channel_of_two)
    line = str(raised.value)
    start = f"no environment of {', '.join(wanted)} in {channel_of_two}: "
    assert line.startswith(start) and len(line) > len(start) + 10
    assert "\n" not in line


def test_a_channel_that_is_not_there_is_one_line(tmp_path):
    address = (tmp_path / "nowhere").as_uri()
    with pytest.raises(ValueError) as raised:
        solving.solve(["a"], address)
    assert str(raised.value).startswith(f"no environment of a in {address}: ")
    assert "\n" not in str(raised.value)


def test_a_record_becomes_a_line_of_an_explicit_list(own_folders, monkeypatch):
    monkeypatch.setattr("channel.CHANNEL", own_folders / "a folder" / "channel")
    made = package("some-name", {"share/x": "x"}, "2.0+cpu", build_string="py312_h0")
    (record,) = solving.solve(["some-name"], index())
    assert "/a%20folder/channel/noarch/" in made.url
    assert solving.package_of(record) == made
    archive = own_folders / "a folder" / "channel" / "noarch" / made.file_name
    assert made.md5 == hashlib.md5(archive.read_bytes()).hexdigest()
    assert (made.name, made.version, made.build) == ("some-name", "2.0+cpu", "py312_h0")
