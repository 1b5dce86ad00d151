"""Sandboxes in gVisor: selected by a setting, refused where it is not, and what it isolates (PD-74)."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from container.engine.errors import RuntimeUnknown
from orchestrator.settings import Settings
from orchestrator.wiring.engines import open_engine
from tests.support.command_line import ROOT, CommandLine
from tests.support.patient_engine import patient_engine
from tests.support.sandboxes import Sandboxes, socket_directory

pytestmark = [pytest.mark.docker, pytest.mark.xdist_group("gvisor")]

LOOK = """
import ctypes, json, os, socket
def call(number, *arguments):
    libc = ctypes.CDLL(None, use_errno=True)
    return "worked" if libc.syscall(number, *arguments) != -1 else os.strerror(ctypes.get_errno())
def reach(address):
    try:
        socket.create_connection(address, timeout=3).close()
    except OSError as error:
        return error.strerror or type(error).__name__
    return "worked"
def write(path):
    try:
        open(path, "x").close()
    except OSError as error:
        return error.strerror
    os.unlink(path)
    return "worked"
home = socket.socket(socket.AF_UNIX)
home.connect("/run/portside/s")
print(json.dumps({
    "kernel": os.uname().release,
    "ids": [os.getuid(), os.getgid()],
    "capabilities": [line.split()[1] for line in open("/proc/self/status") if line.startswith("CapEff")],
    "interfaces": [name for _, name in socket.if_nameindex()],
    "tcp": reach(("192.0.2.1", 80)),
    "calls": {name: call(*numbers) for name, numbers in {
        "bpf": (321, 0, 0, 0), "keyctl": (250, 99, 0, 0, 0, 0), "io_uring_setup": (425, 1, 0),
        "userfaultfd": (323, 0), "mount": (165, 0, 0, 0, 0, 0)}.items()},
    "root": write("/x"), "workspace": write("/workspace/x"), "socket directory": write("/run/portside/x"),
    "home": home.recv(100).decode(),
}))
"""


async def test_a_runtime_that_the_engine_does_not_know_is_refused_before_anything_starts(
    docker_endpoint: str, tmp_path: Path
) -> None:
    """With what it knows, and what to do."""
    settings = Settings(home=tmp_path, engine_url=docker_endpoint, sandbox_runtime="nosuch")
    with pytest.raises(RuntimeUnknown, match=r"nosuch; it knows .*runc.*unset PORTSIDE_SANDBOX_RUNTIME"):
        await open_engine(settings)


def test_a_run_with_an_unknown_runtime_says_so_and_ends(command_line: CommandLine) -> None:
    unknown = CommandLine(
        command_line.home, {**command_line.environment, "PORTSIDE_SANDBOX_RUNTIME": "nosuch"}
    )
    ran = unknown.run(
        "run", "t", "--model", f"scripted:{ROOT / 'examples' / 'scripts' / 'broken-calculator.yaml'}"
    )
    assert ran.exit_code == 1
    assert "does not know the runtime nosuch" in ran.err


async def test_a_sandbox_in_gvisor_has_a_kernel_of_its_own_and_only_the_way_home(
    gvisor: tuple[str, str], tmp_path: Path
) -> None:
    """The same seal as under runc: no network, no capability, a read-only root."""
    endpoint, image = gvisor
    boxes = Sandboxes(patient_engine(endpoint, runtime="runsc"), image)
    directory = socket_directory(tmp_path)

    async def answer(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hello from outside")
        await writer.drain()
        writer.close()

    async with await asyncio.start_unix_server(answer, directory / "s"):
        (directory / "s").chmod(0o666)
        status, printed = await boxes.python(LOOK, socket_dir=directory)
    assert status.exit_code == 0, printed
    seen: dict[str, Any] = json.loads(printed)
    assert seen["kernel"].startswith("4.4.0")  # what gVisor says, whatever the host has
    assert seen["ids"] == [1000, 1000]
    assert [int(one, 16) for one in seen["capabilities"]] == [0]
    assert seen["interfaces"] == ["lo"]
    assert seen["tcp"] in {"Network is unreachable", "No route to host"}
    assert "worked" not in seen["calls"].values(), seen["calls"]
    assert seen["root"] in {"Read-only file system", "Permission denied"}
    assert seen["workspace"] == "worked"
    assert seen["socket directory"] != "worked"
    assert seen["home"] == "hello from outside"
    description = await boxes.engine.describe()
    assert description.runtime == "runsc"
    assert any("gVisor" in note for note in description.notes)
    await boxes.remove_all()
    await boxes.engine.close()


@pytest.mark.timeout(300)
def test_a_whole_job_runs_in_gvisor(
    gvisor: tuple[str, str], command_line: CommandLine, tmp_path: Path
) -> None:
    endpoint, image = gvisor
    script = tmp_path / "script.yaml"
    calls = [
        ("shell", {"command": "uname -r > kernel; git --version"}),
        ("finish", {"success": True, "summary": "done"}),
    ]
    script.write_text(json.dumps({"turns": [{"call": [{"tool": t, "arguments": a}]} for t, a in calls]}))
    environment = {
        "PORTSIDE_ENGINE_URL": endpoint,
        "PORTSIDE_IMAGE": image,
        "PORTSIDE_SANDBOX_RUNTIME": "runsc",
    }
    ran = CommandLine(command_line.home, environment).run(
        "run", "t", "--model", f"scripted:{script}", "--json", timeout_s=240
    )
    assert ran.exit_code == 0, ran.out[-2000:] + ran.err
    assert "+4.4.0" in ran.lines[-1]["diff"]
