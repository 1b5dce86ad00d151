"""Hearing that files change."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Protocol


class FileWatch(Protocol):
    """Watches a fixed set of files."""

    def changes(self) -> AsyncGenerator[None]:
        """A hint each time something may have changed, and now and then when nothing did.

        Changes that come together give one hint. Whoever hears it looks at the files: a hint says nothing
        about what changed, and none is the only one that will ever come.
        """
        ...
