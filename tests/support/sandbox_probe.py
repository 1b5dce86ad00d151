"""Runs inside a sandbox, with nothing but Python: prints what it can see and do, as JSON."""

# ruff: noqa: PTH108, PTH110, PTH116, PTH123, PTH208, T201 -- the least that a bare interpreter needs

from __future__ import annotations

import ctypes
import errno
import json
import os
import resource
import socket

CALLS = {
    "unshare(user)": (272, 0x10000000),
    "clone(new user)": (56, 0x10000000 | 17, 0),
    "clone3": (435, 0, 0),
    "setns": (308, 0, 0),
    "mount": (165, 0, 0, 0, 0, 0),
    "ptrace": (101, 16, 1, 0, 0),
    "process_vm_readv": (310, 1, 0, 0, 0, 0, 0),
    "pidfd_getfd": (438, 0, 0, 0),
    "bpf": (321, 0, 0, 0),
    "keyctl": (250, 0, 0, 0, 0, 0),
    "add_key": (248, 0, 0, 0, 0, 0),
    "request_key": (249, 0, 0, 0, 0),
    "userfaultfd": (323, 0),
    "io_uring_setup": (425, 1, 0),
    "perf_event_open": (298, 0, 0, 0, 0, 0),
    "chroot": (161, 0),
    "open_by_handle_at": (304, 0, 0, 0),
    "personality(32 bit)": (135, 0x0800000),
    "socket(packet)": (41, 17, 3, 0),
    "socket(vsock)": (41, 40, 1, 0),
    "socket(alg)": (41, 38, 5, 0),
}
KNOWN = {"HOME", "HOSTNAME", "LANG", "LC_CTYPE", "PATH", "PWD", "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED"}


def outcome(number: int, *arguments: int) -> str:
    """What one system call answers."""
    libc = ctypes.CDLL(None, use_errno=True)
    result = libc.syscall(number, *(ctypes.c_long(argument) for argument in arguments))
    if result == 0 and number == 56:
        os._exit(0)  # the child of a clone that was allowed
    return errno.errorcode[ctypes.get_errno()] if result == -1 else "allowed"


def status(field: str) -> str:
    """One line of this process's own account."""
    with open("/proc/self/status", encoding="ascii") as lines:
        return next(line.split()[1] for line in lines if line.startswith(f"{field}:"))


def resolves() -> bool:
    """Whether a name becomes an address."""
    try:
        socket.getaddrinfo("example.com", 80)
    except OSError:
        return False
    return True


def reaches() -> bool:
    """Whether any address outside takes a packet."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
        try:
            out.connect(("192.0.2.1", 9))
        except OSError:
            return False
    return True


def is_writable(directory: str) -> bool:
    """Whether a file can be made there; permission bits alone do not tell."""
    path = f"{directory}/.probe"
    try:
        with open(path, "x", encoding="ascii"):
            os.unlink(path)
    except OSError:
        return False
    return True


def writable() -> list[str]:
    """Every directory in which a file can be made, but for the kernel's own."""
    found: list[str] = []
    for directory, names, _files in os.walk("/"):
        if directory == "/":
            names[:] = [name for name in names if name not in {"proc", "sys"}]
        if is_writable(directory):
            found.append(directory)
    return sorted(found)


def size(path: str) -> int:
    """Bytes that a file system holds."""
    seen = os.statvfs(path)
    return seen.f_blocks * seen.f_frsize


with open("/proc/1/cmdline", encoding="utf-8") as first:
    first_process = first.read().replace("\0", " ")
report = {
    "ids": [os.getuid(), os.geteuid(), os.getgid(), os.getegid()],
    "capabilities": {
        name: int(status(name), 16) for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")
    },
    "no_new_privileges": status("NoNewPrivs"),
    "seccomp": status("Seccomp"),
    "interfaces": [name for _number, name in socket.if_nameindex()],
    "resolves": resolves(),
    "reaches": reaches(),
    "engine_sockets": [
        path
        for path in ("/var/run/docker.sock", "/run/docker.sock", "/run/podman/podman.sock", "/run/containerd")
        if os.path.exists(path)
    ],
    "foreign_environment": {name: value for name, value in os.environ.items() if name not in KNOWN},
    "first_process": first_process,
    "writable": writable(),
    "owners": {
        path: [os.stat(path).st_uid, os.stat(path).st_gid] for path in ("/workspace", "/state", "/state/home")
    },
    "run_portside": os.listdir("/run/portside"),
    "system_calls": {name: outcome(*call) for name, call in CALLS.items()},
    "limits": {
        "nofile": resource.getrlimit(resource.RLIMIT_NOFILE),
        "core": resource.getrlimit(resource.RLIMIT_CORE),
    },
    "sizes": {path: size(path) for path in ("/tmp", "/dev/shm")},
}
print(json.dumps(report))
