"""Packages made from wheels: tiny ones, that a folder which plays the index holds."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

import channel
import explicit
import installing
from tiny_packages import listed, package, point_at, wheel

PYTHON = f"python {sys.version_info.major}.{sys.version_info.minor}.*"
SETS = "def f(x):\n    return x in {'a', 'b', 'c', 'd', 'e', 'f', 'g'}\n"


pytestmark = pytest.mark.usefixtures("own_folders")


@pytest.fixture
def index(own_folders):
    """A folder of wheels: pip knows no other."""
    return own_folders / "index"


@pytest.fixture
def rich(index):
    """A wheel with something of every kind."""
    files = {
        "rich/__init__.py": SETS,
        "rich/broken.py": "def f(:\n",
        "rich/table.txt": "1 2 3",
        "rich-1.0.data/purelib/pure.py": "",
        "rich-1.0.data/platlib/plat/__init__.py": "",
        "rich-1.0.data/scripts/rich": "#!python\n",
        "rich-1.0.data/headers/rich.h": "",
        "rich-1.0.data/data/share/rich.txt": "",
    }
    return wheel(index, "rich", files)


def described(path, **versions):
    return channel.describe(path, versions)


def test_a_wheel_depends_on_the_locked_versions_of_what_applies_here(index):
    requires = [
        "Some_Other>=1",
        "matplotlib",
        "some-other[extra] <9 ; python_version > '3'",
        "gone ; python_version < '3'",
        "elsewhere ; sys_platform == 'win32'",
        "more ; extra == 'all'",
    ]
    path = wheel(index, "Tiny.One", {}, requires)
    found = channel.describe(path, {"some-other": "2.5", "matplotlib": "3.10", "gone": "1"})
    assert (found.path, found.name, found.version) == (path, "tiny-one", "1.0")
    assert found.depends == ("matplotlib-base ==3.10", PYTHON, "some-other ==2.5")
    assert found.archive.parent == channel.CHANNEL / "noarch"
    assert found.archive.name == f"tiny-one-1.0-{found.build}.conda"


def test_a_package_has_its_name_on_conda_forge(index):
    assert described(wheel(index, "matplotlib", {})).name == "matplotlib-base"


def test_what_a_wheel_needs_must_be_locked(index):
    path = wheel(index, "tiny", {}, ["other"])
    with pytest.raises(ValueError) as raised:
        described(path, another="1.0")
    assert str(raised.value) == f"{path.name} needs other, which wheels.txt does not have"


def test_versions_are_by_normalized_names(index):
    paths = [wheel(index, "Tiny.One", {}), wheel(index, "two_2", {})]
    assert channel.locked_versions(paths) == {"tiny-one": "1.0", "two-2": "1.0"}


def test_the_build_string_is_of_all_that_a_package_is_made_of(index, monkeypatch):
    def build(text="", requires=(), other="1.0"):
        return described(wheel(index, "tiny", {"tiny.py": text}, requires), other=other).build

    needs = ["other"]
    builds = [build(), build("x = 1"), build("", needs), build("", needs, "2.0")]
    assert build() == builds[0]
    monkeypatch.setattr(channel, "LAYOUT", channel.LAYOUT + 1)
    builds.append(build())
    implementation = SimpleNamespace(**vars(sys.implementation) | {"cache_tag": "cpython-399"})
    monkeypatch.setattr(sys, "implementation", implementation)
    builds.append(build())
    assert len(set(builds)) == len(builds)
    assert all(re.fullmatch(r"cpython\d+_[0-9a-f]{10}", text) for text in builds)
    assert builds[-1].startswith("cpython399_")


@pytest.mark.parametrize("name", ["version", "_base_executable"])
def test_the_package_python_is_of_its_interpreter(name, monkeypatch):
    before = channel.python_archive("linux-64")
    assert before == channel.python_archive("linux-64")
    monkeypatch.setattr(sys, name, getattr(sys, name) + " or another")
    assert channel.python_archive("linux-64") != before


def test_modules_are_unpacked_from_wherever_they_are(rich, tmp_path):
    channel.unpack(rich, tmp_path / "site")
    modules = {
        "rich/__init__.py",
        "rich/broken.py",
        "rich/table.txt",
        "pure.py",
        "plat/__init__.py",
    }
    about = {f"rich-1.0.dist-info/{name}" for name in ("METADATA", "WHEEL", "RECORD")}
    site = tmp_path / "site"
    files = {str(path.relative_to(site)) for path in site.rglob("*") if path.is_file()}
    sources = {file for file in files if not file.endswith(".pyc")}
    assert sources == modules | about
    tag = sys.implementation.cache_tag
    assert files - sources == {
        f"rich/__pycache__/__init__.{tag}.pyc",
        f"__pycache__/pure.{tag}.pyc",
        f"plat/__pycache__/__init__.{tag}.pyc",
    }


def test_compiled_modules_are_never_checked(rich, tmp_path):
    channel.unpack(rich, tmp_path / "site")
    (compiled,) = (tmp_path / "site" / "rich").rglob("*.pyc")
    assert int.from_bytes(compiled.read_bytes()[4:8], "little") == 0b01  # by hash, unchecked
    assert str(tmp_path).encode() not in compiled.read_bytes()


def converted(path, folder, monkeypatch):
    """The bytes of a wheel's package made in a folder."""
    monkeypatch.setattr(channel, "FOLDER", folder)
    monkeypatch.setattr(channel, "CHANNEL", folder / "channel")
    folder.mkdir()
    one = described(path)
    channel.convert(one)
    assert sorted(path.name for path in folder.iterdir()) == ["channel", "md5"]
    return one.archive.read_bytes()


