"""The one way in which a tool is run: hosted, in-process and inside the worker.

    resolve -> validate -> approval -> rate limit -> run under a deadline -> redact -> bound -> audit

Each step is a small function with one reason to fail; a failure is a `CallError`, and what the tool itself
says is a `ToolOutput`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from tool_registry.audit import AuditRecord, AuditSink, SchemaVerdict
from tool_registry.clock import Clock
from tool_registry.coercion import Adjustment, coerced, dropped
from tool_registry.context import ToolContext
from tool_registry.errors import (
    ApprovalRequired,
    CallError,
    InvalidParams,
    Outcome,
    RateLimited,
    ToolFailed,
    ToolNotFound,
    ToolNotHosted,
    ToolTimeout,
    Violation,
)
from tool_registry.explain import (
    MAX_VIOLATIONS,
    Explainer,
    cheap,
    closest,
    violations,
    without_sensitive,
)
from tool_registry.output import ToolOutput
from tool_registry.presenter import OutputKeeper, Presenter
from tool_registry.rate_limit import RateLimiter
from tool_registry.redaction import Redactor, masked
from tool_registry.registry import Entry, ToolRegistry
from tool_registry.schema import DECIDED_RULES, CompiledSchema
from tool_registry.tool import Approval, RateLimit, ToolSource
from tool_registry.truncation import DEFAULT_OUTPUT_BYTES
from tool_registry.visibility import HIDDEN_BECAUSE, Hidden, ToolState, hosted_visibility

_CANCEL_GRACE_S = 5.0
_FITS, _VIOLATES = SchemaVerdict.FITS.value, SchemaVerdict.VIOLATES.value

BeforeRun = Callable[[Entry], Awaitable[None]]


def _forget(_record: AuditRecord) -> None:
    """Nobody audits."""


def _no_report(_entry: Entry) -> None:
    """Nobody is told."""


REFUSALS = RateLimit(calls=300, per_s=60.0)
"""So many calls of one caller may be refused; then none is taken for a while, and none recorded."""
_ANY_TOOL = ""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What an executor works with.

    Attributes:
        hosted: refuse what hosted jobs do not see.
        keeper: where large outputs go; None cuts them for good.
        explainer: says what is wrong with arguments where the event loop must not; None asks the deciding
            engine only.
        on_stuck: told of a tool that went on after it was cancelled.
    """

    clock: Clock
    audit: AuditSink = _forget
    redactor: Redactor = Redactor(patterns=False)
    keeper: OutputKeeper | None = None
    explainer: Explainer | None = None
    hosted: bool = False
    max_output_bytes: int = DEFAULT_OUTPUT_BYTES
    on_stuck: Callable[[Entry], None] = _no_report


@dataclass(slots=True)
class _Call:
    """What is found out about one call on its way, for its record."""

    at: datetime
    started: float
    schema_verdict: str = SchemaVerdict.UNCHECKED.value
    violations: tuple[Violation, ...] = ()
    adjustments: tuple[Adjustment, ...] = ()


