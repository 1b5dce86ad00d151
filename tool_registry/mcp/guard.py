"""Runs one command and leaves nothing of it behind.

A program of its own, standard library only, started as `python -I -S guard.py CONTROL_FD COMMAND ARGS...`
in about 15 ms. It lends the command its stdin, stdout and stderr and waits for one of two things:

- the command ends: what it started is ended too, and the guard ends the same way (same code or signal);
- CONTROL_FD closes, which the kernel does when the orchestrator dies, however it dies: everything is
  asked to stop, then killed.

Being a child subreaper (Linux), it finds descendants even where they left the process group.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import select
import signal
import sys
import time
from pathlib import Path
from typing import NoReturn

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
STOP_GRACE_S = 2.0
LEFTOVER_GRACE_S = 0.3
KILL_LIMIT_S = 5.0
NOT_STARTED = 127


def main(arguments: list[str]) -> NoReturn:
    """Guard the command until it, or the orchestrator, is gone."""
    control = int(arguments[0])
    os.set_inheritable(control, False)  # noqa: FBT003 - positional only
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    wake = _wake_on_signals()
    child = _start(arguments[1:])
    _let_go_of_stdio()
    status = None
    while status is None:
        readable, _, _ = select.select([control, wake], [], [])
        signals = os.read(wake, 4096) if wake in readable else b""
        status = _reap(child)
        if status is None and (control in readable or signal.SIGTERM in signals):
            _end_all(child, signal.SIGTERM, STOP_GRACE_S, wake)
            break
    else:
        _end_all(child, signal.SIGTERM, LEFTOVER_GRACE_S, wake)
    _end_all(child, signal.SIGKILL, KILL_LIMIT_S, wake)
    _end_like(status)


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _wake_on_signals() -> int:
    """A descriptor that becomes readable when a child ends or somebody asks us to stop."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, lambda _number, _frame: None)
    return reader


def _start(command: list[str]) -> int:
    guard = os.getpid()
    child = os.fork()
    if child:
        return child
    try:
        os.setpgid(0, 0)
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() == guard:
            os.execvp(command[0], command)  # noqa: S606 - no shell is what is wanted
    except OSError as error:
        os.write(2, f"cannot start {command[0]}: {error.strerror}\n".encode())
    finally:
        os._exit(NOT_STARTED)


def _let_go_of_stdio() -> None:
    """The command's pipes must show its end, so nobody else may hold them."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(nowhere, number)


def _reap(child: int) -> int | None:
    """Collect everything that has ended; answers the command's wait status once it is among them."""
    found = None
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            if pid == child:
                found = status
    return found


def _end_all(child: int, number: signal.Signals, within_s: float, wake: int) -> None:
    """Send a signal to all descendants until there is none, or the time is up."""
    deadline = time.monotonic() + within_s
    while _has_children() and time.monotonic() < deadline:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child, number)
        for pid in _children():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)
        select.select([wake], [], [], 0.05)
        _reap(child)


def _has_children() -> bool:
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _children() -> list[int]:
    """Who has this process as parent: the command and, as they get orphaned, its descendants."""
    own = os.getpid()
    found: list[int] = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            if int(entry.read_text(errors="replace").rpartition(")")[2].split()[1]) == own:
                found.append(int(entry.parent.name))
    return found


def _end_like(status: int | None) -> NoReturn:
    if status is not None and os.WIFSIGNALED(status):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        number = os.WTERMSIG(status)
        if number not in {signal.SIGKILL, signal.SIGSTOP}:
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    os._exit(os.waitstatus_to_exitcode(status) if status is not None and os.WIFEXITED(status) else 1)


if __name__ == "__main__":
    main(sys.argv[1:])