def test_a_package_repeats_to_the_byte_in_another_folder(rich, tmp_path, monkeypatch):
    first = converted(rich, tmp_path / "first", monkeypatch)
    os.utime(rich, (0, 0))
    assert converted(rich, tmp_path / "second", monkeypatch) == first
    assert converted(rich, tmp_path / "a third", monkeypatch) == first


@pytest.mark.parametrize(
    ("variable", "value"), [("PYTHONOPTIMIZE", "1"), ("PYTHONPYCACHEPREFIX", "cache")]
)
def test_a_package_is_the_same_whatever_a_user_tells_python(
    rich, tmp_path, monkeypatch, variable, value
):
    first = converted(rich, tmp_path / "first", monkeypatch)
    monkeypatch.setenv(variable, str(tmp_path / value) if value == "cache" else value)
    assert converted(rich, tmp_path / "second", monkeypatch) == first


def test_a_package_is_the_same_under_another_umask(rich, tmp_path, monkeypatch):
    first = converted(rich, tmp_path / "first", monkeypatch)
    before = os.umask(0o077)
    try:
        assert converted(rich, tmp_path / "second", monkeypatch) == first
    finally:
        os.umask(before)


@pytest.fixture
def environment(tmp_path):
    """An environment of the package `python` and of a tiny one."""
    archive = channel.python_archive("linux-64")
    channel.package_python(archive)
    files = {"site-packages/tiny.py": "where = __file__\n"}
    tiny = package("tiny", files, noarch="python", depends=["python"])
    wanted = installing.records([listed(archive), tiny])
    installing.install(wanted, tmp_path / "env")
    return tmp_path / "env"


def run(environment, code, name="python"):
    command = [environment / "bin" / name, "-c", code]
    clean = {"PATH": os.environ["PATH"], "PYTHONNOUSERSITE": "1"}
    return subprocess.run(command, capture_output=True, text=True, env=clean)


@pytest.mark.parametrize(
    "name", ["python", "python3", f"python{channel.VERSION.rpartition(chr(46))[0]}"]
)
def test_the_python_of_an_environment_is_this_one_with_another_prefix(environment, name):
    code = "import sys; print(sys.prefix, sys.version, sep='\\n')"
    done = run(environment, code, name)
    assert done.stdout == f"{environment}\n{sys.version}\n", done.stderr


