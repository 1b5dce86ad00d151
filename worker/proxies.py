"""Local stand-ins for the orchestrator's tools."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import anyio

from tool_registry.coercion import Adjustment
from tool_registry.context import ToolContext
from tool_registry.definition import ToolDefinition
from tool_registry.errors import Outcome, PortsideError, RemoteProblem
from tool_registry.output import ToolOutput, Truncation
from tool_registry.tool import ToolSource, ToolTraits
from worker.errors import NoAnswerInTime
from worker.outputs import file_name
from worker.protocol.tools import Catalog, ExecuteRequest, ToolPolicy, WireToolOutput
from worker.transport import Transport

PROXY_OWNER = "orchestrator"
# The orchestrator's own deadline comes first, then the client's, then the executor's here.
_TIMEOUT_MARGIN_S = 30.0
_PART_BYTES = 1024 * 1024

SaveArtifact = Callable[[str], Awaitable[Path]]


class ProxyTool:
    """A remote tool under its own name, description and schema; a call runs in the orchestrator."""

    def __init__(
        self,
        definition: ToolDefinition,
        policy: ToolPolicy,
        transport: Transport,
        *,
        attempt: int,
        save_artifact: SaveArtifact,
    ) -> None:
        self.definition = definition
        self.traits = ToolTraits(
            ToolSource.PROXY,
            owner=PROXY_OWNER,
            timeout_s=policy.timeout_s + _TIMEOUT_MARGIN_S,
            rate_limit=None,
            read_only=policy.read_only,
            idempotent=policy.idempotent,
            destructive=policy.destructive,
            awaits_others=policy.awaits_others,
            sensitive=tuple(policy.sensitive),
        )
        self._timeout_s = policy.timeout_s
        self._transport = transport
        self._attempt = attempt
        self._save_artifact = save_artifact

    async def execute(self, params: dict[str, Any], context: ToolContext) -> ToolOutput:
        """Send the call, once by its key however often it is sent by the line."""
        request = ExecuteRequest(tool_name=self.definition.name, params=params)
        key = f"{self._attempt}:{context.call_id}"
        try:
            answer = await self._transport.execute(request, key=key, timeout_s=self._timeout_s)
        except RemoteProblem:
            raise
        except PortsideError as error:
            outcome = Outcome.UNKNOWN if isinstance(error, NoAnswerInTime) else None
            raise RemoteProblem(error.message, code=error.code, retryable=False, outcome=outcome) from error
        return await self._kept(_output(answer.output))

    async def _kept(self, output: ToolOutput) -> ToolOutput:
        """A shortened output with its whole saved where `read_file` can read it."""
        if any(block.get("type") == "omitted" for block in output.content):
            output = replace(output, content=tuple([await self._saved(one) for one in output.content]))
        cut = output.truncated
        if cut is None or cut.artifact is None:
            return output
        try:
            path = await self._save_artifact(cut.artifact)
        except (PortsideError, OSError) as error:
            note = f"the whole could not be saved: {error}"
        else:
            note = f"the whole is in {path}"
            cut = Truncation(cut.original_bytes, cut.shown_bytes, str(path))
        spoken = f"the whole is artifact {output.truncated.artifact}" if output.truncated else ""
        text = output.text()
        text = text.replace(spoken, note, 1) if spoken in text else f"{text}\n[{note}]"
        return output.with_result(text, cut)

    async def _saved(self, block: dict[str, Any]) -> dict[str, Any]:
        """A note about a block that was too large, with the path of the whole in place of its id."""
        artifact = block.get("artifact") if block.get("type") == "omitted" else None
        if not isinstance(artifact, str):
            return block
        try:
            return {**block, "artifact": str(await self._save_artifact(artifact))}
        except (PortsideError, OSError) as error:
            return {**block, "note": f"the whole could not be saved: {error}"}


def proxies_of(
    catalog: Catalog, transport: Transport, *, attempt: int, save_artifact: SaveArtifact
) -> Iterator[ProxyTool]:
    """One proxy per advertised tool."""
    for tool in catalog.tools:
        yield ProxyTool(
            ToolDefinition.of(tool.name, tool.description, tool.parameters),
            catalog.policies.get(tool.name, ToolPolicy()),
            transport,
            attempt=attempt,
            save_artifact=save_artifact,
        )


class ArtifactFiles:
    """Artifacts of this job, saved as files."""

    def __init__(self, transport: Transport, directory: Path) -> None:
        self._transport = transport
        self._directory = directory

    async def save(self, artifact_id: str) -> Path:
        """Save one whole; an artifact saved before is not fetched again.

        Raises:
            PortsideError: the orchestrator did not give it.
            OSError: it could not be written.
        """
        path = self._directory / file_name(artifact_id)
        if await anyio.Path(path).is_file():
            return path
        await anyio.Path(self._directory).mkdir(parents=True, exist_ok=True)
        part = path.with_name(f"{path.name}.part")
        offset = 0
        async with await anyio.open_file(part, "wb") as target:
            while data := await self._transport.artifact(artifact_id, offset, _PART_BYTES):
                await target.write(data)
                offset += len(data)
        await anyio.Path(part).rename(path)
        return path


def _output(wire: WireToolOutput) -> ToolOutput:
    cut = wire.truncated
    return ToolOutput(
        result=wire.result,
        is_error=wire.is_error,
        content=tuple(wire.content),
        cost_usd=_money(wire.cost_usd),
        duration_ms=wire.duration_ms,
        raw=wire.raw,
        truncated=Truncation(cut.original_bytes, cut.shown_bytes, cut.artifact) if cut else None,
        adjustments=tuple(Adjustment(one.pointer, one.kind, one.was, one.became) for one in wire.adjustments),
    )


def _money(text: str | None) -> Decimal | None:
    try:
        return Decimal(text) if text is not None else None
    except InvalidOperation:
        return None  # a price nobody can read is no reason to lose the result
