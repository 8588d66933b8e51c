"""An environment appears whole or not at all, whatever the disk, the server or a killer does."""

import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time

import pytest

import channel
import explicit
import installing
from conftest import ROOT
from situation import ALIAS
from tiny_packages import listed, package, served

pytestmark = pytest.mark.usefixtures("own_folders")

MANY = 400  # files, of which a package has so many that its installation can be caught


@pytest.fixture
def two():
    """Two packages in the local channel."""
    return [package("a", {"share/a": "of a"}, depends=["b"]), package("b", {"share/b": "of b"})]


def archive(one):
    return channel.CHANNEL / one.subdir / one.file_name


def file_list(prefix):
    """What Snakemake puts beside an environment before it calls conda."""
    return prefix.with_name(f"{prefix.name}.pin.txt")


def flag(prefix):
    """What says that an environment is complete."""
    return prefix.with_name(f"{prefix.name}.env_setup_done")


def install(packages, prefix):
    """As for Snakemake."""
    prefix.parent.mkdir(exist_ok=True)
    file_list(prefix).write_text(explicit.write(packages), encoding="utf-8")
    installing.install(installing.records(packages), prefix)


def error(packages, prefix):
    """The line that an installation ends with; nothing of the environment may be there."""
    with pytest.raises((ValueError, OSError)) as raised:
        install(packages, prefix)
    assert "\n" not in str(raised.value)
    assert leftovers(prefix) == []
    return str(raised.value)


def leftovers(prefix):
    """What there is of an environment but its lock and its list."""
    others = {prefix.with_name(f".{prefix.name}.lock"), file_list(prefix)}
    found = {path for path in (prefix, *prefix.parent.glob(f"*{prefix.name}.*")) if path.exists()}
    return sorted(found - others)


def assert_whole(prefix, packages):
    assert explicit.differences(packages, explicit.installed(prefix)) == []
    for one in packages:
        (record,) = prefix.glob(f"conda-meta/{one.name}-{one.version}-*.json")
        files = json.loads(record.read_text(encoding="utf-8"))["files"]
        assert files and all((prefix / file).exists() for file in files)


def test_an_environment_has_its_packages_and_a_flag(two, tmp_path):
    prefix = tmp_path / "new" / "env"
    install(two, prefix)
    assert_whole(prefix, two)
    assert leftovers(prefix) == [prefix, flag(prefix)]
    assert (prefix / "share" / "a").read_text() == "of a"
    assert (prefix / "share" / "b").read_text() == "of b"
    assert prefix.stat().st_mode & 0o777 == 0o755


def test_an_environment_that_is_not_of_snakemake_has_neither_flag_nor_lock(two, tmp_path):
    prefix = tmp_path / "new" / "env"
    installing.install(installing.records(two), prefix)
    assert_whole(prefix, two)
    assert list(prefix.parent.iterdir()) == [prefix]


@pytest.mark.parametrize("of_snakemake", [True, False])
def test_an_environment_that_is_there_is_left(two, tmp_path, of_snakemake):
    prefix = tmp_path / "env"
    install(two, prefix)
    (prefix / "share" / "a").write_text("touched")
    if not of_snakemake:
        file_list(prefix).unlink()
    installing.install(installing.records(two[1:]), prefix)
    assert (prefix / "share" / "a").read_text() == "touched"
    assert leftovers(prefix) == [prefix, flag(prefix)]


def test_an_empty_folder_is_no_environment(two, tmp_path):
    (tmp_path / "env").mkdir()
    install(two, tmp_path / "env")
    assert_whole(tmp_path / "env", two)


@pytest.fixture
def thesis(tmp_path):
    """A file where an environment is to be."""
    path = tmp_path / "env" / "thesis.tex"
    path.parent.mkdir()
    path.write_text("mine")
    return path


def test_a_folder_of_something_else_is_left_and_named(two, thesis):
    with pytest.raises(OSError, match=str(thesis.parent)) as raised:
        install(two, thesis.parent)
    assert "\n" not in str(raised.value)
    assert list(thesis.parent.iterdir()) == [thesis] and thesis.read_text() == "mine"
    assert not list(thesis.parent.parent.glob(".part.*"))


def test_a_folder_of_something_else_gets_no_flag(two, thesis):
    with pytest.raises(OSError):
        install(two, thesis.parent)
    assert not flag(thesis.parent).exists()