class ToolExecutor:
    """Runs calls of a registry's tools."""

    def __init__(self, registry: ToolRegistry, surroundings: Surroundings) -> None:
        self._registry = registry
        self._around = surroundings
        self._limiter = RateLimiter(surroundings.clock.monotonic)
        self._presenter = Presenter(
            surroundings.redactor, surroundings.keeper, max_output_bytes=surroundings.max_output_bytes
        )

    async def execute(
        self,
        name: str,
        params: dict[str, Any],
        context: ToolContext,
        *,
        before_run: BeforeRun | None = None,
    ) -> ToolOutput:
        """Run one call.

        Args:
            name: the registered name.
            params: the arguments, parsed strictly.
            context: who calls.
            before_run: awaited after every check and before the tool; what it raises ends the call.

        Raises:
            CallError: the call gave no output.
        """
        if self._around.hosted:
            self._seldom_refused(context)
        call = _Call(self._around.clock.now(), self._around.clock.monotonic())
        entry = self._registry.get(name)
        verdict, size = "internal", 0
        try:
            entry = self._resolve(name, entry, context)
            params = await self._valid(entry, params, context, call)
            self._approved(entry, params, context)
            self._within_rate(entry, context)
            if before_run is not None:
                verdict = "not_run"
                await before_run(entry)
                verdict = "internal"
            output, size = await self._presenter.shown(await self._run(entry, params, context), context)
            output = output.timed(self._ms_since(call.started))
            if call.adjustments:
                output = replace(output, adjustments=call.adjustments)
            verdict = "error" if output.is_error else "ok"
        except CallError as error:
            self._presenter.clean(error)
            verdict, call.violations = error.code, error.violations
            if error.outcome is Outcome.NOT_RUN:
                self._limiter.take((context.job_id, _ANY_TOOL), REFUSALS)
            raise
        except asyncio.CancelledError:
            verdict = "cancelled"
            raise
        else:
            return output
        finally:
            self._audit(name, entry, params, context, call, verdict=verdict, size=size)

    def _resolve(self, name: str, entry: Entry | None, context: ToolContext) -> Entry:
        if entry is None:
            near = closest(name, (one.name for one in self._registry.entries()))
            raise ToolNotFound(
                f"there is no tool named {name[:100]!r}" + (f"; did you mean {near!r}?" if near else "")
            )
        if self._around.hosted:
            verdict = hosted_visibility(
                entry.name, entry.traits, entry.state, grants=context.grants, surface=context.surface
            )
            if isinstance(verdict, Hidden):
                because = entry.reason or HIDDEN_BECAUSE[verdict.reason]
                raise ToolNotHosted(f"{name!r} can't be used here: {because}", reason=verdict.reason)
        elif entry.state is not ToolState.ACTIVE:
            raise ToolNotHosted(f"{name!r} can't be used: {entry.reason or entry.state}", reason=entry.state)
        return entry

    async def _valid(
        self, entry: Entry, params: dict[str, Any], context: ToolContext, call: _Call
    ) -> dict[str, Any]:
        if entry.traits.source is ToolSource.PROXY:
            return params  # held to the same schema where it runs, and its verdict is recorded there
        schema = entry.schema
        if schema is None:
            raise ToolNotHosted(f"{entry.name!r} has no schema", reason=ToolState.NEEDS_SCHEMA)
        params, nulls = schema.without_refused_nulls(params)
        if nulls:
            call.adjustments = dropped(nulls)
        if schema.accepts(params):
            call.schema_verdict = _FITS
            return params
        if context.coerce_safe or entry.traits.coerce_safe:
            fitting = coerced(schema, params)
            if fitting is not None:
                call.schema_verdict = _FITS
                call.adjustments += fitting[1]
                return fitting[0]
        call.schema_verdict = _VIOLATES
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
        elif self._around.explainer is not None:
            found = await self._around.explainer.explain(schema.rules_text, json.dumps(params))
        if not found:
            return masked_found
        more = (one for one in masked_found if one.rule in DECIDED_RULES)
        return (*found, *more)[:MAX_VIOLATIONS]

    def _approved(self, entry: Entry, params: Mapping[str, Any], context: ToolContext) -> None:
        traits = entry.traits
        if traits.approval is Approval.NEVER or entry.name in context.grants:
            return
        if traits.approval is Approval.BY_PARAMS and not traits.needs_approval(params):
            return
        raise ApprovalRequired(
            f"{entry.name} needs a person's approval for these arguments",
            hint=f"launch the job with --tool-grant {entry.name}, or use other arguments",
        )

    def _seldom_refused(self, context: ToolContext) -> None:
        """Refuse whoever does little else than being refused, before it costs a check or a record."""
        wait_s = self._limiter.wait_s((context.job_id, _ANY_TOOL), REFUSALS)
        if wait_s is not None:
            raise RateLimited(
                f"{REFUSALS.calls} calls in {REFUSALS.per_s:g} s were refused; wait {wait_s:.1f} s, and look "
                "at what the refusals said",
                retry_after_s=round(wait_s, 3),
            )

    def _within_rate(self, entry: Entry, context: ToolContext) -> None:
        limit = entry.traits.rate_limit
        if limit is None:
            return
        wait_s = self._limiter.take((context.job_id, entry.name), limit)
        if wait_s is not None:
            raise RateLimited(
                f"more than {limit.calls} calls of {entry.name} in {limit.per_s:g} s; wait {wait_s:.1f} s",
                retry_after_s=round(wait_s, 3),
            )

    async def _run(self, entry: Entry, params: dict[str, Any], context: ToolContext) -> ToolOutput:
        """Run the tool in a task of its own, so that one that ignores its cancellation holds nobody."""
        timeout_s = entry.traits.timeout_s
        now = self._around.clock.monotonic()
        if context.deadline is not None:
            timeout_s = min(timeout_s, context.deadline - now)
            if timeout_s <= 0:
                raise ToolTimeout(
                    f"{entry.name} was not run: the caller's time is over", outcome=Outcome.NOT_RUN
                )
        inner = context.until(now + timeout_s)
        task = asyncio.get_running_loop().create_task(entry.tool.execute(params, inner))
        try:
            # One turn is all that a tool needs which waits for nothing; only the others get a timer.
            await asyncio.sleep(0)
            if not task.done():
                await asyncio.wait({task}, timeout=timeout_s)
        except asyncio.CancelledError:
            await self._stop(task, entry)
            raise
        if not task.done():
            await self._stop(task, entry)
            raise ToolTimeout(
                f"{entry.name} did not finish within {timeout_s:g} s and was cancelled",
                outcome=Outcome.FAILED if entry.traits.read_only else Outcome.UNKNOWN,
            )
        try:
            return task.result()
        except asyncio.CancelledError:
            raise ToolFailed(f"{entry.name} was cancelled by its own server", cause="cancelled") from None

    async def _stop(self, task: asyncio.Future[ToolOutput], entry: Entry) -> None:
        task.cancel()
        done, _ = await asyncio.wait({task}, timeout=_CANCEL_GRACE_S)
        # It may end with an error of its own, now or much later: the caller hears of the timeout instead.
        task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
        if not done:
            self._around.on_stuck(entry)

    def _audit(
        self,
        name: str,
        entry: Entry | None,
        params: Mapping[str, Any],
        context: ToolContext,
        call: _Call,
        *,
        verdict: str,
        size: int,
    ) -> None:
        if entry is not None and entry.traits.sensitive:
            params = masked(params, entry.traits.sensitive)
        violations = tuple([one.as_json() for one in call.violations]) if call.violations else ()
        adjustments = tuple([one.as_json() for one in call.adjustments]) if call.adjustments else ()
        self._around.audit(
            AuditRecord(  # in its order: by name it takes twice as long
                call.at,
                context.job_id,
                context.agent,
                context.network,
                name[:100],
                str(entry.traits.source) if entry else "",
                context.call_id,
                self._around.redactor.value(params),
                verdict,
                call.schema_verdict,
                violations,
                adjustments,
                self._ms_since(call.started),
                size,
            )
        )

    def _ms_since(self, started: float) -> int:
        return int((self._around.clock.monotonic() - started) * 1000)
