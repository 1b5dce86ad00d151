"""The process that stands between the worker and one command, so that the command's tree can be ended.

Run as a script: `python -I -S supervisor.py OUT_FD ERR_FD PROGRAM ARGUMENT...`. It is the reaper of every
orphan below it, so whatever the command starts, `setsid` and double forks included, stays findable as its
descendant, and zombies are collected here without touching the exit codes of the worker's own children.

Its standard input begins with the command's environment, as `packed`. Then it takes orders: `T` or end of
file ends the tree (SIGTERM, 2 s later SIGKILL). Its standard output tells: `started PID`, `exited CODE`
(negative: the signal's number), and end of file once the last descendant is gone. It holds none of the
command's pipes.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from time import monotonic
from types import FrameType

GRACE_S = 2.0
_FREEZE_ROUNDS = 200
_REPEAT_S = 0.05
_PR_SET_CHILD_SUBREAPER = 36
_IGNORED_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGPIPE)


def packed(environment: Mapping[str, str]) -> bytes:
    """The size, a line break, and `NAME=VALUE` texts that each end with NUL."""
    data = b"".join(os.fsencode(f"{name}={value}") + b"\0" for name, value in environment.items())
    return b"%d\n" % len(data) + data


def _read_environment() -> dict[bytes, bytes]:
    digits = b""
    while (byte := os.read(0, 1)) not in {b"\n", b""}:
        digits += byte
    data = b""
    while len(data) < int(digits or b"0") and (piece := os.read(0, int(digits) - len(data))):
        data += piece
    return dict(one.split(b"=", 1) for one in data.split(b"\0")[:-1])


def descendants(root: int) -> list[int]:
    """The living processes below `root`, nearest first."""
    children: dict[int, list[int]] = {}
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            parent = _living_parent(entry.path)
            if parent is not None:
                children.setdefault(parent, []).append(int(entry.name))
    found = list(children.get(root, ()))
    for pid in found:
        found.extend(children.get(pid, ()))
    return found


def _living_parent(process: str) -> int | None:
    try:
        descriptor = os.open(f"{process}/stat", os.O_RDONLY)
    except FileNotFoundError:
        return None  # ended while we looked
    try:
        # The name in brackets may hold anything; the fields after it are plain.
        state, parent = os.read(descriptor, 4096).rpartition(b")")[2].split()[:2]
    except ProcessLookupError:
        return None
    finally:
        os.close(descriptor)
    return None if state in {b"Z", b"X"} else int(parent)


def signal_tree(root: int, *numbers: signal.Signals) -> None:
    """Send the signals to every living process below `root`."""
    for pid in descendants(root):
        for number in numbers:
            # Gone meanwhile, or changed to a user that we can't signal.
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)


def kill_tree(root: int) -> None:
    """Kill every living process below `root`.

    All are stopped first, until none is left that could start another: a fork bomb outruns the killing
    of one process after another.
    """
    stopped: set[int] = set()
    for _ in range(_FREEZE_ROUNDS):
        fresh = [pid for pid in descendants(root) if pid not in stopped]
        if not fresh:
            break
        for pid in fresh:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGSTOP)
        stopped.update(fresh)
    signal_tree(root, signal.SIGKILL)


def _wake(_number: int, _frame: FrameType | None) -> None:
    """A handler must stand there for the wake-up descriptor to be written."""


def _die_first() -> None:
    """When the container runs out of memory, what the command started goes before the worker does."""
    with suppress(OSError):
        descriptor = os.open("/proc/self/oom_score_adj", os.O_WRONLY)
        os.write(descriptor, b"1000")
        os.close(descriptor)


class Supervisor:
    """Starts the command, collects the dead, ends the tree on order."""

    def __init__(self, out: int, err: int) -> None:
        self._out = out
        self._err = err
        self._shell = 0
        self._listening = True
        self._kill_at: float | None = None

    def run(self, command: list[str]) -> None:
        """Return when the last descendant is gone."""
        environment = _read_environment()
        wake = self._watch_children()
        self._start(command, environment)
        while self._reap():
            ready, _, _ = select.select([0, wake] if self._listening else [wake], [], [], self._patience_s())
            if wake in ready:
                os.read(wake, 4096)
            if 0 in ready:
                self._obey(os.read(0, 64))
            if self._kill_at is not None and monotonic() >= self._kill_at:
                kill_tree(os.getpid())

    def _watch_children(self) -> int:
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        for number in _IGNORED_SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        wake, woken = os.pipe()
        os.set_blocking(woken, False)
        signal.signal(signal.SIGCHLD, _wake)
        signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
        return wake

    def _start(self, command: list[str], environment: Mapping[bytes, bytes]) -> None:
        gate, opener = os.pipe()
        self._shell = os.fork()
        if self._shell == 0:
            os.close(opener)
            self._become(command, environment, gate)
        # The worker knows the process before it can do anything, killing us included.
        self._tell(f"started {self._shell}")
        os.write(opener, b"!")
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 2)
        for descriptor in {self._out, self._err, nowhere, gate, opener}:
            os.close(descriptor)

    def _become(self, command: list[str], environment: Mapping[bytes, bytes], gate: int) -> None:
        """In the child: turn into the command, in a session of its own, once the gate opens."""
        try:
            os.setsid()
            _die_first()
            signal.set_wakeup_fd(-1)
            for number in (*_IGNORED_SIGNALS, signal.SIGCHLD, signal.SIGXFSZ):
                signal.signal(number, signal.SIG_DFL)
            for source, target in ((os.open(os.devnull, os.O_RDONLY), 0), (self._out, 1), (self._err, 2)):
                os.dup2(source, target)
            for pipe in {self._out, self._err} - {0, 1, 2}:
                os.close(pipe)
            if os.read(gate, 1):
                os.execve(command[0], command, environment)  # noqa: S606 - starting programs is its purpose
        finally:
            os._exit(127)

    def _reap(self) -> bool:
        """Collect the dead; False when there is nobody left to wait for."""
        try:
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return True
                if pid == self._shell:
                    self._tell(f"exited {os.waitstatus_to_exitcode(status)}")
        except ChildProcessError:
            return False

    def _patience_s(self) -> float | None:
        if self._kill_at is None:
            return None
        return max(_REPEAT_S, self._kill_at - monotonic())

    def _obey(self, order: bytes) -> None:
        self._listening = bool(order)
        if self._kill_at is None:
            self._kill_at = monotonic() + GRACE_S
            signal_tree(os.getpid(), signal.SIGTERM, signal.SIGCONT)

    @staticmethod
    def _tell(line: str) -> None:
        # When the worker is gone, the end of our input ends the tree.
        with suppress(BrokenPipeError):
            os.write(1, f"{line}\n".encode())


if __name__ == "__main__":
    Supervisor(int(sys.argv[1]), int(sys.argv[2])).run(sys.argv[3:])
