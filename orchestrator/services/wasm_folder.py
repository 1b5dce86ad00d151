"""The directory of WASM tools: the registry follows its files, and people agree to what they ask for."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import structlog

from orchestrator.errors import BadRequest, ConsentMissing
from orchestrator.ports.tool_sources import WasmLoader
from orchestrator.services.agreements import Agreements
from orchestrator.services.tool_files import Loaded, fingerprints, move_pair, pair, remove_pair, write_pair
from tool_registry.registry import Entry, Offer, ToolRegistry
from tool_registry.tool import ToolSource
from tool_registry.visibility import ToolState

_FILE_STEM = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_IN_USE = frozenset({ToolState.ACTIVE, ToolState.DISABLED})
_log = structlog.get_logger(__name__)


class WasmFolder:
    """WASM tools with their sidecars, as files; each file is an owner in the registry.

    Args:
        tools_dir: where they lie.
        agreements: what of them was agreed to.
    """

    def __init__(
        self, registry: ToolRegistry, wasm: WasmLoader, *, tools_dir: Path, agreements: Agreements
    ) -> None:
        self._registry = registry
        self._wasm = wasm
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

    def problem(self, owner: str) -> str:
        """Why a change of a file is not in use, and its tools are as they were; "" when there is none."""
        loaded = self._loaded.get(self._tools_dir / owner)
        return loaded.problem if loaded else ""

    def asks(self, sidecar: bytes) -> tuple[str, ...]:
        """What a WASM tool's sidecar asks for, a line for each thing to agree to."""
        return tuple(self._wasm.asks(sidecar))

    async def granted(self, entry: Entry) -> tuple[str, ...]:
        """What a registered tool was granted, in the same words; only WASM tools are."""
        found = await self._sidecars(entry)
        if found is None or entry.state is ToolState.NEEDS_CONSENT:
            return ()
        sidecar, agreed = found
        return self.asks(agreed if self._wasm.beyond(sidecar, agreed) else sidecar)

    async def wants(self, entry: Entry) -> tuple[str, ...]:
        """What a WASM tool's file asks for beyond what was agreed to."""
        found = await self._sidecars(entry)
        return () if found is None else tuple(self._wasm.beyond(*found))

    async def agree(self, entry: Entry, lines: Sequence[str]) -> None:
        """Take a tool's file as it is now: a person has seen what it asks for.

        Args:
            entry: the tool.
            lines: what was seen, as `wants` says it.

        Raises:
            ConsentMissing: it asks for something else; nothing changed.
        """
        async with self._changing:
            path = self._tools_dir / entry.traits.owner
            found = await self._sidecars(entry)
            wants = () if found is None else tuple(self._wasm.beyond(*found))
            if found is not None and wants:
                if wants != tuple(lines):
                    raise ConsentMissing(
                        f"{entry.name} asks to {'; '.join(wants)}; agree to that", asks=wants
                    )
                await asyncio.to_thread(self._agreements.keep, path.stem, found[0])
                if path in self._loaded:
                    self._loaded[path] = replace(self._loaded[path], fingerprint=())
        await self.refresh()

    async def _sidecars(self, entry: Entry) -> tuple[bytes, bytes] | None:
        """A WASM tool's sidecar, and the one that was agreed to."""
        if entry.traits.source is not ToolSource.WASM:
            return None
        path, sidecar = pair(self._tools_dir / entry.traits.owner)
        return await asyncio.to_thread(lambda: (_content(sidecar), self._agreements.of(path.stem)))

    async def add(self, stem: str, wasm: bytes, sidecar: bytes | None, *, agreed: bool = False) -> str:
        """Take a WASM tool in, or another version of it; answers its first tool's name.

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
                _check_rivals(staged)
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
        return replaced.registered[0]

    async def remove(self, owner: str) -> None:
        """Remove a file with its sidecar, its tools and what was agreed to."""
        async with self._changing:
            self._registry.remove_owner(owner)
            path = self._tools_dir / owner
            await asyncio.to_thread(remove_pair, path)
            await asyncio.to_thread(self._agreements.forget, path.stem)
            self._loaded.pop(path, None)


def _check_rivals(staged: Offer) -> None:
    refused = ToolRegistry().replace(staged.tool.traits.owner, [staged]).refused
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
