"""What a tool refuses, on its way to the model."""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import Any

import anyio.to_thread

from tool_registry.output import ToolOutput

_OS_CODES = {
    errno.ENOENT: ("not_found", "does not exist"),
    errno.ENOTDIR: ("not_a_directory", "has a part that is a file, not a directory"),
    errno.EISDIR: ("is_a_directory", "is a directory"),
    errno.EEXIST: ("already_exists", "exists already"),
    errno.EACCES: ("permission_denied", "may not be touched: permission denied"),
    errno.EPERM: ("permission_denied", "may not be touched: permission denied"),
    errno.ELOOP: ("link_loop", "goes through too many levels of symbolic links"),
    errno.ENAMETOOLONG: ("bad_path", "is too long for a path here"),
    errno.ENOSPC: ("no_space", "can't be written: no space left on the device; nothing was changed"),
    errno.EDQUOT: ("no_space", "can't be written: the disk quota is used up; nothing was changed"),
    errno.EFBIG: ("no_space", "can't be written: larger than files may be here; nothing was changed"),
    errno.EROFS: ("permission_denied", "is on a read-only file system"),
    errno.ENXIO: ("not_a_file", "is not a regular file"),
}


class Refused(Exception):
    """A call that a tool will not carry out, with words that let the model do better.

    Attributes:
        code: stable machine-readable name.
        message: what is wrong and what to do.
        details: further fields of the answer.
    """

    def __init__(self, code: str, message: str, **details: Any) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.details = details

    @classmethod
    def by_system(cls, error: OSError, shown: str) -> Refused:
        """The refusal for an error of the operating system about the path `shown`."""
        code, words = _OS_CODES.get(error.errno or 0, ("io_error", f"failed: {error.strerror or error}"))
        return cls(code, f"{shown} {words}.", path=shown)

    def output(self) -> ToolOutput:
        """The same as a tool's answer."""
        return ToolOutput.refusal(self.code, self.message, **self.details)


async def answer(work: Callable[[], ToolOutput]) -> ToolOutput:
    """Run blocking file work in a thread; a refusal becomes the answer.

    A cancelled call waits for the thread, so that no file is left half done.
    """
    try:
        return await anyio.to_thread.run_sync(work)
    except Refused as refused:
        return refused.output()