def test_the_python_of_an_environment_sees_its_packages_alone(environment):
    done = run(environment, "import tiny; print(tiny.where)")
    assert done.stdout == f"{environment / channel.SITE / 'tiny.py'}\n", done.stderr
    for module in ("snakemake", "rattler", "pip"):
        done = run(environment, f"import {module}")
        assert done.returncode == 1
        assert f"ModuleNotFoundError: No module named '{module}'" in done.stderr
    code = "import site, sys; print(*(p for p in sys.path if 'site-packages' in p))"
    assert run(environment, code).stdout == f"{environment / channel.SITE}\n"


def lock(index):
    """Lock the wheels of the index by their hashes."""
    lines = []
    for path in sorted(index.glob("*.whl")):
        name, version, *_ = path.name.split("-")
        sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
        lines.append(f"{name}=={version} \\\n    --hash=sha256:{sha256}\n")
    channel.LOCK.write_text("".join(lines), encoding="utf-8")


@pytest.fixture(scope="module")
def made_once(tmp_path_factory):
    """Two environments, made: one of `alpha`, which needs `beta`, and one of `gamma`."""
    folder = tmp_path_factory.mktemp("made") / "project"
    folder.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        point_at(folder, patch)
        wheel(folder / "index", "alpha", {"alpha.py": ""}, ["beta"])
        wheel(folder / "index", "beta", {"beta.py": "assert True\nx = 1\n"})
        wheel(folder / "index", "gamma", {"gamma.py": ""})
        lock(folder / "index")
        for name, spec in (("one", "alpha =1.0"), ("two", "gamma")):
            text = f"channels: [conda-forge]\ndependencies: [python, {spec}]\n"
            (channel.ENVIRONMENTS / f"{name}.yaml").write_text(text, encoding="utf-8")
        channel.FOLDER.rmdir()
        assert not channel.current()
        channel.make()
    shutil.copytree(folder, folder.with_name("as made"), symlinks=True)
    return folder


@pytest.fixture
def project(made_once, monkeypatch):
    """The project as it was made."""
    shutil.rmtree(made_once)
    shutil.copytree(made_once.with_name("as made"), made_once, symlinks=True)
    point_at(made_once, monkeypatch)
    return made_once


def pins(name):
    return channel.pin_file(channel.ENVIRONMENTS / f"{name}.yaml")


def archives():
    """When each package was made, by its name."""
    paths = channel.CHANNEL.glob("*/*.conda")
    return {path.name.rsplit("-", 2)[0]: (path.name, path.stat().st_mtime_ns) for path in paths}


def error():
    """The line that making ends with; nothing may be left behind, nor anything be called made."""
    with pytest.raises(ValueError) as raised:
        channel.make()
    assert "\n" not in str(raised.value)
    assert not channel.current()
    assert not list(channel.FOLDER.glob(".part.*"))
    assert not list(channel.ENVIRONMENTS.glob("*.part"))
    return str(raised.value)


def test_environments_are_made_of_what_they_ask_for(project):
    assert channel.current()
    assert [p.name for p in explicit.read(pins("one"))] == ["alpha", "beta", "python"]
    assert [p.name for p in explicit.read(pins("two"))] == ["gamma", "python"]
    assert sorted(archives()) == ["alpha", "beta", "gamma", "python"]
    assert not list(channel.FOLDER.glob(".part.*"))
    installing.install(installing.records(explicit.read(pins("one"))), project / "env")
    assert run(project / "env", "import alpha, beta; print(beta.x)").stdout == "1\n"


def test_what_is_made_is_not_made_again(project, capfd):
    before = {path: path.stat().st_mtime_ns for path in project.rglob("*") if path.is_file()}
    channel.make()
    after = {path: path.stat().st_mtime_ns for path in project.rglob("*") if path.is_file()}
    assert {path for path in after if after[path] != before.get(path)} <= {channel.FOLDER / "lock"}
    assert capfd.readouterr() == ("", "")


