"""The registry as its owner works with it: look, check, call by hand, add, remove, switch off and on."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import structlog

from orchestrator.domain.shaping.family import FAMILIES, Family
from orchestrator.domain.shaping.tool import shape_tool, shape_tools
from orchestrator.errors import BadRequest, Conflict, ConsentMissing, NotFound
from orchestrator.ports.audit import OPERATOR_JOB
from orchestrator.ports.ids import Ids
from orchestrator.ports.tool_sources import WasmLoader
from orchestrator.ports.tool_switches import ToolSwitches
from orchestrator.services.agreements import Agreements
from orchestrator.services.tool_checks import ProviderVerdict, offered
from orchestrator.services.tool_files import Loaded, fingerprints, move_pair, pair, remove_pair, write_pair
from tool_registry.context import ToolContext
from tool_registry.execution import ToolExecutor
from tool_registry.names import LOCAL_NAMES
from tool_registry.near_names import closest
from tool_registry.output import ToolOutput
from tool_registry.registry import Entry, Offer, ToolRegistry
from tool_registry.tool import ToolSource
from tool_registry.visibility import HIDDEN_BECAUSE, Hidden, ToolState, hosted_visibility

_FILE_STEM = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_IN_USE = frozenset({ToolState.ACTIVE, ToolState.DISABLED})
_log = structlog.get_logger(__name__)


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
        switches: remembers what is disabled.
        tools_dir: WASM tools and their sidecars.
        agreements: what of them was agreed to.
    """

    def __init__(
        self,
        registry: ToolRegistry,
        executor: ToolExecutor,
        wasm: WasmLoader,
        ids: Ids,
        *,
        tools_dir: Path,
        agreements: Agreements,
        switches: ToolSwitches,
    ) -> None:
        self._registry = registry
        self._executor = executor
        self._wasm = wasm
        self._ids = ids
        self._switches = switches
        self._tools_dir = tools_dir
        self._agreements = agreements
        self._changing = asyncio.Lock()
        self._loaded: dict[Path, Loaded] = {}

    async def refresh(self) -> None:
        """Bring the registry up to the tools directory: load what is new or changed, drop what is gone.

        A bad file is registered as failed; a change that can't be used leaves the tool as it was and is its
        problem. A call that runs goes on with the tool as it was.
        """
        async with self._changing:
            found = await asyncio.to_thread(fingerprints, self._tools_dir)
            for path in self._loaded.keys() - found.keys():
                self._registry.remove_owner(self._loaded.pop(path).owner)
            changed = [
                path
                for path in sorted(found)
                if path not in self._loaded or self._loaded[path].fingerprint != found[path]
            ]
            for path, offer in zip(changed, await self._load_all(changed), strict=True):
                if offer.state is not ToolState.ACTIVE and self._serves(path):
                    self._loaded[path] = replace(
                        self._loaded[path], fingerprint=found[path], problem=offer.reason
                    )
                    _log.warning("tool_change_not_taken", file=path.name, reason=offer.reason)
                    continue
                replaced = self._registry.replace(offer.tool.traits.owner, [offer])
                self._loaded[path] = Loaded(found[path], offer.tool.traits.owner)
                for refused in replaced.refused:
                    _log.warning("tool_refused", file=path.name, reason=refused.error.message)

    async def _load_all(self, paths: Sequence[Path]) -> list[Offer]:
        agreed = [await asyncio.to_thread(self._agreements.of, path.stem) for path in paths]
        loads = (self._wasm.load(path, agreed=one) for path, one in zip(paths, agreed, strict=True))
        return list(await asyncio.gather(*loads))

    def _serves(self, path: Path) -> bool:
        """Whether jobs may be using what was loaded from a file before."""
        before = self._loaded.get(path)
        entries = self._registry.entries() if before else ()
        return any(before and one.traits.owner == before.owner and one.state in _IN_USE for one in entries)

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
        return tuple(self._wasm.asks(sidecar))

    async def granted(self, name: str) -> tuple[str, ...]:
        """What a registered tool was granted, in the same words; only WASM tools are.

        Raises:
            NotFound: there is none of this name.
        """
        found = await self._sidecars(name)
        if found is None or self._entry(name).state is ToolState.NEEDS_CONSENT:
            return ()
        sidecar, agreed = found
        return self.asks(agreed if self._wasm.beyond(sidecar, agreed) else sidecar)

    async def wants(self, name: str) -> tuple[str, ...]:
        """What a WASM tool's file asks for beyond what was agreed to.

        Raises:
            NotFound: there is none of this name.
        """
        found = await self._sidecars(name)
        return () if found is None else tuple(self._wasm.beyond(*found))

    async def agree(self, name: str, lines: Sequence[str]) -> ToolView:
        """Take a tool's file as it is now: a person has seen what it asks for.

        Args:
            name: of the tool.
            lines: what was seen, as `wants` says it.

        Raises:
            NotFound: there is none of this name.
            ConsentMissing: it asks for something else; nothing changed.
        """
        async with self._changing:
            owner = self._entry(name).traits.owner
            path = self._tools_dir / owner
            found = await self._sidecars(name)
            wants = () if found is None else tuple(self._wasm.beyond(*found))
            if found is not None and wants:
                if wants != tuple(lines):
                    raise ConsentMissing(f"{name} asks to {'; '.join(wants)}; agree to that", asks=wants)
                await asyncio.to_thread(self._agreements.keep, path.stem, found[0])
                if path in self._loaded:
                    self._loaded[path] = replace(self._loaded[path], fingerprint=())
        await self.refresh()
        now = [one.name for one in self._registry.entries() if one.traits.owner == owner]
        return self.view(name if name in now or not now else now[0])

    async def _sidecars(self, name: str) -> tuple[bytes, bytes] | None:
        """A WASM tool's sidecar, and the one that was agreed to."""
        entry = self._entry(name)
        if entry.traits.source is not ToolSource.WASM:
            return None
        path, sidecar = pair(self._tools_dir / entry.traits.owner)
        return await asyncio.to_thread(lambda: (_content(sidecar), self._agreements.of(path.stem)))

    async def add_wasm(
        self, stem: str, wasm: bytes, sidecar: bytes | None, *, agreed: bool = False
    ) -> ToolView:
        """Take a WASM tool in, or another version of it.

        Args:
            stem: its name.
            wasm: the component.
            sidecar: its capabilities file.
            agreed: a person has seen what that file asks for.

        Raises:
            BadRequest: it can't be used; nothing changed.
            ConsentMissing: it asks for something and nobody agreed; nothing changed.
        """
        asks = self.asks(sidecar or b"")
        if asks and not agreed:
            raise ConsentMissing(f"{stem[:64]} asks to {'; '.join(asks)}; add it with consent", asks=asks)
        if not _FILE_STEM.fullmatch(stem):
            raise BadRequest(f"{stem[:80]!r} can't be a tool's name; use a-z, A-Z, 0-9, _ and -, 64 at most")
        async with self._changing:
            staging = self._tools_dir / ".staging" / f"{stem}.wasm"
            await asyncio.to_thread(write_pair, staging, wasm, sidecar)
            try:
                staged = await self._wasm.load(staging)
                _usable(staged)
                self._check_rivals(staged)
                final = self._tools_dir / staging.name
                await asyncio.to_thread(move_pair, staging, final)
            finally:
                await asyncio.to_thread(remove_pair, staging)
            await asyncio.to_thread(self._agreements.keep, stem, sidecar or b"")
            mark = (await asyncio.to_thread(fingerprints, self._tools_dir)).get(final)
            offer = await self._wasm.load(final, agreed=sidecar or b"")
            replaced = self._registry.replace(offer.tool.traits.owner, [offer])
            if mark is not None:
                self._loaded[final] = Loaded(mark, offer.tool.traits.owner)
            if replaced.refused:
                await asyncio.to_thread(remove_pair, final)
                raise BadRequest(replaced.refused[0].error.message)
        return self.view(replaced.registered[0])

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
        async with self._changing:
            for one in self._registry.entries():
                if one.traits.owner == entry.traits.owner:
                    await self._switch(one, enabled=True)
            self._registry.remove_owner(entry.traits.owner)
            path = self._tools_dir / entry.traits.owner
            await asyncio.to_thread(remove_pair, path)
            await asyncio.to_thread(self._agreements.forget, path.stem)
            self._loaded.pop(path, None)

    def _entry(self, name: str) -> Entry:
        entry = self._registry.get(name)
        if entry is None:
            near = closest(name, (one.name for one in self._registry.entries()))
            meant = f"; did you mean {near!r}?" if near else ""
            raise NotFound(f"there is no tool named {name[:80]!r}{meant}; see portside tools list")
        return entry

    def _view(self, entry: Entry) -> ToolView:
        loaded = self._loaded.get(self._tools_dir / entry.traits.owner)
        problem = loaded.problem if loaded else ""
        verdict = hosted_visibility(entry.name, entry.traits, entry.state)
        if not isinstance(verdict, Hidden):
            return ToolView(entry, "", problem=problem)
        because = entry.reason or HIDDEN_BECAUSE[verdict.reason]
        return ToolView(entry, verdict.reason, because, problem)

    def _check_rivals(self, staged: Offer) -> None:
        trial = ToolRegistry()
        refused = trial.replace(staged.tool.traits.owner, [staged]).refused
        if refused:
            raise BadRequest(refused[0].error.message)


def _usable(offer: Offer) -> None:
    if offer.state is ToolState.FAILED_TO_LOAD:
        raise BadRequest(offer.reason)


def _content(file: Path) -> bytes:
    try:
        return file.read_bytes() if file.is_file() else b""  # to read a pipe is to wait for its writer
    except FileNotFoundError:
        return b""
