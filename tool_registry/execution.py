"""The one way in which a tool is run: hosted, in-process and inside the worker.

    resolve -> validate -> approval -> rate limit -> run under a deadline -> redact -> bound -> audit

Each step is a small function with one reason to fail; a failure is a `CallError`, and what the tool itself
says is a `ToolOutput`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from tool_registry.argument_check import ArgumentCheck, Checked
from tool_registry.audit import AuditRecord, AuditSink
from tool_registry.clock import Clock
from tool_registry.context import ToolContext
from tool_registry.errors import (
    ApprovalRequired,
    CallError,
    Outcome,
    RateLimited,
    ToolFailed,
    ToolNotFound,
    ToolNotHosted,
    ToolTimeout,
    Violation,
)
from tool_registry.explain import Explainer
from tool_registry.near_names import closest
from tool_registry.output import ToolOutput
from tool_registry.presenter import OutputKeeper, Presenter
from tool_registry.rate_limit import RateLimiter
from tool_registry.redaction import Redactor, masked
from tool_registry.registry import Entry, ToolRegistry
from tool_registry.tool import Approval, RateLimit
from tool_registry.truncation import DEFAULT_OUTPUT_BYTES, outlined
from tool_registry.visibility import HIDDEN_BECAUSE, Hidden, ToolState, hosted_visibility

_CANCEL_GRACE_S = 5.0

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
    checked: Checked = field(default_factory=Checked)
    violations: tuple[Violation, ...] = ()


class ToolExecutor:
    """Runs calls of a registry's tools."""

    def __init__(self, registry: ToolRegistry, surroundings: Surroundings) -> None:
        self._registry = registry
        self._around = surroundings
        self._arguments = ArgumentCheck(surroundings.explainer)
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
            params = await self._arguments.fitting(entry, params, context, call.checked)
            self._approved(entry, params, context)
            self._within_rate(entry, context)
            if before_run is not None:
                verdict = "not_run"
                await before_run(entry)
                verdict = "internal"
            output, size = await self._presenter.shown(await self._run(entry, params, context), context)
            output = output.timed(self._ms_since(call.started))
            if call.checked.adjustments:
                output = replace(output, adjustments=call.checked.adjustments)
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
        params: dict[str, Any],
        context: ToolContext,
        call: _Call,
        *,
        verdict: str,
        size: int,
    ) -> None:
        if entry is not None and entry.traits.sensitive:
            params = masked(params, entry.traits.sensitive)
        violations = tuple([one.as_json() for one in call.violations]) if call.violations else ()
        made = call.checked.adjustments
        adjustments = tuple([one.as_json() for one in made]) if made else ()
        self._around.audit(
            AuditRecord(  # in its order: by name it takes twice as long
                call.at,
                context.job_id,
                context.agent,
                context.network,
                name[:100],
                str(entry.traits.source) if entry else "",
                context.call_id,
                self._around.redactor.value(outlined(params)),
                verdict,
                call.checked.verdict,
                violations,
                adjustments,
                self._ms_since(call.started),
                size,
            )
        )

    def _ms_since(self, started: float) -> int:
        return int((self._around.clock.monotonic() - started) * 1000)