def test_a_changed_wheel_changes_its_package_and_the_pins_that_have_it(project):
    before, one, two = archives(), pins("one").read_text(), pins("two").read_text()
    wheel(project / "index", "beta", {"beta.py": "x = 2\n"})
    lock(project / "index")
    assert not channel.current()
    channel.make()
    after = archives()
    assert {name for name in before | after if before[name] != after[name]} == {"beta"}
    assert before["beta"][0] != after["beta"][0]
    assert sorted(path.name for path in channel.CHANNEL.glob("*/*.conda")) == sorted(
        name for name, _ in after.values()
    )
    changed = set(one.splitlines()) ^ set(pins("one").read_text().splitlines())
    assert len(changed) == 2 and all("/beta-1.0-" in line for line in changed)
    assert pins("two").read_text() == two


def test_changed_specs_make_no_package_anew(project, capfd):
    before = archives()
    path = channel.ENVIRONMENTS / "two.yaml"
    path.write_text(path.read_text().replace("gamma", "beta"))
    assert not channel.current()
    channel.make()
    assert [p.name for p in explicit.read(pins("two"))] == ["beta", "python"]
    assert archives() == before
    assert "download" not in capfd.readouterr().err


def test_missing_pins_are_written_again(project):
    text = pins("one").read_text()
    pins("one").unlink()
    assert not channel.current()
    channel.make()
    assert pins("one").read_text() == text


@pytest.mark.parametrize("keep", [0, 100])
def test_damaged_packages_are_made_anew_when_the_stamp_is_gone_too(project, keep):
    """As a machine may leave them that lost its power."""
    texts = {name: pins(name).read_text() for name in ("one", "two")}
    for path in channel.CHANNEL.glob("*/*.conda"):
        path.write_bytes(path.read_bytes()[:keep])
    channel.STAMP.unlink()
    channel.make()
    assert {name: pins(name).read_text() for name in texts} == texts
    installing.records(explicit.read(pins("one")))


def test_a_package_with_another_byte_is_not_pinned(project):
    text = pins("one").read_text()
    path = channel.CHANNEL / "noarch" / archives()["beta"][0]
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    channel.STAMP.unlink()
    channel.make()
    assert pins("one").read_text() == text


@pytest.mark.parametrize("text", ["", "garbage"])
def test_pins_that_are_not_what_was_written_are_written_again(project, text):
    before = pins("one").read_text()
    pins("one").write_text(text or pins("two").read_text())
    assert not channel.current()
    channel.make()
    assert pins("one").read_text() == before


def test_a_wheel_with_another_hash_is_one_line_of_pip(project):
    channel.STAMP.unlink()
    before = archives()
    wheel(project / "index", "beta", {"beta.py": "import os\n"})
    line = error()
    assert line.startswith("pip could not download the wheels of envs/wheels.txt: ")
    assert "HASHES" in line
    assert archives() == before


def test_an_index_that_cannot_be_reached_is_the_cause_that_is_named(project, monkeypatch):
    channel.STAMP.unlink()
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/")
    monkeypatch.setenv("PIP_RETRIES", "1")
    line = error()
    assert "127.0.0.1" in line and "refused" in line


def test_two_processes_make_the_packages_once(project, monkeypatch):
    """Two threads, whose locks exclude each other as those of processes do."""
    made = []

    def convert(wheel, as_before=channel.convert):
        made.append(wheel.name)
        as_before(wheel)

    monkeypatch.setattr(channel, "convert", convert)
    shutil.rmtree(channel.FOLDER)
    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(channel.make) for _ in range(2)]:
            done.result()
    assert channel.current()
    assert sorted(made) == sorted(set(made)) and len(made) > 1


