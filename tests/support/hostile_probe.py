"""Runs as a job's command, with nothing but Python: tries to get out and to take too much; prints outcomes as JSON.

Arguments: the addresses of the host that answer outside, separated by commas, a TCP and UDP port, an abstract socket.
"""

# ruff: noqa: PTH101, PTH102, PTH108, PTH110, PTH112, PTH113, PTH116, PTH118, PTH123, PTH208, T201 -- the least that is needed

from __future__ import annotations

import ctypes
import errno
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Callable

MIB = 2**20
CALLS = {
    "unshare(user)": (272, 0x10000000),
    "unshare(net)": (272, 0x40000000),
    "clone(new user)": (56, 0x10000000 | 17, 0),
    "setns": (308, 0, 0),
    "mount": (165, 0, 0, 0, 0, 0),
    "umount2": (166, 0, 0),
    "move_mount": (429, 0, 0, 0, 0, 0),
    "pivot_root": (155, 0, 0),
    "chroot": (161, 0),
    "ptrace": (101, 16, 1, 0, 0),
    "process_vm_readv": (310, 1, 0, 0, 0, 0, 0),
    "pidfd_getfd": (438, 0, 0, 0),
    "bpf": (321, 0, 0, 0),
    "keyctl": (250, 0, 0, 0, 0, 0),
    "add_key": (248, 0, 0, 0, 0, 0),
    "userfaultfd": (323, 0),
    "io_uring_setup": (425, 1, 0),
    "perf_event_open": (298, 0, 0, 0, 0, 0),
    "init_module": (175, 0, 0, 0),
    "kexec_load": (246, 0, 0, 0, 0),
    "reboot": (169, 0, 0, 0, 0),
    "swapon": (167, 0, 0),
    "sethostname": (170, 0, 0),
    "settimeofday": (164, 0, 0),
    "acct": (163, 0),
    "quotactl": (179, 0, 0, 0, 0),
    "iopl": (172, 3),
    "open_by_handle_at": (304, 0, 0, 0),
    "socket(packet)": (41, 17, 3, 0),
    "socket(vsock)": (41, 40, 1, 0),
    "socket(alg)": (41, 38, 5, 0),
}
ENGINES = ("docker.sock", "podman/podman.sock", "containerd/containerd.sock", "crio/crio.sock")
DEVICES = (
    "mem",
    "kmem",
    "port",
    "kmsg",
    "fuse",
    "kvm",
    "loop0",
    "loop-control",
    "sda",
    "vda",
    "net/tun",
    "vhost-net",
)
KERNEL_FILES = (
    "/proc/sysrq-trigger",
    "/proc/sys/kernel/core_pattern",
    "/proc/sys/vm/overcommit_memory",
    "/proc/sys/net/ipv4/ip_forward",
    "/proc/irq/0/smp_affinity",
    "/sys/kernel/uevent_helper",
    "/sys/kernel/mm/ksm/run",
    "/sys/fs/cgroup/cgroup.procs",
    "/sys/fs/cgroup/memory/memory.limit_in_bytes",
    "/sys/fs/cgroup/memory.max",
    "/sys/fs/cgroup/pids/pids.max",
    "/sys/fs/cgroup/release_agent",
)
KERNEL_SECRETS = (
    "/proc/kcore",
    "/proc/keys",
    "/proc/timer_list",
    "/sys/firmware",
    "/proc/acpi",
)
READ_ONLY = (
    "/",
    "/etc",
    "/usr/bin",
    "/opt/portside",
    "/run",
    "/run/portside",
    "/var/tmp",
    "/root",
    "/home",
    "/dev",
)


def word(action: Callable[[], object]) -> str:
    """What came of it: the kernel's refusal by name, or that it worked."""
    try:
        action()
    except OSError as error:
        return errno.errorcode.get(error.errno or 0, type(error).__name__)
    return "worked"


def call(number: int, *arguments: int) -> str:
    """What one system call answers."""
    libc = ctypes.CDLL(None, use_errno=True)
    result = libc.syscall(number, *(ctypes.c_long(argument) for argument in arguments))
    if result == 0 and number == 56:
        os._exit(0)  # the child of a clone that was allowed
    return errno.errorcode[ctypes.get_errno()] if result == -1 else "worked"


def send(family: int, kind: int, address: tuple[str, int]) -> str:
    """Connect, or send a datagram."""

    def reach() -> None:
        with socket.socket(family, kind) as out:
            out.settimeout(3)
            if kind == socket.SOCK_DGRAM:
                out.sendto(b"hello", address)
            else:
                out.connect(address)

    return word(reach)


def unix(name: str) -> str:
    """Connect to a socket of this machine."""

    def reach() -> None:
        with socket.socket(socket.AF_UNIX) as out:
            out.connect(name)

    return word(reach)


def write(path: str, flags: int = os.O_WRONLY) -> str:
    """Open for writing."""
    return word(lambda: os.close(os.open(path, flags)))


def read(path: str) -> str:
    """Read a few bytes, or list."""

    def look() -> None:
        if os.path.isdir(path):
            if not os.listdir(path):
                raise FileNotFoundError(errno.ENOENT, "empty")
            return
        with open(path, "rb") as source:
            if not source.read(64):
                raise FileNotFoundError(errno.ENOENT, "empty")

    return word(look)


