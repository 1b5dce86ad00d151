"""The registry as its owner works with it: look, check, call by hand, add, remove, switch off and on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.domain.shaping.family import FAMILIES, Family
from orchestrator.domain.shaping.tool import shape_tool, shape_tools
from orchestrator.errors import Conflict, NotFound
from orchestrator.ports.audit import OPERATOR_JOB
from orchestrator.ports.ids import Ids
from orchestrator.ports.tool_switches import ToolSwitches
from orchestrator.services.tool_checks import ProviderVerdict, offered
from orchestrator.services.wasm_folder import WasmFolder
from tool_registry.context import ToolContext
from tool_registry.execution import ToolExecutor
from tool_registry.names import LOCAL_NAMES
from tool_registry.near_names import closest
from tool_registry.output import ToolOutput
from tool_registry.registry import Entry, ToolRegistry
from tool_registry.tool import ToolSource
from tool_registry.visibility import HIDDEN_BECAUSE, Hidden, ToolState, hosted_visibility


@dataclass(frozen=True, slots=True)
class ToolView:
    """A tool with its verdict for hosted jobs.

    Attributes:
        hidden: the reason's name; "" when they see it.
        because: the reason in words, with what can be done.
        problem: why a change of its file is not in use, and the tool is as it was; "" when there is none.
    """

    entry: Entry
    hidden: str
    because: str = ""
    problem: str = ""


class ToolDesk:
    """What a tool owner does with the registry.

    Args:
        executor: runs calls by hand, without the hosted view.
        folder: the WASM tools.
        switches: remembers what is disabled.
    """

    def __init__(
        self,
        registry: ToolRegistry,
        executor: ToolExecutor,
        folder: WasmFolder,
        ids: Ids,
        *,
        switches: ToolSwitches,
    ) -> None:
        self._registry = registry
        self._executor = executor
        self._folder = folder
        self._ids = ids
        self._switches = switches

    def views(self) -> list[ToolView]:
        """Every tool, sorted by name."""
        return [self._view(entry) for entry in self._registry.entries()]

    def view(self, name: str) -> ToolView:
        """One tool.

        Raises:
            NotFound: there is none of this name.
        """
        return self._view(self._entry(name))

    def check(
        self, names: Sequence[str], families: Sequence[Family] = FAMILIES
    ) -> dict[str, list[ProviderVerdict]]:
        """How each provider family sees each tool; all tools when no name is given.

        A family's number of tools is held against what a hosted job's request carries, in its order: what
        such jobs see, and the container's own tools.
        """
        entries = [self._entry(name) for name in names] if names else list(self._registry.entries())
        wanted = [entry.name for entry in entries if entry.state is ToolState.ACTIVE]
        found: dict[str, list[ProviderVerdict]] = {name: [] for name in wanted}
        for family in families:
            carried = {tool.name: tool for tool in shape_tools(self._request(), family)}
            for name in wanted:
                alone = shape_tool(*offered(self._entry(name)), family)
                found[name].append(ProviderVerdict(family, carried.get(name, alone)))
        return found

    def _request(self) -> list[tuple[str, str, str]]:
        """The tools of a hosted job without grants, as `(name, description, schema)`, sorted by name."""
        seen = [offered(view.entry) for view in self.views() if not view.hidden]
        return sorted([*seen, *((name, "", "{}") for name in LOCAL_NAMES)])

    async def call(self, name: str, params: dict[str, Any]) -> ToolOutput:
        """Run a call by hand; being there to make it is the approval.

        Raises:
            CallError: as for any call.
        """
        context = ToolContext(OPERATOR_JOB, self._ids.new(), agent=OPERATOR_JOB, grants=frozenset({name}))
        return await self._executor.execute(name, params, context)

    def asks(self, sidecar: bytes) -> tuple[str, ...]:
        """What a WASM tool's sidecar asks for, a line for each thing to agree to."""
        return self._folder.asks(sidecar)

    async def granted(self, name: str) -> tuple[str, ...]:
        """What a registered tool was granted, in the same words; only WASM tools are.

        Raises:
            NotFound: there is none of this name.
        """
        return await self._folder.granted(self._entry(name))

    async def wants(self, name: str) -> tuple[str, ...]:
        """What a WASM tool's file asks for beyond what was agreed to.

        Raises:
            NotFound: there is none of this name.
        """
        return await self._folder.wants(self._entry(name))

    async def agree(self, name: str, lines: Sequence[str]) -> ToolView:
        """Take a tool's file as it is now: a person has seen what it asks for.

        Args:
            name: of the tool.
            lines: what was seen, as `wants` says it.

        Raises:
            NotFound: there is none of this name.
            ConsentMissing: it asks for something else; nothing changed.
        """
        entry = self._entry(name)
        await self._folder.agree(entry, lines)
        now = [one.name for one in self._registry.entries() if one.traits.owner == entry.traits.owner]
        return self.view(name if name in now or not now else now[0])

    async def add_wasm(
        self, stem: str, wasm: bytes, sidecar: bytes | None, *, agreed: bool = False
    ) -> ToolView:
        """Take a WASM tool in, or another version of it; args and errors as `WasmFolder.add`."""
        return self.view(await self._folder.add(stem, wasm, sidecar, agreed=agreed))

    async def set_enabled(self, name: str, *, enabled: bool) -> ToolView:
        """Disable a tool for every caller, or enable it again; remembered, also while it is not there.

        Running jobs see the change in their next catalogue.

        Raises:
            NotFound: there is none of this name.
        """
        await self._switch(self._entry(name), enabled=enabled)
        return self.view(name)

    async def _switch(self, entry: Entry, *, enabled: bool) -> None:
        await (self._switches.enable if enabled else self._switches.disable)(entry.identity)
        self._registry.set_enabled(entry.name, enabled=enabled)

    async def remove(self, name: str) -> None:
        """Remove a WASM tool with its files, and with the rest of its file's tools.

        What was disabled is so no more: another tool may come under the name.

        Raises:
            NotFound: there is none of this name.
            Conflict: it is no WASM tool.
        """
        entry = self._entry(name)
        if entry.traits.source is not ToolSource.WASM:
            raise Conflict(
                f"{name} comes from {entry.traits.owner}; take it away with: portside tools disable {name}"
            )
        for one in self._registry.entries():
            if one.traits.owner == entry.traits.owner:
                await self._switch(one, enabled=True)
        await self._folder.remove(entry.traits.owner)

    def _entry(self, name: str) -> Entry:
        entry = self._registry.get(name)
        if entry is None:
            near = closest(name, (one.name for one in self._registry.entries()))
            meant = f"; did you mean {near!r}?" if near else ""
            raise NotFound(f"there is no tool named {name[:80]!r}{meant}; see portside tools list")
        return entry

    def _view(self, entry: Entry) -> ToolView:
        problem = self._folder.problem(entry.traits.owner)
        verdict = hosted_visibility(entry.name, entry.traits, entry.state)
        if not isinstance(verdict, Hidden):
            return ToolView(entry, "", problem=problem)
        because = entry.reason or HIDDEN_BECAUSE[verdict.reason]
        return ToolView(entry, verdict.reason, because, problem)
