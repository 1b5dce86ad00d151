"""From a file to an offer for the registry: a tool, or the reason why not."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from tool_registry.definition import ToolDefinition, schema_text
from tool_registry.errors import InvalidSchema, ToolUnavailable
from tool_registry.registry import Offer
from tool_registry.schema import CompiledSchema, is_placeholder
from tool_registry.tool import Approval, ToolSource, ToolTraits
from tool_registry.visibility import ToolState
from wasm_tools.call import Guest
from wasm_tools.causes import Failure
from wasm_tools.compile import CompileRefused
from wasm_tools.component_file import NotAComponent, read_component
from wasm_tools.granted_host import GrantedHosts, Outside
from wasm_tools.host import Hosts, RefusingHost
from wasm_tools.limits import Limits
from wasm_tools.runtime import WasmRuntime
from wasm_tools.sidecar import BadSidecar, Sidecar, parse_sidecar, read_sidecar, sidecar_path
from wasm_tools.surface import UnfitComponent
from wasm_tools.tool import UnloadedTool, WasmTool

_LOG = logging.getLogger(__name__)
FAULT = "loading it ran into a fault of Portside's own; its log has the traceback"
_MAX_DESCRIPTION_BYTES = 16 * 1024
_NO_SCHEMA = (
    "its schema says nothing about its parameters; let the guest's schema() answer one, or give one under "
    "'schema' in "
)


class _Refused(Exception):
    """The guest can't become a tool; the message says why."""


@dataclass(frozen=True, slots=True)
class _Reading:
    """Asks a guest about itself, under registration's limits."""

    guest: Guest
    runtime: WasmRuntime
    limits: Limits

    async def ask(self, function: str) -> str:
        answer = await self.runtime.run(lambda state: self.guest.text(state, function), self.limits)
        if isinstance(answer, Failure):
            raise _Refused(f"its {function}() failed: {answer.message}")
        return answer

    async def link(self) -> None:
        failure = await self.runtime.run(self.guest.link, self.limits)
        if failure is not None:
            raise _Refused(f"it can't be started: {failure.message}")


async def load_wasm_tool(
    path: Path,
    runtime: WasmRuntime,
    *,
    host: Hosts | None = None,
    outside: Outside = Outside(),  # noqa: B008 - frozen
    ceiling: Limits = Limits(),  # noqa: B008 - frozen
    agreed: bytes | None = None,
) -> Offer:
    """Load one component. Never raises for what the file or its sidecar hold.

    The guest's `schema()` and `description()` are called once, under tight limits and without
    capabilities; a sidecar's override wins over both. A file that can't be loaded gives an offer in the
    state `FAILED_TO_LOAD`, one whose schema says nothing `NEEDS_SCHEMA`; either carries its reason.

    Args:
        path: the `.wasm` file; its stem is the tool's name, its file name the owner.
        runtime: what compiles and runs it.
        host: in place of the host that its sidecar's grants make.
        outside: what its grants lead to.
        ceiling: limits that a sidecar can only lower.
        agreed: the sidecar that was agreed to, b"" for none; one that asks for more gives an offer in the
            state `NEEDS_CONSENT`, and nothing of the component runs. Without it nothing needs consent.
    """
    try:
        return await _load(path, runtime, host, outside, ceiling, agreed)
    except BadSidecar as error:
        return _failed(path, f"{sidecar_path(path).name}: {error}")
    except (NotAComponent, CompileRefused, UnfitComponent, ToolUnavailable, _Refused) as error:
        return _failed(path, f"{path.name}: {error}")
    except Exception:  # noqa: BLE001 - a fault of ours must not hold up the other files
        _LOG.exception("loading %s failed", path.name)
        return _failed(path, f"{path.name}: {FAULT}")


async def _load(
    path: Path,
    runtime: WasmRuntime,
    host: Hosts | None,
    outside: Outside,
    ceiling: Limits,
    agreed: bytes | None,
) -> Offer:
    """As `load_wasm_tool`; raises what is wrong with the file."""
    sidecar = await asyncio.to_thread(read_sidecar, sidecar_path(path))
    if beyond := () if agreed is None else sidecar.beyond(_agreed(agreed)):
        return _unloaded(path, ToolState.NEEDS_CONSENT, f"{sidecar_path(path).name} {_beyond(path, beyond)}")
    limits = sidecar.lowered(ceiling)
    guest = await runtime.prepare(await asyncio.to_thread(read_component, path))
    reading = _Reading(guest, runtime, limits.for_registration())
    hosts = host or _hosts(path, sidecar, limits, runtime, outside)
    if guest.typed:
        await reading.link()
        return _typed_offer(path, sidecar, limits, guest, runtime, hosts)
    description = await _description(reading, sidecar)
    schema = await _schema(reading, sidecar)
    definition = ToolDefinition(path.stem, description, schema_text(schema or {}))
    tool = WasmTool(definition, _traits(path, sidecar, limits), guest, runtime, limits, hosts)
    if schema is None:
        return Offer(tool, ToolState.NEEDS_SCHEMA, f"{path.name}: {_NO_SCHEMA}{sidecar_path(path).name}")
    return Offer(tool)


