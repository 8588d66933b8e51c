"""Pinning again: what is shared, what conda-forge lacks, and what is left when it is not there."""

import pytest

import explicit
import pin
import situation
from tiny_packages import index, package


@pytest.fixture
def records(own_folders, monkeypatch):
    """A channel with python and two packages that need it, and three environments."""
    import channel

    monkeypatch.setattr(pin, "ROOT", own_folders)
    for subdir in ("noarch", "linux-64"):
        (channel.CHANNEL / subdir).mkdir(parents=True)
    for version in ("3.11.9", "3.12.1"):
        package("python", {"share/python": version}, version=version)
    package("a", {"share/a": "a"}, depends=["python"])
    package("b", {"share/b": "b"}, depends=["python 3.11.*"])
    index()
    for name, wanted in (("one", "a=1.0"), ("two", "b=1.0"), ("three", "nobody=1.0")):
        yaml = own_folders / "envs" / f"{name}.yaml"
        yaml.write_text(f"channels: [conda-forge]\ndependencies: [{wanted}]\n")
    return channel.CHANNEL


def run(monkeypatch, *arguments):
    monkeypatch.setattr("sys.argv", ["pin.py", *map(str, arguments)])
    pin.main()


def test_environments_share_what_they_can(records, own_folders, monkeypatch):
    """Alone, `one` would get the newer Python, which `b` does not allow."""
    run(monkeypatch, "--records", records)
    for name, wanted in (("one", "a"), ("two", "b")):
        pins = explicit.read(own_folders / "envs" / f"{name}.linux-64.pin.txt")
        assert {(p.name, p.version) for p in pins} == {(wanted, "1.0"), ("python", "3.11.9")}
        assert all(p.url.startswith(f"{situation.ALIAS}/conda-forge/noarch/") for p in pins)


def test_what_conda_forge_lacks_stays_without_pins(records, own_folders, monkeypatch, capsys):
    stale = own_folders / "envs" / "three.linux-64.pin.txt"
    stale.write_text("of an earlier version")
    run(monkeypatch, "--records", records)
    assert not stale.exists()
    assert "envs/three.yaml stays without pins" in capsys.readouterr().err


def test_without_conda_forge_all_pins_stay(records, own_folders, monkeypatch):
    run(monkeypatch, "--records", records)
    before = {path: path.read_text() for path in own_folders.glob("envs/*.pin.txt")}
    monkeypatch.setenv("CONDA_CHANNEL_ALIAS", "http://127.0.0.1:9")
    with pytest.raises(SystemExit, match=r"error: .*127\.0\.0\.1"):
        run(monkeypatch)
    assert {path: path.read_text() for path in own_folders.glob("envs/*.pin.txt")} == before
