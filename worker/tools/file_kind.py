"""What a directory entry is."""

from __future__ import annotations

import stat
from enum import StrEnum


class FileKind(StrEnum):
    """The kinds of entries that a directory may hold."""

    FILE = "file"
    DIRECTORY = "directory"
    LINK = "link"
    FIFO = "fifo"
    SOCKET = "socket"
    DEVICE = "device"

    @classmethod
    def of_mode(cls, mode: int) -> FileKind:
        """The kind that `st_mode` states."""
        kinds = {
            stat.S_IFREG: cls.FILE,
            stat.S_IFDIR: cls.DIRECTORY,
            stat.S_IFLNK: cls.LINK,
            stat.S_IFIFO: cls.FIFO,
            stat.S_IFSOCK: cls.SOCKET,
        }
        return kinds.get(stat.S_IFMT(mode), cls.DEVICE)