def test_a_placeholder_becomes_the_final_prefix(tmp_path):
    holder = "/opt/placehold_placehold_placehold_placehold"
    entry = {"_path": "bin/tool", "path_type": "hardlink", "prefix_placeholder": holder}
    index = {"name": "tool", "version": "1.0", "build": "0", "build_number": 0, "depends": []}
    members = {
        "info/index.json": json.dumps(index | {"subdir": "noarch"}),
        "info/paths.json": json.dumps(
            {"paths_version": 1, "paths": [entry | {"file_mode": "text"}]}
        ),
        "bin/tool": f"#!{holder}/bin/python\n",
    }
    path = channel.CHANNEL / "noarch" / "tool-1.0-0.tar.bz2"
    path.parent.mkdir(parents=True)
    with tarfile.open(path, "w:bz2") as tar:
        for name, text in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(text)
            tar.addfile(info, io.BytesIO(text.encode()))
    install([listed(path)], tmp_path / "env")
    assert (tmp_path / "env" / "bin" / "tool").read_text() == f"#!{tmp_path}/env/bin/python\n"


def test_a_truncated_archive_is_named_and_removed_to_be_made_anew(two, tmp_path):
    channel.STAMP.write_text("made")
    path = archive(two[1])
    path.write_bytes(path.read_bytes()[:-10])
    line = error(two, tmp_path / "env")
    assert line == (f"{path} was damaged (md5 is not {two[1].md5}); run again, and it is made anew")
    assert not path.exists() and not channel.STAMP.exists()
    assert archive(two[0]).exists()


def test_a_missing_archive_is_named_to_be_made_anew(two, tmp_path):
    channel.STAMP.write_text("made")
    archive(two[0]).unlink()
    line = error(two, tmp_path / "env")
    assert line == f"{archive(two[0])} is missing; run again, and it is made anew"
    assert not channel.STAMP.exists()


def test_a_folder_with_a_space_holds_a_channel(own_folders, monkeypatch):
    monkeypatch.setattr(channel, "CHANNEL", own_folders / "a folder" / "channel")
    one = package("a", {"share/a": "of a"})
    install([one], own_folders / "a folder" / "env")
    assert_whole(own_folders / "a folder" / "env", [one])


def test_a_failure_midway_leaves_nothing(two, tmp_path):
    wanted = installing.records(two)
    archive(two[1]).write_bytes(b"no archive any more")
    file_list(tmp_path / "env").write_text(explicit.write(two))
    with pytest.raises(ValueError) as raised:
        installing.install(wanted, tmp_path / "env")
    assert str(raised.value).startswith("the packages could not be installed: ")
    assert two[1].file_name in str(raised.value) and "\n" not in str(raised.value)
    assert leftovers(tmp_path / "env") == []


def test_a_folder_that_cannot_be_made_is_named(two, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match=str(tmp_path / "file")):
        installing.install(installing.records(two), tmp_path / "file" / "env")


INSTALL = """
import os, sys
from pathlib import Path

import channel, explicit, installing

installing.CACHE, pins, prefix = map(Path, sys.argv[1:])
records = installing.records(explicit.read(pins))
print("ready", flush=True)
sys.stdin.readline()
installing.install(records, prefix)
os._exit(0)
"""


