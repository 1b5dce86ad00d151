"""`AgentText` in a file."""

from __future__ import annotations

import asyncio
from pathlib import Path

from orchestrator.ports.agent_file import AgentFileUnreadable

_MAX_BYTES = 4 * 1024 * 1024


class FileAgentText:
    """One file, read whole."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def name(self) -> str:
        """Its path."""
        return str(self._path)

    async def read(self) -> str | None:
        """All of it; None when there is none.

        Raises:
            AgentFileUnreadable: it can't be read, is no UTF-8 text, or has over 4 MiB.
        """
        return await asyncio.to_thread(self._read)

    def _read(self) -> str | None:
        try:
            with self._path.open("rb") as stream:
                data = stream.read(_MAX_BYTES + 1)
            if len(data) > _MAX_BYTES:
                raise AgentFileUnreadable(f"it has more than {_MAX_BYTES:,} bytes")
            return data.decode()
        except FileNotFoundError:
            return None
        except UnicodeDecodeError:
            raise AgentFileUnreadable("it is not UTF-8 text") from None
        except OSError as error:
            raise AgentFileUnreadable(error.strerror or str(error)) from None
