"""A job that tries everything: each attempt, and what came of it (DC-3, PD-73)."""

from __future__ import annotations

import json
import os
import shutil
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from orchestrator.probe import address_of_this_host
from tests.support.command_line import ROOT, CommandLine

pytestmark = [pytest.mark.e2e, pytest.mark.docker, pytest.mark.timeout(300)]

MIB = 2**20
UNREACHABLE = {"ENETUNREACH", "EADDRNOTAVAIL"}
REFUSED = {"EACCES", "EPERM", "EROFS", "ENOENT"}
DISK_BYTES = 48 * MIB
DISK_FILES = 3000


@pytest.fixture
def outside() -> Iterator[tuple[str, int, str]]:
    """What answers on this host: TCP and UDP on every address, and a socket without a file."""
    with ExitStack() as stack:
        tcp = stack.enter_context(socket.create_server(("0.0.0.0", 0)))
        port = tcp.getsockname()[1]
        udp = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        udp.bind(("0.0.0.0", port))
        name = f"portside-test-{uuid4().hex}"
        abstract = stack.enter_context(socket.socket(socket.AF_UNIX))
        abstract.bind(f"\0{name}")
        abstract.listen()
        yield address_of_this_host(), port, name


def test_a_hostile_job_gets_nowhere_and_takes_no_more_than_its_share(
    command_line: CommandLine, tmp_path: Path, outside: tuple[str, int, str]
) -> None:
    """BR-106, BR-107: and it ends as any job does, with its diff."""
    host, port, abstract = outside
    workspace = tmp_path / "w"
    workspace.mkdir()
    shutil.copy(ROOT / "tests" / "support" / "hostile_probe.py", workspace / "probe.py")
    probe = f"python3 probe.py {host} {port} {abstract} > report.json"
    script = tmp_path / "script.yaml"
    calls = [("shell", {"command": probe}), ("finish", {"success": True, "summary": "done"})]
    script.write_text(json.dumps({"turns": [{"call": [{"tool": t, "arguments": a}]} for t, a in calls]}))
    bounded = {"PORTSIDE_DISK_BYTES": str(DISK_BYTES), "PORTSIDE_DISK_FILES": str(DISK_FILES)}
    hostile = replace(command_line, environment={**command_line.environment, **bounded})

    ran = hostile.run(
        *("run", "try", "--workspace", str(workspace), "--model", f"scripted:{script}"),
        *("--memory", "512m", "--cpus", "0.5", "--json"),
        timeout_s=240,
    )

    assert ran.exit_code == 0, ran.out[-2000:] + ran.err
    (line,) = [one for one in ran.lines[-1]["diff"].splitlines() if one.startswith('+{"network"')]
    seen = json.loads(line[1:])
    _check_network(seen)
    _check_host(seen)
    _check_privileges(seen)
    _check_share(seen)
    assert "flood" * 10 not in ran.out
    assert [left.name for left in (command_line.home / "disks").glob("portside-*")] == []


def _check_network(seen: dict[str, Any]) -> None:
    ways = seen["network"]
    assert seen["interfaces"] == ["lo"]
    assert ways.pop("tcp loopback") == "ECONNREFUSED"  # its own, where nobody listens
    assert ways.pop("abstract socket") == "ECONNREFUSED"
    assert ways.pop("raw") == "EPERM"
    assert ways.pop("resolve") == "gaierror"
    assert len(ways) == 17
    assert {way: came for way, came in ways.items() if came not in UNREACHABLE} == {}


def _check_host(seen: dict[str, Any]) -> None:
    assert set(seen["engines"].values()) == {"ENOENT"}
    assert {name: came for name, came in seen["devices"].items() if came not in REFUSED} == {}
    assert {path: came for path, came in seen["kernel files"].items() if came not in REFUSED} == {}
    assert {path: came for path, came in seen["kernel secrets"].items() if came not in REFUSED} == {}
    assert {path: came for path, came in seen["read-only"].items() if came not in REFUSED} == {}
    assert seen["job socket"] == ["s"]
    mounts = {
        path
        for path in seen["mounts"]
        if not path.startswith(("/etc/", "/sbin/docker-init", "/usr/sbin/docker-init"))
    }
    assert mounts == {"/", "/run/portside", "/state", "/tmp", "/workspace"}


def _check_privileges(seen: dict[str, Any]) -> None:
    privileges = seen["privileges"]
    assert privileges.pop("own set-user-id program") == "1000\n"
    assert privileges.pop("set-user-id programs") == []
    assert set(privileges.values()) == {"EPERM"}, privileges
    assert set(seen["calls"].values()) == {"EPERM"}, seen["calls"]


def _check_share(seen: dict[str, Any]) -> None:
    assert seen["memory"] == -9
    assert seen["processes"]["reason"] == "EAGAIN"
    assert seen["processes"]["made"] < 512
    assert seen["cpus"] == 0.5
    assert seen["flood"] in {"worked", "EACCES"}
    if os.geteuid() != 0:
        return  # only root can bound a disk; `doctor` says so
    for place in ("workspace", "state"):
        assert (seen[place]["reason"], seen[place]["no more"]) == ("ENOSPC", "ENOSPC")
        assert seen[place]["bytes"] < DISK_BYTES
        assert seen[place]["files"] < DISK_FILES + 200  # a little is rounded up
