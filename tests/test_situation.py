"""The choice of where packages come from: condas, servers and records that a test makes up."""

import json
import os
import shutil
import socket
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

import situation
from tiny_packages import served


@pytest.fixture(autouse=True)
def own_record(tmp_path, monkeypatch):
    monkeypatch.setattr(situation, "RECORD", tmp_path / "packages.json")
    monkeypatch.setattr(situation, "PATIENCE", 0.3)
    monkeypatch.setenv("no_proxy", "127.0.0.1")


@pytest.fixture
def online(tmp_path, monkeypatch):
    """conda-forge, on a server of this test."""
    repodata = tmp_path / "server" / "conda-forge" / "noarch" / "repodata.json"
    repodata.parent.mkdir(parents=True)
    repodata.write_text("{}")
    with served(tmp_path / "server") as address:
        monkeypatch.setattr(situation, "ALIAS", address)
        monkeypatch.delenv("CONDA_CHANNEL_ALIAS", raising=False)
        yield f"{address}/conda-forge"


@pytest.fixture
def closed_port():
    with socket.socket() as unheard:
        unheard.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{unheard.getsockname()[1]}"


@pytest.fixture
def offline(closed_port, monkeypatch):
    monkeypatch.setattr(situation, "ALIAS", closed_port)
    monkeypatch.delenv("CONDA_CHANNEL_ALIAS", raising=False)
    return f"{closed_port}/conda-forge"


