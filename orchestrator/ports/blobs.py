"""Where workspaces, patches and large outputs are kept."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Blob:
    """A stored byte string, named by its content."""

    sha256: str
    size_bytes: int


class BlobTooLarge(Exception):
    """A stream went over its bound; nothing of it was kept."""

    def __init__(self, limit_bytes: int) -> None:
        super().__init__(f"more than {limit_bytes:,} bytes")
        self.limit_bytes = limit_bytes


class BlobStore(Protocol):
    """Byte strings, content-addressed, written whole or not at all."""

    async def put(self, chunks: AsyncIterator[bytes], *, limit_bytes: int) -> Blob:
        """Store a stream.

        Raises:
            BlobTooLarge: it has more than `limit_bytes`.
        """
        ...

    def open(self, sha256: str, *, offset: int = 0, limit: int | None = None) -> AsyncIterator[bytes]:
        """The bytes from `offset`, at most `limit` of them.

        Raises:
            KeyError: there is no such blob.
        """
        ...

    async def size(self, sha256: str) -> int | None:
        """Its size in bytes, or None when it is not there."""
        ...

    async def delete(self, sha256: str) -> None:
        """Remove it, if it is there."""
        ...
