"""How the tools fare with models."""

from __future__ import annotations

from collections.abc import Collection

from orchestrator.errors import NotFound
from orchestrator.ports.audit import AuditStore, ToolStats
from orchestrator.services.audit_log import AuditLog
from tool_registry.registry import ToolRegistry


class Statistics:
    """Reads what was recorded of the calls."""

    def __init__(self, audit: AuditStore, log: AuditLog, registry: ToolRegistry) -> None:
        self._audit = audit
        self._log = log
        self._registry = registry

    async def of(self, names: Collection[str] = ()) -> list[ToolStats]:
        """Per tool, sorted by name; of all that were ever called when no name is given.

        Raises:
            NotFound: a name is neither in the registry nor in any record.
        """
        await self._log.flush()
        found = await self._audit.stats(names)
        known = {one.tool_name for one in found}
        for name in dict.fromkeys(names):
            if name not in known and self._registry.get(name) is None:
                raise NotFound(f"there is no tool named {name[:80]!r}; see portside tools list")
        never = [ToolStats(name) for name in dict.fromkeys(names) if name not in known]
        return sorted([*found, *never], key=lambda one: one.tool_name)
