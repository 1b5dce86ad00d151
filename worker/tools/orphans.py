"""Processes that lost their supervisor and fell to the worker, which is the reaper of all below it."""

from __future__ import annotations

import ctypes
import os
import select
import signal
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic

from worker.tools.supervisor import kill_tree

_PR_GET_CHILD_SUBREAPER = 37
_LIMIT_S = 2.0


@dataclass(frozen=True, slots=True)
class _Child:
    pid: int
    session: int


def end_orphans() -> None:
    """Kill and collect every child of this process that a command left behind; blocking, two seconds at most.

    A command runs in a session of its own, and nothing below it can come back into the worker's, in which
    the supervisors stay: a child in another session is a command's. A process that is no reaper of orphans
    has none.
    """
    if not _is_reaper():
        return
    end = monotonic() + _LIMIT_S
    own = os.getsid(0)
    while orphans := [child for child in _children() if child.session != own]:
        for orphan in orphans:
            kill_tree(orphan.pid)
            with suppress(ProcessLookupError, PermissionError):
                os.kill(orphan.pid, signal.SIGKILL)
            _collect(orphan.pid, end)
        if monotonic() >= end:
            return


def _collect(pid: int, end: float) -> None:
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        select.select([handle], [], [], max(0.0, end - monotonic()))
    finally:
        os.close(handle)
    with suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


def _is_reaper() -> bool:
    answer = ctypes.c_int(0)
    ctypes.CDLL(None).prctl(_PR_GET_CHILD_SUBREAPER, ctypes.byref(answer), 0, 0, 0)
    return answer.value == 1


def _children() -> list[_Child]:
    """The direct children of this process, the dead that nobody collected included."""
    found: list[_Child] = []
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit():
            continue
        try:
            descriptor = os.open(f"{entry.path}/stat", os.O_RDONLY)
        except FileNotFoundError:
            continue  # ended while we looked
        try:
            _state, parent, _group, session = os.read(descriptor, 4096).rpartition(b")")[2].split()[:4]
        except ProcessLookupError:
            continue
        finally:
            os.close(descriptor)
        if int(parent) == os.getpid():
            found.append(_Child(int(entry.name), int(session)))
    return found
