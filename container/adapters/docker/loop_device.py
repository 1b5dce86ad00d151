"""Files as block devices: the kernel's loop devices, over its own calls. Needs root; all of it blocks."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

_CONTROL = Path("/dev/loop-control")
_SYSTEM = Path("/sys/block")
_MAJOR = 7
_SET_FILE, _CLEAR_FILE, _GET_FREE = 0x4C00, 0x4C01, 0x4C82
_TRIES = 64
_REMOVED = " (deleted)"


def can_attach() -> bool:
    """Whether this process may make them."""
    return os.access(_CONTROL, os.R_OK | os.W_OK)


def attach(file: Path) -> Path:
    """Make a device of a file.

    Raises:
        OSError: the kernel refused.
    """
    with _opened(file) as content:
        for _ in range(_TRIES):
            with _opened(_CONTROL) as control:
                number = fcntl.ioctl(control, _GET_FREE)
            device = Path(f"/dev/loop{number}")
            with suppress(FileExistsError):  # where /dev is a plain folder, nobody else makes it
                os.mknod(device, stat.S_IFBLK | 0o600, os.makedev(_MAJOR, number))
            with _opened(device) as opened:
                try:
                    fcntl.ioctl(opened, _SET_FILE, content)
                except OSError as error:
                    if error.errno != errno.EBUSY:  # another was faster: take the next
                        raise
                else:
                    return device
    raise OSError(errno.EBUSY, "no free loop device")


def attached(file: Path) -> list[Path]:
    """The devices that are of this file now, also after a restart of this process."""
    found: list[Path] = []
    for entry in _SYSTEM.glob("loop*/loop/backing_file"):
        with suppress(OSError):  # let go in this moment
            if entry.read_text().rstrip("\n") == str(file):
                found.append(Path("/dev") / entry.parts[-3])
    return found


def attached_to_removed(prefix: str, suffix: str) -> list[Path]:
    """The devices of files that are gone, whose names began and ended like this."""
    found: list[Path] = []
    for entry in _SYSTEM.glob("loop*/loop/backing_file"):
        with suppress(OSError):  # let go in this moment
            file, gone, _ = entry.read_text().partition(_REMOVED)
            name = Path(file).name
            if gone and name.startswith(prefix) and name.endswith(suffix):
                found.append(Path("/dev") / entry.parts[-3])
    return found


def detach(device: Path) -> None:
    """Let the file go; while it is mounted, as soon as it is not."""
    with suppress(OSError), _opened(device) as opened:  # it is gone already
        fcntl.ioctl(opened, _CLEAR_FILE)


@contextmanager
def _opened(path: Path) -> Generator[int]:
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