@contextmanager
def listener(answer=b"", every=None):
    """A server that says `answer`, or nothing, and then headers for a second; its address."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve():
            try:
                connection, _ = server.accept()
                with connection:
                    connection.recv(4096)
                    connection.sendall(answer)
                    for number in range(20 if every else 0):
                        time.sleep(every)
                        connection.sendall(b"X-%d: more\r\n" % number)
            except OSError:
                pass  # the client, or the test, has had enough

        if answer:
            threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def conda(tmp_path):
    """An executable that is named conda; nothing may run it."""
    return executable(tmp_path / "condabin")


def executable(folder):
    folder.mkdir(exist_ok=True)
    path = folder / "conda"
    path.write_text("#!/bin/sh\nexit 1\n")
    path.chmod(0o755)
    return path


def on_path(*folders, **variables):
    return {"PATH": os.pathsep.join(map(str, folders)), **variables}


def test_the_channel_is_conda_forge_on_the_server_of_the_alias(monkeypatch):
    monkeypatch.delenv("CONDA_CHANNEL_ALIAS", raising=False)
    assert situation.channel_url() == "https://conda.anaconda.org/conda-forge"
    monkeypatch.setenv("CONDA_CHANNEL_ALIAS", "http://mirror/conda/")
    assert situation.channel_url() == "http://mirror/conda/conda-forge"


def test_a_channel_that_answers_is_reachable(online):
    assert situation.reachable(online)


def test_a_server_without_the_channel_is_not_reachable(online):
    assert not situation.reachable(online + "-of-nobody")


def test_a_closed_port_is_not_reachable(closed_port):
    assert not situation.reachable(closed_port)


@pytest.mark.parametrize("address", ["", "nowhere", "http://", "http://[", "x://y"])
def test_what_is_no_address_is_not_reachable(address):
    assert not situation.reachable(address)


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 200 OK\r\n"])
def test_patience_ends_with_a_server_that_is_silent_or_slow(answer):
    start = time.monotonic()
    with listener(answer, every=0.05) as address:
        assert not situation.reachable(address)
    assert 0.25 < time.monotonic() - start < 1.5


@pytest.fixture
def raised_in_threads(monkeypatch):
    raised = []
    monkeypatch.setattr(threading, "excepthook", raised.append)
    return raised


@pytest.mark.parametrize("answer", [b"SSH-2.0-OpenSSH_9.6\r\n", b"HTTP/1.1 no\r\n\r\n"])
def test_a_server_of_something_else_is_not_reachable(answer, raised_in_threads):
    with listener(answer) as address:
        assert not situation.reachable(address)
    assert raised_in_threads == []


def test_an_address_with_a_space_is_not_reachable(raised_in_threads):
    assert not situation.reachable("http://a b")
    assert raised_in_threads == []


def test_a_conda_is_chosen_when_its_channel_is_reachable(online, conda):
    name, line = situation.choose(on_path("/nowhere", conda.parent))
    assert name == "conda"
    assert str(conda) in line and line.count("\n") == 0


def test_without_a_conda_it_is_our_frontend(online):
    name, line = situation.choose(on_path("/nowhere"))
    assert name == "conda-forge"
    assert online in line and line.count("\n") == 0


def test_without_a_network_it_is_wheels(offline):
    name, line = situation.choose(on_path("/nowhere"))
    assert name == "wheels"
    assert offline in line and line.count("\n") == 0


def test_a_conda_without_its_channel_is_passed_over_and_named(offline, conda):
    name, line = situation.choose(on_path(conda.parent))
    assert name == "wheels"
    assert offline in line and f"{conda} is not used" in line and line.count("\n") == 0


@pytest.mark.parametrize("environ", [{}, {"PATH": ""}, {"PATH": os.pathsep}])
def test_there_may_be_no_path(environ, online):
    assert situation.choose(environ)[0] == "conda-forge"


def test_our_frontend_is_no_conda(online, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(situation.FRONTEND)
    assert shutil.which("conda", path=str(link))
    crooked = f"{situation.FRONTEND}/../bin/"
    environ = on_path(situation.FRONTEND, crooked, link)
    assert situation.conda_on_path(environ["PATH"]) is None
    assert situation.choose(environ)[0] == "conda-forge"


def test_a_conda_behind_our_frontend_is_found(online, conda):
    environ = on_path(situation.FRONTEND, conda.parent)
    assert situation.conda_on_path(environ["PATH"]) == str(conda)
    assert situation.choose(environ)[0] == "conda"


def test_what_cannot_run_is_no_conda(conda):
    conda.chmod(0o644)
    assert situation.conda_on_path(str(conda.parent)) is None


@pytest.mark.parametrize("forced", ["conda", "conda-forge", "wheels"])
@pytest.mark.parametrize("recorded", [False, True])
def test_what_is_forced_is_taken_without_a_word(forced, recorded, offline, conda):
    if recorded:
        situation.remember("wheels", str(conda.parent))
    environ = on_path(conda.parent, CAUSALRANK_PACKAGES=forced)
    assert situation.choose(environ) == (forced, "")


def test_an_empty_variable_forces_nothing(online):
    assert situation.choose(on_path(CAUSALRANK_PACKAGES=""))[0] == "conda-forge"


def test_another_value_cannot_be_forced():
    with pytest.raises(ValueError) as raised:
        situation.choose(on_path(CAUSALRANK_PACKAGES="pip"))
    assert str(raised.value) == "CAUSALRANK_PACKAGES is 'pip'; it can be conda, conda-forge, wheels"


def test_conda_cannot_be_forced_without_one(online):
    environ = on_path(situation.FRONTEND, CAUSALRANK_PACKAGES="conda")
    with pytest.raises(ValueError) as raised:
        situation.choose(environ)
    assert str(raised.value) == "CAUSALRANK_PACKAGES is 'conda', but there is no conda on PATH"


def test_a_record_stays_when_the_network_goes(offline):
    situation.remember("conda-forge", "/nowhere")
    assert situation.choose(on_path("/nowhere")) == ("conda-forge", "")


def test_a_record_stays_when_the_network_comes(online, conda):
    situation.remember("wheels", str(conda.parent))
    assert situation.choose(on_path("/nowhere", conda.parent)) == ("wheels", "")


def test_a_record_is_not_for_a_conda_that_appears(online, conda):
    situation.remember("conda-forge", "/nowhere")
    assert situation.choose(on_path(conda.parent))[0] == "conda"


def test_a_record_is_not_for_a_conda_that_vanishes(online, conda):
    situation.remember("conda", str(conda.parent))
    conda.unlink()
    assert situation.choose(on_path(conda.parent))[0] == "conda-forge"


def test_a_record_is_not_for_another_conda(offline, conda, tmp_path):
    situation.remember("conda", str(conda.parent))
    other = executable(tmp_path / "other")
    assert situation.choose(on_path(other.parent, conda.parent))[0] == "wheels"


@pytest.mark.parametrize(
    "record",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"null",
        b"[]",
        b'"conda"',
        b"{}",
        b'{"situation": "wheels"}',
        b'{"conda": null}',
        b'{"situation": "pip", "conda": null}',
        b'{"situation": ["wheels"], "conda": null}',
    ],
)
def test_a_damaged_record_is_as_none(record, online):
    situation.RECORD.write_bytes(record)
    name, line = situation.choose(on_path("/nowhere"))
    assert name == "conda-forge" and line


def test_a_record_is_whole_and_alone(conda):
    situation.remember("wheels", "/nowhere")
    situation.remember("conda", str(conda.parent))
    assert json.loads(situation.RECORD.read_text()) == {"situation": "conda", "conda": str(conda)}
    files = [path for path in situation.RECORD.parent.iterdir() if path.is_file()]
    assert files == [situation.RECORD]


def test_conda_gets_its_path_untouched(online, conda):
    environ = on_path("/nowhere", conda.parent)
    path = environ["PATH"]
    name, line = situation.enter(environ)
    assert name == "conda" and str(conda) in line
    assert environ == {"PATH": path, "CAUSALRANK_PACKAGES": "conda", "PYTHONNOUSERSITE": "1"}


@pytest.mark.parametrize("forced", ["conda-forge", "wheels"])
def test_the_frontend_stands_in_before_any_conda(forced, conda):
    environ = on_path(conda.parent, "/nowhere", CAUSALRANK_PACKAGES=forced)
    assert situation.enter(environ) == (forced, "")
    driver = Path(sys.executable).parent
    expected = on_path(situation.FRONTEND, driver, conda.parent, "/nowhere")["PATH"]
    assert environ == {
        "PATH": expected,
        "CAUSALRANK_PACKAGES": forced,
        "PYTHONNOUSERSITE": "1",
    }
    assert shutil.which("conda", path=environ["PATH"]) == str(situation.FRONTEND / "conda")


def test_a_child_process_enters_the_same_situation(online, monkeypatch, closed_port):
    environ = on_path("/nowhere")
    assert situation.enter(environ)[0] == "conda-forge"
    first = environ["PATH"].split(os.pathsep)
    monkeypatch.setenv("CONDA_CHANNEL_ALIAS", closed_port)
    assert situation.enter(environ) == ("conda-forge", "")
    again = environ["PATH"].split(os.pathsep)
    assert again[:2] == first[:2] and again.count(str(situation.FRONTEND)) == 1


def test_a_situation_that_cannot_be_changes_nothing():
    environ = on_path("/nowhere", CAUSALRANK_PACKAGES="pip")
    before = dict(environ)
    with pytest.raises(ValueError):
        situation.enter(environ)
    assert environ == before


@pytest.mark.parametrize("with_conda", [False, True])
def test_what_is_remembered_after_entering_holds_for_the_next_run(with_conda, offline, conda):
    path = on_path(*([conda.parent] if with_conda else []), "/nowhere")["PATH"]
    environ = {"PATH": path}
    name, _ = situation.enter(environ)
    situation.remember(name, environ["PATH"])
    assert situation.choose({"PATH": path}) == (name, "")


def test_a_conda_beside_the_driver_that_is_not_on_path_spoils_no_record(
    offline, conda, monkeypatch
):
    monkeypatch.setattr(sys, "executable", str(conda.with_name("python")))
    environ = on_path("/nowhere")
    path = environ["PATH"]
    name, _ = situation.enter(environ)
    situation.remember(name, path)
    assert situation.choose(on_path("/nowhere")) == (name, "")
