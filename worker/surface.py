"""The one tool surface of a job: local tools, `finish`, and a proxy per advertised tool.

Both the first model request and every later one take their tools from here.

Source: hosted-workers-and-remote-tools, "one registry-backed tool surface for reasoning".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from tool_registry.catalogue import definitions_hash
from tool_registry.clock import Clock
from tool_registry.context import ToolContext
from tool_registry.definition import ToolDefinition
from tool_registry.execution import Surroundings, ToolExecutor
from tool_registry.explain import Explainer
from tool_registry.output import ToolOutput
from tool_registry.redaction import Redactor
from tool_registry.registry import Entry, Offer, Refused, ToolRegistry
from tool_registry.tool import Tool
from tool_registry.truncation import DEFAULT_OUTPUT_BYTES
from worker.outputs import OutputFiles
from worker.protocol.llm import CompleteWithToolsRequest
from worker.protocol.tools import Catalog, WireToolDefinition
from worker.proxies import PROXY_OWNER, ArtifactFiles, proxies_of
from worker.transport import Transport

# What the orchestrator has shortened to its own bound is not shortened again by a few bytes of a path.
_OUTPUT_BYTES = DEFAULT_OUTPUT_BYTES + 2_048


@dataclass(frozen=True, slots=True)
class Refreshed:
    """What a refresh of the catalogue changed."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    refused: tuple[Refused, ...] = ()

    def warnings(self) -> list[str]:
        """A line for each tool that can't be used here."""
        return [f"tool {one.proposed} is left out: {one.error.message}" for one in self.refused]


@dataclass(frozen=True, slots=True)
class Contract:
    """The advertised definitions, and those that a model request carries."""

    catalog_hash: str
    request_hash: str
    tools: int

    @property
    def identical(self) -> bool:
        """Whether every advertised definition stands in the request, byte for byte."""
        return self.catalog_hash == self.request_hash


@dataclass(slots=True)
class _Shown:
    """The tool list as it was made for one revision of the registry."""

    revision: int = -1
    tools: list[WireToolDefinition] = field(default_factory=list[WireToolDefinition])


class ToolSurface:
    """What the model can call.

    Attributes:
        instructions: the toolsets' instructions of the first catalogue; they are injected once.
    """

    def __init__(
        self,
        registry: ToolRegistry,
        executor: ToolExecutor,
        transport: Transport,
        *,
        attempt: int,
        output_dir: Path,
    ) -> None:
        self._registry = registry
        self._executor = executor
        self._transport = transport
        self._attempt = attempt
        self._artifacts = ArtifactFiles(transport, output_dir)
        self._catalog: Catalog | None = None
        self._shown = _Shown()
        self.instructions: Sequence[str] = ()

    @classmethod
    def of_job(
        cls,
        transport: Transport,
        *,
        attempt: int,
        output_dir: Path,
        clock: Clock,
        redactor: Redactor,
        explainer: Explainer | None,
    ) -> Self:
        """The surface of one job, with a registry and an executor of its own."""
        registry = ToolRegistry()
        surroundings = Surroundings(
            clock=clock,
            redactor=redactor,
            keeper=OutputFiles(output_dir),
            explainer=explainer,
            max_output_bytes=_OUTPUT_BYTES,
        )
        executor = ToolExecutor(registry, surroundings)
        return cls(registry, executor, transport, attempt=attempt, output_dir=output_dir)

    def add_local(self, tools: Iterable[Tool]) -> None:
        """Register the container's own tools.

        Raises:
            RegistrationError: one of them can't be taken, which is a fault of ours.
        """
        for tool in tools:
            self._registry.register(tool)

    async def refresh(self) -> Refreshed:
        """Bring the proxies up to the orchestrator's catalogue; cheap when nothing changed.

        Raises:
            PortsideError: the catalogue could not be had; the present tools stay.
        """
        known = self._catalog.catalog_version if self._catalog else None
        catalog = await self._transport.catalog(known)
        if catalog is None or catalog.catalog_version == known:
            return Refreshed()
        if self._catalog is None:
            self.instructions = tuple(catalog.toolset_instructions)
        self._catalog = catalog
        before = {entry.name for entry in self._registry.entries()}
        proxies = proxies_of(
            catalog, self._transport, attempt=self._attempt, save_artifact=self._artifacts.save
        )
        replaced = self._registry.replace(PROXY_OWNER, [Offer(proxy) for proxy in proxies])
        added = tuple(name for name in replaced.registered if name not in before)
        return Refreshed(added, replaced.removed, replaced.refused)

    def tools(self) -> list[WireToolDefinition]:
        """Every definition, sorted by name, as a model request carries it."""
        if self._shown.revision != self._registry.revision:
            shown = [_wire(entry.definition) for entry in self._registry.entries()]
            self._shown = _Shown(self._registry.revision, shown)
        return self._shown.tools

    def entry(self, name: str) -> Entry | None:
        """A tool by its exact name."""
        return self._registry.get(name)

    def entries(self) -> Sequence[Entry]:
        """Every tool, sorted by name."""
        return self._registry.entries()

    def names(self) -> list[str]:
        """Every name, sorted."""
        return [entry.name for entry in self._registry.entries()]

    def subscribe(self, on_change: Callable[[], None]) -> Callable[[], None]:
        """Hear of every change; answers how to stop."""
        return self._registry.subscribe(on_change)

    async def execute(self, name: str, params: dict[str, Any], context: ToolContext) -> ToolOutput:
        """Run one call.

        Raises:
            CallError: it gave no output.
        """
        return await self._executor.execute(name, params, context)

    def contract(self, request: CompleteWithToolsRequest) -> Contract:
        """Compare the catalogue's definitions with those of a request that goes to the model."""
        advertised = self._catalog.tools if self._catalog else []
        names = {tool.name for tool in advertised}
        carried = [tool for tool in request.tools if tool.name in names]
        return Contract(_hash(advertised), _hash(carried), len(advertised))


def _wire(definition: ToolDefinition) -> WireToolDefinition:
    return WireToolDefinition(
        name=definition.name, description=definition.description, parameters=definition.parameters
    )


def _hash(tools: Iterable[WireToolDefinition]) -> str:
    return definitions_hash(ToolDefinition.of(tool.name, tool.description, tool.parameters) for tool in tools)