@pytest.mark.parametrize("size", [2_000_000, 700_000], ids=["unpacking", "packing"])
def test_a_full_disk_is_the_cause_in_one_line(size, index, small_disk, monkeypatch):
    """The smaller wheel fits, and its package does not beside it."""
    big = wheel(index, "big", {"big.bin": os.urandom(size)})
    monkeypatch.setattr(channel, "CHANNEL", small_disk / "channel")
    monkeypatch.setattr(channel, "FOLDER", small_disk)
    described = channel.describe(big, {"big": "1.0"})
    with pytest.raises(
        ValueError, match=r"^big.* could not be .*No space left on device"
    ) as raised:
        channel.convert(described)
    assert "\n" not in str(raised.value)
    assert not [path for path in small_disk.rglob("*") if path.is_file()]
    subprocess.run(["mount", "-o", "remount,size=64m", small_disk], check=True)
    channel.convert(described)
    assert list(small_disk.rglob("big-1.0-*"))


def test_a_wheel_that_is_nowhere_is_one_line_of_pip(project):
    channel.STAMP.unlink()
    next(project.glob("index/gamma-*")).unlink()
    assert "gamma==1.0" in error()


def test_a_lock_without_hashes_is_one_line_of_pip(project):
    channel.LOCK.write_text("alpha==1.0\nbeta==1.0\ngamma==1.0\n")
    assert "hash" in error().lower()


def test_specs_that_no_wheel_satisfies_are_one_line_that_names_them(project):
    path = channel.ENVIRONMENTS / "two.yaml"
    path.write_text(path.read_text().replace("gamma", "gamma >=2"))
    line = error()
    assert "two.yaml" in line and "wheels.txt" in line and "gamma >=2" in line


def test_a_making_that_was_killed_is_taken_up(project):
    texts, before = [pins(name).read_text() for name in ("one", "two")], archives()
    channel.STAMP.unlink()
    (channel.CHANNEL / "noarch" / before["beta"][0]).unlink()
    (channel.FOLDER / ".part.x" / "channel").mkdir(parents=True)
    (channel.FOLDER / ".part.x" / "channel" / "half").write_text("half")
    channel.make()
    assert channel.current() and not (channel.FOLDER / ".part.x").exists()
    after = archives()
    assert {name for name in before if before[name] != after[name]} == {"beta"}
    assert before["beta"][0] == after["beta"][0]
    assert [pins(name).read_text() for name in ("one", "two")] == texts


def test_a_damaged_package_is_made_anew(project):
    wanted = explicit.read(pins("one"))
    path = channel.CHANNEL / "noarch" / archives()["beta"][0]
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(ValueError, match="run again"):
        installing.records(wanted)
    assert not channel.current()
    channel.make()
    assert explicit.read(pins("one")) == wanted
    installing.install(installing.records(wanted), project / "env")
    assert run(project / "env", "import beta; print(beta.x)").stdout == "1\n"


def test_a_package_made_anew_with_other_bytes_can_be_installed(project, monkeypatch):
    """Other bytes as by another version of what makes archives."""
    path = channel.CHANNEL / "noarch" / archives()["beta"][0]
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(ValueError, match="run again"):
        installing.records(explicit.read(pins("one")))

    def unpack(path, folder, as_before=channel.unpack):
        as_before(path, folder)
        (folder / "generator.txt").write_text("another")

    monkeypatch.setattr(channel, "unpack", unpack)
    channel.make()
    installing.records(explicit.read(pins("one")))


def test_a_lock_that_changes_meanwhile_is_not_taken_for_made(project, monkeypatch):
    def download(folder, as_before=channel.download):
        paths = as_before(folder)
        channel.LOCK.write_text(channel.LOCK.read_text() + "# changed\n")
        return paths

    monkeypatch.setattr(channel, "download", download)
    channel.STAMP.unlink()
    channel.make()
    assert not channel.current()


def test_packages_of_another_python_are_not_current(project, monkeypatch):
    monkeypatch.setattr(sys, "version", sys.version + " or another")
    assert not channel.current()


def test_packages_that_were_moved_are_not_current(project, monkeypatch):
    monkeypatch.setattr(channel, "CHANNEL", project / "link")
    (project / "link").symlink_to(channel.FOLDER / "channel")
    assert channel.current()
    (project / "link").unlink()
    assert not channel.current()
