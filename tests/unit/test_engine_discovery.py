"""Which engine is used, and what is refused on the way to one of our own."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from container.adapters.docker import packages
from container.adapters.docker.discovery import candidates, discover
from container.adapters.docker.faults import socket_path
from container.adapters.docker.private_daemon import PrivateDaemon
from container.engine.errors import EngineUnavailable
from orchestrator.diagnosis import repair
from orchestrator.settings import Settings

# --- where the engine is ---


def test_engines_are_looked_for_in_order() -> None:
    where = candidates(
        explicit=None,
        environment={"DOCKER_HOST": "unix:///env", "XDG_RUNTIME_DIR": "/run/user/7"},
        home=Path("/home/p"),
        uid=7,
    )
    assert [candidate.endpoint for candidate in where] == [
        "unix:///env",
        "unix:///var/run/docker.sock",
        "unix:///run/user/7/docker.sock",
        "unix:///run/podman/podman.sock",
        "unix:///run/user/7/podman/podman.sock",
        "unix:///home/p/engine/docker.sock",
    ]


def test_an_engine_that_was_asked_for_is_the_only_one() -> None:
    where = candidates(
        explicit="unix:///mine", environment={"DOCKER_HOST": "unix:///env"}, home=Path("/home/p"), uid=7
    )
    assert [candidate.endpoint for candidate in where] == ["unix:///mine"]


async def test_an_engine_that_was_asked_for_and_is_silent_is_not_replaced_by_one_of_our_own(
    tmp_path: Path,
) -> None:
    settings = Settings(home=tmp_path / "home", engine_url=f"unix://{tmp_path / 'none.sock'}")
    said: list[str] = []
    with pytest.raises(EngineUnavailable, match="or unset PORTSIDE_ENGINE_URL: then others are looked for"):
        await repair(settings, said.append)
    assert said == []


async def test_when_no_engine_answers_each_is_named_with_its_reason(tmp_path: Path) -> None:
    """BR-103: no socket, and an engine on another machine, are two different things."""
    environment = {"DOCKER_HOST": "tcp://10.0.0.1:2376", "XDG_RUNTIME_DIR": str(tmp_path)}
    where = candidates(explicit=None, environment=environment, home=tmp_path, uid=7)
    only_here = [at for at in where if at.source not in {"Docker", "Podman"}]
    found = await discover(only_here, answer_s=0.5)
    assert found.endpoint is None
    with pytest.raises(EngineUnavailable) as raised:
        found.require()
    lines = raised.value.message.splitlines()
    assert re.search(r"DOCKER_HOST: tcp://10.0.0.1:2376 is not supported", lines[1])
    assert re.search(r"Portside's own engine: .*does not exist", lines[-1])
    assert len(lines) == 1 + len(only_here)


def test_only_sockets_of_this_machine_are_taken() -> None:
    assert socket_path("unix:///a/b") == Path("/a/b")
    with pytest.raises(EngineUnavailable, match="cross to another machine"):
        socket_path("ssh://host")


# --- making one's own ---


def test_a_private_engine_is_refused_to_others_than_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(EngineUnavailable, match=r"needs root.*sudo portside doctor --fix"):
        PrivateDaemon(tmp_path).start()
    assert list(tmp_path.iterdir()) == []


def test_a_missing_dockerd_is_named_with_the_command_that_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        EngineUnavailable, match=r"dockerd is not installed\. (Type, as root: apt-get|Install docker)"
    ):
        PrivateDaemon(tmp_path / "e").start()


def test_a_path_too_long_for_a_socket_is_refused_before_anything_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "dockerd").write_text("#!/bin/sh\n")
    (tmp_path / "dockerd").chmod(0o755)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EngineUnavailable, match="PORTSIDE_HOME"):
        PrivateDaemon(tmp_path / ("x" * 120)).start()


def test_a_pid_file_that_names_somebody_else_is_not_believed(tmp_path: Path) -> None:
    """A number is used again; only a process that carries our own pid file is ours to stop."""
    daemon = PrivateDaemon(tmp_path)
    (tmp_path / "docker.pid").write_text(str(os.getpid()))
    assert daemon.pid() is None
    daemon.stop()  # would have ended this very process


def test_packages_are_not_installed_by_others_than_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(EngineUnavailable, match=r"docker\.io can't be installed here"):
        packages.install_docker()


def test_a_daemon_that_ends_at_once_is_told_with_its_last_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "dockerd").write_text("#!/bin/sh\necho no cgroups here >&2\nexit 1\n")
    (tmp_path / "dockerd").chmod(0o755)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(EngineUnavailable, match=r"ended at once: no cgroups here \(more in .*dockerd\.log"):
        PrivateDaemon(tmp_path / "e").start(deadline_s=20)
