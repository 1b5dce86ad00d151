"""A look from inside a sandbox that is made as a job's is: what it reaches, and what it may do."""

from __future__ import annotations

import asyncio
import json
import socket
import uuid
from dataclasses import dataclass
from typing import Any

from starlette.types import Receive, Scope, Send

from container.engine.errors import EngineError
from container.engine.port import SandboxEngine
from container.engine.sandbox import SandboxSpec, SandboxState, WorkerStart
from orchestrator.adapters.sockets.unix import SOCKET_NAME, UnixJobSockets
from orchestrator.home import socket_root

LABEL = "io.portside.doctor"
_DEADLINE_S = 60.0
_POLL_S = 0.1
_NO_EGRESS = "use an engine that supports network mode none"
_NOT_SEALED = "use an engine that keeps to the isolation it is asked for"

# Runs inside, on nothing but Python's own library.
_CODE = """
import errno, json, os, socket, sys

def word(action):
    try:
        action()
    except OSError as error:
        return errno.errorcode.get(error.errno, type(error).__name__)
    return "reached"

def ours():
    with socket.socket(socket.AF_UNIX) as line:
        line.settimeout(10)
        line.connect("/run/portside/" + sys.argv[1])
        line.sendall(b"GET / HTTP/1.1\\r\\nHost: portside\\r\\nConnection: close\\r\\n\\r\\n")
        if b" 200 " not in line.recv(200):
            raise OSError(errno.EPROTO, "no answer")

def tcp(host, port):
    socket.create_connection((host, int(port)), timeout=3).close()

def udp(host, port):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
        out.sendto(b"hello", (host, int(port)))

def writes(path):
    with open(path, "x"):
        os.unlink(path)

def status(name, missing=None):
    with open("/proc/self/status") as lines:
        return next((line.split()[1] for line in lines if line.startswith(name + ":")), missing)

room = os.statvfs("/workspace")

print(json.dumps({
    "socket": word(ours),
    "tcp": [word(lambda: tcp(host, sys.argv[3])) for host in [*sys.argv[2].split(","), "192.0.2.1"]],
    "dns": word(lambda: socket.getaddrinfo("example.com", 80)),
    "interfaces": [name for _, name in socket.if_nameindex()],
    "udp": word(lambda: udp(sys.argv[2].split(",")[0], sys.argv[3])),
    "raw": word(lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP).close()),
    "root": word(lambda: writes("/.portside-probe")),
    "disk": [room.f_blocks * room.f_frsize, room.f_files],
    "engine": [name for name in ("docker.sock", "podman/podman.sock") if os.path.exists("/run/" + name)],
    "seccomp": status("Seccomp", "0"),
    "kernel": os.uname().release,
    "uid": os.getuid(),
    "capabilities": [status(name) for name in ("CapPrm", "CapEff", "CapBnd")],
}))
"""


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing seen from inside, and what to do when it is not as it should be."""

    good: bool
    seen: str
    fix: str = ""


@dataclass(frozen=True, slots=True)
class Expected:
    """What a sandbox of this engine should have.

    Attributes:
        disk_bytes: of its workspace at most; None where it is not bounded.
        filtered: its system calls pass a seccomp filter.
    """

    disk_bytes: int | None = None
    filtered: bool = True


async def probe(
    engine: SandboxEngine,
    start: WorkerStart,
    expected: Expected = Expected(),
) -> dict[str, Fact]:
    """Start a sandbox with a socket of ours and let it tell what it sees.

    It also tries to connect to a listener on this host, which answers: what is denied is denied by the box.

    Raises:
        EngineError: it can't be started, or told nothing within a minute.
    """
    sockets = UnixJobSockets(socket_root("doctor"), mark=LABEL)
    sockets.serve(_hello)
    name = uuid.uuid4().hex
    directory = await sockets.open(name, None)
    host = address_of_this_host()
    listener = await asyncio.start_server(lambda _, writer: writer.close(), host, 0)
    port = listener.sockets[0].getsockname()[1]
    try:
        spec = SandboxSpec(
            name=f"portside-doctor-{name[:12]}",
            image=start.image,
            command=(*start.python, "-c", _CODE, SOCKET_NAME, host, str(port)),
            env=start.env,
            kit=start.kit,
            labels={LABEL: name},
            socket_dir=directory,
            deadline_s=_DEADLINE_S,
        )
        return facts_of(await _told(engine, spec), expected)
    finally:
        listener.close()
        await sockets.close(name)


async def _told(engine: SandboxEngine, spec: SandboxSpec) -> dict[str, Any]:
    ref = await engine.launch(spec)
    try:
        async with asyncio.timeout(_DEADLINE_S):
            while (await engine.inspect(ref)).state in {SandboxState.CREATED, SandboxState.RUNNING}:  # noqa: ASYNC110
                await asyncio.sleep(_POLL_S)
        words = await engine.logs(ref)
    except TimeoutError as error:
        raise EngineError(f"the probe did not end within {_DEADLINE_S:g} s") from error
    finally:
        await engine.remove(ref)
    try:
        return json.loads(words)
    except ValueError as error:
        raise EngineError(f"the probe broke: {words.strip()[-500:] or 'it said nothing'}") from error


def facts_of(told: dict[str, Any], expected: Expected = Expected()) -> dict[str, Fact]:
    """What the probe's own account means."""
    unreachable = {"ENETUNREACH", "EHOSTUNREACH"}
    size, files = told["disk"]
    bounded = expected.disk_bytes is None or size <= expected.disk_bytes
    capabilities = [int(one, 16) for one in told["capabilities"]]
    return {
        "socket": Fact(
            told["socket"] == "reached",
            f"the orchestrator's socket: {told['socket']}",
            "use a local engine: sockets of this host do not reach into a virtual machine or a remote engine",
        ),
        "egress": Fact(
            {*told["tcp"], told["udp"]} <= unreachable
            and told["raw"] != "reached"
            and set(told["interfaces"]) <= {"lo"},
            f"TCP outside: {', '.join(told['tcp'])}; UDP: {told['udp']}; raw packets: {told['raw']}; "
            f"interfaces: {', '.join(told['interfaces'])}",
            _NO_EGRESS,
        ),
        "dns": Fact(told["dns"] != "reached", f"a name outside: {told['dns']}", _NO_EGRESS),
        "root": Fact(
            told["root"] in {"EROFS", "EACCES"}, f"writing to the root: {told['root']}", _NOT_SEALED
        ),
        "engine sockets": Fact(
            not told["engine"], f"{', '.join(told['engine']) or 'none'} inside", _NOT_SEALED
        ),
        "disk": Fact(
            bounded,
            f"a workspace has {size / 1024**3:.1f} GiB and {files} files"
            f"{'' if expected.disk_bytes else ', shared with everything on the engine'}",
            "remove volumes of that name on the engine, or set PORTSIDE_DISK_BYTES=0 to go without a bound",
        ),
        "filter": Fact(
            told["seccomp"] == "2" or not expected.filtered,
            f"system calls are {'filtered' if told['seccomp'] == '2' else 'not filtered'}; "
            f"the kernel says it is {told['kernel']}",
            "use an engine with seccomp",
        ),
        "user": Fact(told["uid"] == 1000, f"runs as uid {told['uid']}", _NOT_SEALED),
        "capabilities": Fact(
            not any(capabilities),
            f"has {'none' if not any(capabilities) else told['capabilities']}",
            _NOT_SEALED,
        ),
    }


def address_of_this_host() -> str:
    """The address that a network would reach this host by; loopback where it has no network."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
        try:
            out.connect(("192.0.2.1", 9))  # sends nothing: only picks the way
        except OSError:
            return "127.0.0.1"
        return str(out.getsockname()[0])


async def _hello(_scope: Scope, _receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b""})