def installer(packages, prefix):
    """A process that installs packages as soon as it gets a line."""
    pins = file_list(prefix)
    pins.write_text(explicit.write(packages), encoding="utf-8")
    return subprocess.Popen(
        [sys.executable, "-c", INSTALL, installing.CACHE, pins, prefix],
        cwd=ROOT / "envs" / "deployment",
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """A package that takes a while to install."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(channel, "CHANNEL", tmp_path_factory.mktemp("many") / "channel")
        return [package("many", {f"share/{number}": str(number) for number in range(MANY)})]


@pytest.mark.parametrize("of_snakemake", [True, False])
def test_two_processes_make_the_same_environment_at_once(many, tmp_path, of_snakemake):
    prefix = tmp_path / "env"
    both = [installer(many, prefix) for _ in range(2)]
    for process in both:
        assert process.stdout.readline() == "ready\n"
    if not of_snakemake:
        file_list(prefix).unlink()
    for process in both:
        process.stdin.write("\n")
        process.stdin.flush()
    errors = [process.communicate(timeout=60)[1] for process in both]
    assert [process.returncode for process in both] == [0, 0], errors
    assert_whole(prefix, many)
    assert leftovers(prefix) == [prefix] + [flag(prefix)] * of_snakemake


@pytest.mark.parametrize("where", ["cache/*many*/share/*", ".part.env.*/share/*"])
def test_who_is_killed_leaves_no_environment_and_the_next_makes_it(many, tmp_path, where):
    prefix = tmp_path / "env"
    process = installer(many, prefix)
    process.stdin.write("\n")
    process.stdin.flush()
    while process.poll() is None and not any(tmp_path.glob(where)):
        time.sleep(0.001)
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert 0 < len(list(tmp_path.glob(where))) < MANY  # so it was caught in the act
    assert not prefix.exists() and not flag(prefix).exists()
    install(many, prefix)
    assert_whole(prefix, many)
    assert leftovers(prefix) == [prefix, flag(prefix)]
    assert {path.read_text() for path in (prefix / "share").iterdir()} == set(map(str, range(MANY)))


def test_a_file_that_was_damaged_is_mended_by_making_the_environment_anew(two, tmp_path):
    """Its file is one with that in the cache, where both are on one disk."""
    install(two, tmp_path / "one")
    (tmp_path / "one" / "share" / "a").write_text("xx xx")
    install(two, tmp_path / "two")
    assert (tmp_path / "two" / "share" / "a").read_text() == "of a"


@pytest.mark.parametrize("full", ["prefix", "cache"])
def test_a_full_disk_is_the_cause_in_one_line(full, small_disk, tmp_path, monkeypatch):
    big = package("big", {"share/big": os.urandom(2_000_000)})
    if full == "cache":
        monkeypatch.setattr(installing, "CACHE", small_disk / "cache")
    prefix = (small_disk if full == "prefix" else tmp_path) / "envs" / "env"
    line = error([big], prefix)
    assert "No space left on device" in line and big.file_name in line
    subprocess.run(["mount", "-o", "remount,size=64m", small_disk], check=True)
    install([big], prefix)
    assert_whole(prefix, [big])


@pytest.fixture
def remote(two, tmp_path, monkeypatch):
    """The two packages as conda-forge has them, on a server of this test."""
    (tmp_path / "server").mkdir()
    shutil.copytree(channel.CHANNEL, tmp_path / "server" / "conda-forge")
    with served(tmp_path / "server") as address:
        monkeypatch.setenv("CONDA_CHANNEL_ALIAS", address)
        yield [at_home(one) for one in two]


def at_home(one):
    return one._replace(url=f"{ALIAS}/conda-forge/{one.subdir}/{one.file_name}")


def test_pinned_packages_come_from_the_server_of_the_alias(remote, tmp_path):
    install(remote, tmp_path / "env")
    assert_whole(tmp_path / "env", remote)
    assert (tmp_path / "env" / "share" / "a").read_text() == "of a"
    address = os.environ["CONDA_CHANNEL_ALIAS"]
    assert all(one.url.startswith(address) for one in explicit.installed(tmp_path / "env"))


def test_a_pinned_package_of_python_goes_where_that_python_looks(own_folders, monkeypatch):
    channel.package_python(channel.python_archive("linux-64"))
    module = {"site-packages/tiny.py": "where = __file__\n"}
    tiny = package("tiny", module, noarch="python", depends=["python"])
    pins = [at_home(one) for one in (listed(channel.python_archive("linux-64")), tiny)]
    (own_folders / "server").mkdir()
    channel.CHANNEL.rename(own_folders / "server" / "conda-forge")
    with served(own_folders / "server") as address:
        monkeypatch.setenv("CONDA_CHANNEL_ALIAS", address)
        install(pins, own_folders / "env")
    python = [own_folders / "env" / "bin" / "python", "-c", "import tiny; print(tiny.where)"]
    run = subprocess.run(python, capture_output=True, text=True)
    assert run.stdout == f"{own_folders / 'env' / channel.SITE / 'tiny.py'}\n", run.stderr


def test_another_md5_than_pinned_is_one_line_that_says_both(remote, tmp_path):
    wrong = [remote[0], remote[1]._replace(md5="0" * 32)]
    line = error(wrong, tmp_path / "env")
    assert remote[1].file_name in line and "0" * 32 in line and remote[1].md5 in line


def test_another_md5_than_pinned_is_an_error_whatever_the_cache_has(remote, tmp_path):
    install(remote, tmp_path / "right")
    error([remote[0], remote[1]._replace(md5="0" * 32)], tmp_path / "wrong")
    install(remote, tmp_path / "again")
    assert_whole(tmp_path / "again", remote)


def test_a_cached_package_is_not_fetched_again(remote, tmp_path):
    install(remote, tmp_path / "one")
    shutil.rmtree(tmp_path / "server" / "conda-forge")
    install(remote, tmp_path / "two")
    assert_whole(tmp_path / "two", remote)


def test_a_package_that_the_server_lacks_is_one_line_with_its_address(remote, tmp_path):
    lost = remote[0]._replace(version="9", url=remote[0].url.replace("a-1.0", "a-9"))
    line = error([lost], tmp_path / "env")
    assert f"{os.environ['CONDA_CHANNEL_ALIAS']}/conda-forge/noarch/a-9-0.conda" in line
    assert "404" in line


def test_a_download_that_lacks_its_end_is_one_line(remote, tmp_path):
    path = tmp_path / "server" / "conda-forge" / "noarch" / remote[0].file_name
    path.write_bytes(path.read_bytes()[:-10])
    line = error(remote, tmp_path / "env")
    assert remote[0].file_name in line and remote[0].md5 in line


def test_no_server_is_one_line_with_its_address(remote, tmp_path, monkeypatch):
    monkeypatch.setenv("CONDA_CHANNEL_ALIAS", "http://127.0.0.1:9")
    line = error(remote[:1], tmp_path / "env")
    assert f"http://127.0.0.1:9/conda-forge/noarch/{remote[0].file_name}" in line
