"""One of the tools of representatives, and how it is made."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from orchestrator.domain.network.refusals import ControlCode, RefusalCode
from orchestrator.domain.network.rights import Right
from orchestrator.services import control_results as results
from orchestrator.services.control_access import Acting, ControlAccess
from orchestrator.services.network_members import Refused
from tool_registry.context import ToolContext
from tool_registry.definition import ToolDefinition
from tool_registry.output import ToolOutput
from tool_registry.tool import ToolSource, ToolTraits

OWNER = "control"

Params = dict[str, Any]
Handler = Callable[[Acting, Params], Awaitable[dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class ControlTool:
    """One tool.

    Attributes:
        output_schema: what every result fits that is no refusal.
        needs: the right that it needs in its network; None for what needs none.
        refusals: codes that a refusal of it can have, beside `not_a_representative`, which any can.
    """

    definition: ToolDefinition
    traits: ToolTraits
    access: ControlAccess
    handler: Handler
    output_schema: results.Schema
    needs: Right | None
    refusals: tuple[RefusalCode | ControlCode, ...]
    changed: Callable[[], None]

    async def execute(self, params: dict[str, Any], context: ToolContext) -> ToolOutput:
        """Run one call; what a rule refuses is a result with `code` and `message`."""
        try:
            acting = await self.access.acting(context.agent, context.call_id)
            output = ToolOutput(await self.handler(acting, params))
        except Refused as no:
            return ToolOutput.refusal(no.refusal.code, no.refusal.message, **no.refusal.details)
        if not self.traits.read_only:
            self.changed()
        return output


@dataclass(frozen=True, slots=True)
class ControlToolMaker:
    """Makes tools that share their surroundings.

    Attributes:
        access: who may what.
        changed: called after a call that may have left something for others.
    """

    access: ControlAccess
    changed: Callable[[], None]

    def tool(
        self,
        name: str,
        description: str,
        schema: results.Schema,
        handler: Handler,
        output_schema: results.Schema,
        needs: Right | None,
        *refusals: RefusalCode | ControlCode,
        destructive: bool = False,
    ) -> ControlTool:
        """One tool; `refusals` are those that its right does not imply."""
        reads = needs in {None, Right.OBSERVE} and name not in {"control_use_network", "control_channel_send"}
        traits = ToolTraits(
            source=ToolSource.NETWORK,
            owner=OWNER,
            original_name=name,
            read_only=reads,
            destructive=destructive,
            surface="representative",
        )
        codes = set(refusals)
        if needs is not None:
            codes |= {"not_granted", "not_found"}
            if "networkId" in schema["properties"]:
                codes.add("no_active_network")
        return ControlTool(
            ToolDefinition.of(name, description, schema),
            traits,
            self.access,
            handler,
            output_schema,
            needs,
            tuple(sorted(codes)),
            self.changed,
        )
