"""What a process finds when it tries to get out of a sandbox. Everything is proven from inside."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from container.adapters.docker.engine import DockerEngine
from container.engine.sandbox import Limits
from tests.support.sandboxes import Sandboxes, socket_directory

pytestmark = pytest.mark.docker

LOOK = Path(__file__).parent.parent / "support" / "sandbox_probe.py"


@dataclass(frozen=True)
class Place:
    """An engine, an image that it has, and what it puts into every environment."""

    engine: DockerEngine
    image: str
    environment: Mapping[str, str]


@pytest.fixture(params=["docker", pytest.param("podman", marks=pytest.mark.xdist_group("podman"))])
def place(request: pytest.FixtureRequest) -> Place:
    """Either engine."""
    engine = request.getfixturevalue(f"{request.param}_engine")
    if request.param == "docker":
        return Place(engine, request.getfixturevalue("worker_image"), {})
    return Place(engine, request.getfixturevalue("podman")[1], {"TERM": "xterm", "container": "podman"})


@pytest.fixture
async def boxes(place: Place) -> AsyncIterator[Sandboxes]:
    """Sandboxes on it, removed at the end."""
    made = Sandboxes(place.engine, place.image)
    yield made
    await made.remove_all()


@pytest.fixture
async def seen(boxes: Sandboxes, tmp_path: Path) -> dict[str, Any]:
    """What the probe inside reports, with a job's directory mounted."""
    directory = socket_directory(tmp_path)
    (directory / "token").write_text("t")
    status, printed = await boxes.python(LOOK.read_text(), socket_dir=directory)
    assert status.exit_code == 0, printed
    return json.loads(printed)


async def test_a_sandbox_is_sealed(seen: dict[str, Any], place: Place) -> None:
    """No network, no capability, no privilege to gain, no other user, nothing of the host."""
    assert seen["ids"] == [1000, 1000, 1000, 1000]
    assert seen["capabilities"] == {"CapInh": 0, "CapPrm": 0, "CapEff": 0, "CapBnd": 0, "CapAmb": 0}
    assert seen["no_new_privileges"] == "1"
    assert seen["seccomp"] == "2"
    assert seen["interfaces"] == ["lo"]
    assert seen["resolves"] is False
    assert seen["reaches"] is False
    assert seen["engine_sockets"] == []
    assert seen["foreign_environment"] == place.environment
    assert seen["first_process"].startswith(("/sbin/docker-init", "/dev/init", "/run/podman-init"))


async def test_only_workspace_state_and_temporary_places_are_writable(
    seen: dict[str, Any],
) -> None:
    assert seen["writable"] == ["/dev/shm", "/state", "/state/home", "/tmp", "/workspace"]
    assert seen["owners"] == {"/workspace": [1000, 1000], "/state": [1000, 1000], "/state/home": [1000, 1000]}
    assert seen["run_portside"] == ["token"]


async def test_dangerous_system_calls_are_refused(seen: dict[str, Any]) -> None:
    """clone3 alone is said not to exist, so that libraries fall back to clone."""
    answers = seen["system_calls"]
    assert answers.pop("clone3") == "ENOSYS"
    assert len(answers) == 20
    assert set(answers.values()) == {"EPERM"}, answers


async def test_system_calls_of_the_32_bit_table_kill_the_caller(boxes: Sandboxes) -> None:
    """A filter by number would otherwise let 32-bit numbers mean other calls."""
    status, printed = await boxes.python(
        "import ctypes, mmap\n"
        "page = mmap.mmap(-1, 4096, prot=7)\n"
        "page.write(bytes.fromhex('b814000000cd80c3'))\n"  # mov eax, 20 (getpid); int 0x80; ret
        "address = ctypes.addressof(ctypes.c_char.from_buffer(page))\n"
        "print('before', flush=True)\n"
        "print('pid', ctypes.CFUNCTYPE(ctypes.c_int)(address)())\n"
    )
    assert printed == "before\n"
    assert status.exit_code == 128 + 31  # SIGSYS


