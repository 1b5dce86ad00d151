"""Long outputs, kept whole where `read_file` can read them."""

from __future__ import annotations

import re
from pathlib import Path

import anyio

from tool_registry.context import ToolContext

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")


class OutputFiles:
    """`tool_registry.presenter.OutputKeeper` over a directory; an id is the file's path."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    async def keep(self, context: ToolContext, data: bytes, media_type: str) -> str:
        """Store an output of this call; answers the file's path."""
        directory = anyio.Path(self._directory)
        await directory.mkdir(parents=True, exist_ok=True)
        path = directory / file_name(context.call_id)
        count = 1
        while await path.exists():
            count += 1
            path = directory / f"{file_name(context.call_id)}-{count}"
        await path.write_bytes(data)
        return str(path)


def file_name(identity: str) -> str:
    """An id of another process as the name of a file in one directory, and nothing else."""
    return _NOT_IN_NAMES.sub("_", identity)[:100] or "_"
