"""Tools that an operator has switched off."""

from __future__ import annotations

from typing import Protocol

ToolIdentity = tuple[str, str]
"""A tool's owner, and its name there: what stays when its shown name changes."""


class ToolSwitches(Protocol):
    """Remembers which tools are disabled, whether or not they are there."""

    async def disabled(self) -> set[ToolIdentity]:
        """All of them."""
        ...

    async def disable(self, tool: ToolIdentity) -> None:
        """Remember it; once is enough."""
        ...

    async def enable(self, tool: ToolIdentity) -> None:
        """Forget it."""
        ...
