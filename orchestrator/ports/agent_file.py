"""The text that defines agents, wherever it lies."""

from __future__ import annotations

from typing import Protocol


class AgentFileUnreadable(Exception):
    """It is there and can't be read; the message says why."""


class AgentText(Protocol):
    """A text that may change at any time."""

    @property
    def name(self) -> str:
        """What messages call it: a path."""
        ...

    async def read(self) -> str | None:
        """All of it; None when there is none.

        Raises:
            AgentFileUnreadable: it can't be read.
        """
        ...