def network(hosts: list[str], port: int, abstract: str) -> dict[str, str]:
    """Every way to another address."""
    tcp, udp = socket.SOCK_STREAM, socket.SOCK_DGRAM
    four, six = socket.AF_INET, socket.AF_INET6
    far = [*hosts, "172.17.0.1", "10.0.2.2", "169.254.169.254", "192.0.2.1", "8.8.8.8"]
    return {
        **{f"tcp {host}": send(four, tcp, (host, port)) for host in far},
        **{f"udp {host}": send(four, udp, (host, port)) for host in far},
        "udp broadcast": send(four, udp, ("255.255.255.255", port)),
        "udp multicast": send(four, udp, ("224.0.0.251", 5353)),
        "dns by udp": send(four, udp, ("8.8.8.8", 53)),
        "tcp ipv6": send(six, tcp, ("2001:db8::1", port)),
        "tcp ipv6 metadata": send(six, tcp, ("fd00:ec2::254", port)),
        "tcp loopback": send(four, tcp, ("127.0.0.1", port)),
        "raw": word(lambda: socket.socket(four, socket.SOCK_RAW, socket.IPPROTO_ICMP)),
        "resolve": word(lambda: socket.getaddrinfo("example.com", 80)),
        "abstract socket": unix(f"\0{abstract}"),
    }


def privileges() -> dict[str, object]:
    """Ways to be somebody else."""
    mine = "/workspace/mine"
    shutil.copy("/bin/sh" if not os.path.exists("/usr/bin/id") else "/usr/bin/id", mine)
    os.chmod(mine, 0o6755)
    return {
        "setuid(0)": word(lambda: os.setuid(0)),
        "setgid(0)": word(lambda: os.setgid(0)),
        "setgroups": word(lambda: os.setgroups([0])),
        "chown to root": word(lambda: os.chown(mine, 0, 0)),
        "own set-user-id program": subprocess.run(
            [mine, "-u"], capture_output=True, text=True, check=False
        ).stdout,
        "a higher priority": word(lambda: os.nice(-5)),
        "make a device": word(lambda: os.mknod("/workspace/disk", stat.S_IFBLK | 0o600, os.makedev(7, 0))),
        "set-user-id programs": set_user_id(),
    }


def set_user_id() -> list[str]:
    """Programs that run as another."""
    found: list[str] = []
    for folder in ("/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/lib", "/usr/local/bin"):
        for name in os.listdir(folder) if os.path.isdir(folder) else ():
            path = os.path.join(folder, name)
            if os.path.isfile(path) and os.stat(path).st_mode & (stat.S_ISUID | stat.S_ISGID):
                found.append(path)
    return found


def fill(folder: str) -> dict[str, object]:
    """Write until there is no room, then make files until there can be no more."""
    written, reason = 0, ""
    try:
        with open(f"{folder}/big", "wb", buffering=0) as out:
            while written < 1024 * MIB:
                written += out.write(bytes(MIB))
    except OSError as error:
        reason = errno.errorcode[error.errno or 0]
    os.unlink(f"{folder}/big")
    made, no_more = 0, ""
    os.mkdir(f"{folder}/many")
    try:
        while made < 100_000:
            os.close(os.open(f"{folder}/many/{made}", os.O_CREAT))
            made += 1
    except OSError as error:
        no_more = errno.errorcode[error.errno or 0]
    shutil.rmtree(f"{folder}/many")
    return {"bytes": written, "reason": reason, "files": made, "no more": no_more}


def processes() -> dict[str, object]:
    """Start children until there can be no more."""
    made: list[int] = []
    reason = ""
    try:
        while len(made) < 2000:
            child = os.fork()
            if child == 0:
                signal.pause()
            made.append(child)
    except OSError as error:
        reason = errno.errorcode[error.errno or 0]
    for child in made:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    return {"made": len(made), "reason": reason}


def memory() -> int:
    """How a child ends that takes a gigabyte."""
    return subprocess.run(
        [sys.executable, "-c", "bytearray(2**30)"], capture_output=True, check=False
    ).returncode


def cpus() -> float:
    """How many the kernel lets this container have."""
    if os.path.exists("/sys/fs/cgroup/cpu.max"):
        quota, period = _numbers("/sys/fs/cgroup/cpu.max")
    else:
        (quota,), (period,) = (
            _numbers(f"/sys/fs/cgroup/cpu/cpu.cfs_{name}_us") for name in ("quota", "period")
        )
    return quota / period


def _numbers(path: str) -> list[float]:
    with open(path, encoding="ascii") as source:
        return [float(one) for one in source.read().replace("max", "inf").split()]


def flood() -> str:
    """Write into the container's own output."""

    def pour() -> None:
        with open("/proc/1/fd/1", "wb", buffering=0) as out:
            out.writelines(b"flood" * (MIB // 5) for _ in range(40))

    return word(pour)


def report(hosts: str, port: str, abstract: str) -> dict[str, object]:
    """All of it."""
    with open("/proc/self/mountinfo", encoding="utf-8") as lines:
        mounts = sorted({line.split()[4] for line in lines})
    return {
        "network": network(hosts.split(","), int(port), abstract),
        "interfaces": [name for _, name in socket.if_nameindex()],
        "engines": {name: unix(f"{folder}/{name}") for name in ENGINES for folder in ("/run", "/var/run")},
        "devices": {name: write(f"/dev/{name}") for name in DEVICES},
        "kernel files": {path: write(path) for path in KERNEL_FILES},
        "kernel secrets": {path: read(path) for path in KERNEL_SECRETS},
        "read-only": {path: write(f"{path}/.probe", os.O_WRONLY | os.O_CREAT) for path in READ_ONLY},
        "mounts": [path for path in mounts if not path.startswith(("/proc", "/sys", "/dev"))],
        "job socket": os.listdir("/run/portside"),
        "privileges": privileges(),
        "calls": {name: call(*arguments) for name, arguments in CALLS.items()},
        "memory": memory(),
        "processes": processes(),
        "workspace": fill("/workspace"),
        "state": fill("/state/home"),
        "cpus": cpus(),
        "flood": flood(),
    }


if __name__ == "__main__":
    print(json.dumps(report(*sys.argv[1:4])))
