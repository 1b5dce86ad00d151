"""What the process does to itself before it holds a secret."""

from __future__ import annotations

import ctypes
import logging
import os
import resource

_PR_SET_DUMPABLE = 4
_PR_SET_CHILD_SUBREAPER = 36


class HardeningFailed(Exception):
    """The kernel refused; the worker must not go on with a secret in its memory."""


def harden() -> None:
    """Close this process's memory and environment to its children, and make orphans its own.

    No core is written, `/proc/<pid>/mem` and `/proc/<pid>/environ` can't be opened by a process of the
    same user, and what an agent's commands leave behind is reparented here, where it can be ended, if the
    kernel has that.

    Raises:
        HardeningFailed: the kernel refused what keeps the memory closed.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _prctl(_PR_SET_DUMPABLE, 0)
    try:
        _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    except HardeningFailed as error:
        # gVisor does not have it. What commands leave behind goes to the container's first process then.
        logging.getLogger("portside.worker").info("orphans are not the worker's own: %s", error)


def _prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    zero = ctypes.c_ulong(0)
    if libc.prctl(ctypes.c_int(option), ctypes.c_ulong(value), zero, zero, zero) != 0:
        number = ctypes.get_errno()
        raise HardeningFailed(f"prctl({option}, {value}): {os.strerror(number)}")
