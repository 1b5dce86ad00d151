"""Are these arguments what a tool's schema asks for, and if not, in which words is that said?"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from tool_registry.audit import SchemaVerdict
from tool_registry.coercion import Adjustment, coerced, dropped
from tool_registry.context import ToolContext
from tool_registry.errors import InvalidParams, ToolNotHosted, Violation
from tool_registry.explain import MAX_VIOLATIONS, Explainer, cheap, violations, without_sensitive
from tool_registry.registry import Entry
from tool_registry.schema import DECIDED_RULES, CompiledSchema
from tool_registry.tool import ToolSource
from tool_registry.visibility import ToolState

_UNCHECKED, _FITS, _VIOLATES = (
    verdict.value for verdict in (SchemaVerdict.UNCHECKED, SchemaVerdict.FITS, SchemaVerdict.VIOLATES)
)


@dataclass(slots=True)
class Checked:
    """What was found out about a call's arguments, also where they were refused.

    Attributes:
        verdict: a `SchemaVerdict`'s value.
        adjustments: what was changed so that they fit.
    """

    verdict: str = _UNCHECKED
    adjustments: tuple[Adjustment, ...] = ()


class ArgumentCheck:
    """Holds arguments to schemas.

    Args:
        explainer: says what is wrong where the event loop must not; None asks the deciding engine only.
    """

    def __init__(self, explainer: Explainer | None) -> None:
        self._explainer = explainer

    async def fitting(
        self, entry: Entry, params: dict[str, Any], context: ToolContext, found_out: Checked
    ) -> dict[str, Any]:
        """The arguments as the tool gets them; `found_out` is filled in on the way.

        Raises:
            InvalidParams: they do not fit; the message says where and why.
            ToolNotHosted: there is no schema to hold them to.
        """
        if entry.traits.source is ToolSource.PROXY:
            return params  # held to the same schema where it runs, and its verdict is recorded there
        schema = entry.schema
        if schema is None:
            raise ToolNotHosted(f"{entry.name!r} has no schema", reason=ToolState.NEEDS_SCHEMA)
        params, nulls = schema.without_refused_nulls(params)
        if nulls:
            found_out.adjustments = dropped(nulls)
        if schema.accepts(params):
            found_out.verdict = _FITS
            return params
        if context.coerce_safe or entry.traits.coerce_safe:
            fitting = coerced(schema, params)
            if fitting is not None:
                found_out.verdict = _FITS
                found_out.adjustments += fitting[1]
                return fitting[0]
        found_out.verdict = _VIOLATES
        found = without_sensitive(await self._explained(schema, params), entry.traits.sensitive)
        listed = "; ".join(f"{one.pointer or 'the object'}: {one.message}" for one in found)
        raise InvalidParams(
            f"the arguments of {entry.name} do not fit its schema, a JSON object: {listed[:1500]}",
            violations=found,
            hint="correct the named arguments and call again; nothing was run",
        )

    async def _explained(self, schema: CompiledSchema, params: dict[str, Any]) -> tuple[Violation, ...]:
        masked_found = schema.masked_violations(params)
        found: tuple[Violation, ...] | None = None
        if cheap(schema.rules_text, params) and schema.quick_to_explain(params):
            found = violations(schema.rules, params)
        elif self._explainer is not None:
            found = await self._explainer.explain(schema.rules_text, json.dumps(params))
        if not found:
            return masked_found
        more = (one for one in masked_found if one.rule in DECIDED_RULES)
        return (*found, *more)[:MAX_VIOLATIONS]