def _typed_offer(
    path: Path, sidecar: Sidecar, limits: Limits, guest: Guest, runtime: WasmRuntime, hosts: Hosts
) -> Offer:
    """One tool for each function, all of one owner.

    Raises:
        BadSidecar: it speaks of what the component has not.
    """
    known = {name for export in guest.typed for name in (export.full_name, export.short_name)}
    unknown = sorted(sidecar.exports.keys() - known)
    if unknown:
        raise BadSidecar(f"exports.{unknown[0]}: the component has {', '.join(sorted(known))[:300]}")
    if sidecar.overrides_schema or sidecar.description is not None:
        raise BadSidecar(
            "'schema' and 'description' are for a component of our world; describe functions in 'exports'"
        )
    offers: list[Offer] = []
    for export in guest.typed:
        said = sidecar.exports.get(export.full_name) or sidecar.exports.get(export.short_name)
        description = said.description if said else f"{export.full_name} of the component {path.stem}."
        name = f"{path.stem}_{export.short_name}"
        definition = ToolDefinition(name, description, schema_text(export.schema()))
        traits = replace(_traits(path, sidecar, limits), original_name=export.full_name)
        offers.append(Offer(WasmTool(definition, traits, guest, runtime, limits, hosts, export)))
    return replace(offers[0], also=tuple(offers[1:]))


class WasmFiles:
    """Loads files on one runtime, with one way to the outside."""

    def __init__(self, runtime: WasmRuntime, outside: Outside = Outside()) -> None:  # noqa: B008 - frozen
        self._runtime = runtime
        self._outside = outside

    async def load(self, path: Path, *, agreed: bytes | None = None) -> Offer:
        """As `load_wasm_tool`."""
        return await load_wasm_tool(path, self._runtime, outside=self._outside, agreed=agreed)

    def asks(self, sidecar: bytes) -> tuple[str, ...]:
        """What a sidecar grants, one line each; nothing where it can't be followed, which loading says."""
        try:
            return parse_sidecar(sidecar).asks()
        except BadSidecar:
            return ()

    def beyond(self, sidecar: bytes, agreed: bytes) -> tuple[str, ...]:
        """What a sidecar asks for beyond one that was agreed to; as `asks`, where it can't be followed."""
        try:
            return parse_sidecar(sidecar).beyond(_agreed(agreed)) if sidecar else ()
        except BadSidecar:
            return ()

    async def load_directory(self, directory: Path) -> list[Offer]:
        """As `load_directory`."""
        return await load_directory(directory, self._runtime, outside=self._outside)


async def load_directory(
    directory: Path,
    runtime: WasmRuntime,
    *,
    outside: Outside = Outside(),  # noqa: B008 - frozen
) -> list[Offer]:
    """Load every `*.wasm` of a directory, sorted by name; a bad one never holds up its neighbours."""
    paths = sorted(await asyncio.to_thread(lambda: list(directory.glob("*.wasm"))))
    return list(await asyncio.gather(*(load_wasm_tool(path, runtime, outside=outside) for path in paths)))


async def _description(reading: _Reading, sidecar: Sidecar) -> str:
    text = sidecar.description
    if text is None:
        text = await reading.ask("description")
    if len(text.encode()) > _MAX_DESCRIPTION_BYTES:
        raise _Refused(f"its description is over {_MAX_DESCRIPTION_BYTES // 1024} KiB; shorten it")
    return text


async def _schema(reading: _Reading, sidecar: Sidecar) -> Mapping[str, Any] | None:
    """The schema; None when whoever had to give one gave a placeholder."""
    if sidecar.overrides_schema:
        await reading.link()
        return _checked(sidecar.parameters, "'schema' in its sidecar")
    text = await reading.ask("schema")
    if not text.strip():
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise _Refused(
            "its schema() does not answer JSON; answer the JSON Schema of the parameters"
        ) from None
    return _checked(value, "its schema()")


def _checked(schema: Any, whose: str) -> Mapping[str, Any] | None:
    if schema in (None, "", "null"):
        return None
    if not isinstance(schema, dict):
        raise _Refused(f"{whose} is no JSON Schema but {type(schema).__name__}; give an object schema")
    try:
        CompiledSchema(schema_text(cast("dict[str, Any]", schema)))
    except (InvalidSchema, ValueError) as error:
        raise _Refused(f"{whose} can't be used: {error}") from error
    return None if is_placeholder(schema) else cast("dict[str, Any]", schema)


def _hosts(path: Path, sidecar: Sidecar, limits: Limits, runtime: WasmRuntime, outside: Outside) -> Hosts:
    if not sidecar.any:
        return RefusingHost()
    return GrantedHosts(path.stem, sidecar, limits, outside, runtime.clock)


def _traits(path: Path, sidecar: Sidecar, limits: Limits) -> ToolTraits:
    return ToolTraits(
        source=ToolSource.WASM,
        owner=path.name,
        original_name=path.stem,
        approval=Approval(sidecar.approval),
        coerce_safe=sidecar.coerce == "safe",
        timeout_s=limits.timeout_s,
        read_only=sidecar.read_only,
        idempotent=sidecar.idempotent,
    )


def _agreed(data: bytes) -> Sidecar:
    """What was agreed to, maybe under another version of this program: nothing, where it can't be read."""
    try:
        return parse_sidecar(data)
    except BadSidecar:
        return Sidecar(version=1)


def _beyond(path: Path, lines: Sequence[str]) -> str:
    more = "; ".join(lines)
    return f"asks for what was not agreed to: {more}; read it, then type: portside tools approve {path.stem}"


def _failed(path: Path, reason: str) -> Offer:
    return _unloaded(path, ToolState.FAILED_TO_LOAD, reason)


def _unloaded(path: Path, state: ToolState, reason: str) -> Offer:
    traits = ToolTraits(source=ToolSource.WASM, owner=path.name, original_name=path.stem)
    return Offer(UnloadedTool(path.stem, traits, reason), state, reason)