async def test_ordinary_work_goes_on_under_the_filter(boxes: Sandboxes) -> None:
    """Threads, child processes, git, ripgrep, patch, sockets, executables in /tmp."""
    status, printed = await boxes.run(
        "bash",
        "-euc",
        "git init -q . && git config user.email a@b.c && git config user.name n && echo a > f && git add f"
        " && git commit -qm m && git status --short && rg -c a f"
        " && printf -- '--- f\\n+++ f\\n@@ -1 +1 @@\\n-a\\n+b\\n' | patch -s f && cat f"
        " && printf '#!/bin/sh\\necho ran\\n' > /tmp/x && chmod +x /tmp/x && /tmp/x"
        " && python -c 'import asyncio, subprocess, threading, socket, multiprocessing as m\n"
        'threads = [threading.Thread(target=len, args=("",)) for _ in range(50)]\n'
        "[t.start() for t in threads]; [t.join() for t in threads]\n"
        'assert subprocess.run(["true"]).returncode == 0\n'
        'assert m.get_context("spawn").Process(target=print).exitcode is None\n'
        'p = m.get_context("fork").Process(target=print, args=("child",)); p.start(); p.join()\n'
        's = socket.socketpair(); s[0].send(b"x"); assert s[1].recv(1) == b"x"\n'
        'socket.create_server(("127.0.0.1", 0)).close()\n'
        'asyncio.run(asyncio.sleep(0))\nprint("done")\'',
    )
    assert (status.exit_code, printed.split()) == (0, ["1", "b", "ran", "child", "done"])


async def test_limits_are_held(seen: dict[str, Any]) -> None:
    assert seen["limits"]["nofile"] == [4096, 4096]
    assert seen["limits"]["core"] == [0, 0]
    assert seen["sizes"] == {"/tmp": 512 * 1024**2, "/dev/shm": 64 * 1024**2}


async def test_processes_are_limited_and_the_sandbox_survives_it(boxes: Sandboxes) -> None:
    """BR-106 job B: a fork bomb meets its limit inside, and the sandbox ends in its normal time."""
    code = (
        "import os, signal, time\nmade = []\n"
        "try:\n    while len(made) < 500:\n        pid = os.fork()\n"
        "        if pid == 0: signal.pause()\n        made.append(pid)\n"
        "except BlockingIOError:\n    pass\n"
        "print(len(made)); [os.kill(pid, 9) for pid in made]\n"
    )
    status, printed = await boxes.python(code, limits=replace(Limits(), pids=64))
    assert status.exit_code == 0
    assert 50 < int(printed) < 64


async def test_a_temporary_file_system_ends_at_its_size(boxes: Sandboxes) -> None:
    code = (
        "written = 0\n"
        "try:\n    with open('/tmp/big', 'wb') as out:\n        while True:\n"
        "            written += out.write(bytes(2**20)); out.flush()\n"
        "except OSError as error:\n    print(error.errno, written)\n"
    )
    status, printed = await boxes.python(code, limits=replace(Limits(), tmp_bytes=16 * 2**20))
    assert status.exit_code == 0
    assert printed == f"28 {16 * 2**20}\n"  # ENOSPC


async def test_the_worker_reaches_a_socket_in_its_directory_and_cannot_change_the_directory(
    boxes: Sandboxes, tmp_path: Path
) -> None:
    """BR-102, BR-111: no ports and no host names; the way home is one unix socket."""
    directory = socket_directory(tmp_path)
    heard: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.readline())
        writer.write(b"hello from outside\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_unix_server(answer, directory / "s")
    (directory / "s").chmod(0o666)
    async with server:
        status, printed = await boxes.python(
            "import os, socket\n"
            "s = socket.socket(socket.AF_UNIX); s.connect('/run/portside/s'); s.sendall(b'hi\\n')\n"
            "print(s.recv(100).decode(), end='')\n"
            "try: os.unlink('/run/portside/s')\nexcept OSError as error: print(error.strerror)\n",
            socket_dir=directory,
        )
    assert (status.exit_code, heard) == (0, [b"hi\n"])
    assert printed == "hello from outside\nRead-only file system\n"


async def test_a_restarted_orchestrator_is_reached_through_the_same_directory(
    boxes: Sandboxes, tmp_path: Path
) -> None:
    """The directory is mounted, not the socket: a socket made anew is seen inside."""
    directory = socket_directory(tmp_path)
    ref = await boxes.launch(
        "python3",
        "-c",
        "import os, time\nprint('up', flush=True)\n"
        "while not os.path.exists('/run/portside/s'): time.sleep(0.02)\nprint('seen')",
        socket_dir=directory,
    )
    await boxes.printed(ref, "up")
    server = await asyncio.start_unix_server(lambda _r, w: w.close(), directory / "s")
    async with server:
        assert (await boxes.finish(ref)).exit_code == 0
