"""Tool calls from workers, each run once.

The worker's key names a call. Its fate is recorded before a tool with effects runs and its answer after,
so that a repeat waits for the same outcome, answers the stored one, or says that nobody knows. Calls of
read-only and idempotent tools may simply run again; they are remembered in memory only.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from orchestrator.domain.jobs import Job, JobId
from orchestrator.errors import IdempotencyConflict
from orchestrator.ports.executions import Execution, ExecutionState, ExecutionStore
from orchestrator.services.audit_log import AuditLog
from tool_registry.catalogue import canonical_json
from tool_registry.clock import Clock
from tool_registry.context import ToolContext
from tool_registry.errors import CallError, Outcome, ToolFailed
from tool_registry.execution import BeforeRun, ToolExecutor
from tool_registry.registry import Entry, ToolRegistry

_REMEMBERED = 1024
_REMEMBERED_BYTES = 65_536

Describe = Callable[[CallError], dict[str, Any]]


@dataclass(slots=True)  # not frozen: see ToolContext
class CallAnswer:
    """What the worker is answered: an output, or a problem as it was described then."""

    output: dict[str, Any] | None = None
    problem: dict[str, Any] | None = None


@dataclass(slots=True)  # not frozen: see ToolContext
class WorkerCall:
    """One call as it came in.

    Attributes:
        key: None when the worker asks for no protection against repeats.
        raw: the request's bytes; equal bytes are the same call.
    """

    tool_name: str
    params: dict[str, Any]
    key: str | None
    raw: bytes

    def fingerprint(self) -> str:
        """Names tool and arguments, whatever the order of their keys."""
        text = canonical_json([self.tool_name, self.params])
        return hashlib.sha256(text.encode()).hexdigest()


class _Replayed(Exception):
    """A repeat was found where the call was about to run."""

    def __init__(self, answer: CallAnswer) -> None:
        super().__init__()
        self.answer = answer


@dataclass(slots=True)
class _Running:
    """A call under way, or its answer; a future is made only where a repeat waits for it."""

    call: WorkerCall
    answer: CallAnswer | None = None
    waited_for: asyncio.Future[CallAnswer] | None = None

    async def outcome(self) -> CallAnswer:
        """The answer, or what the call raised."""
        if self.answer is not None:
            return self.answer
        if self.waited_for is None:
            self.waited_for = asyncio.get_running_loop().create_future()
        return await asyncio.shield(self.waited_for)

    def ended(self, answer: CallAnswer) -> None:
        self.answer = answer
        if self.waited_for is not None:
            self.waited_for.set_result(answer)

    def broke(self, error: BaseException) -> None:
        if self.waited_for is not None:
            self.waited_for.set_exception(error)
            self.waited_for.exception()  # whoever waits raises it; all of them may be gone


class ExecutionService:
    """Runs workers' calls through the one pipeline.

    Args:
        runner: names this process; calls it does not know that another runner left running have an
            unknown fate.
        describe: makes the problem of a `CallError`, to be stored and answered.
    """

    def __init__(
        self,
        *,
        executor: ToolExecutor,
        registry: ToolRegistry,
        store: ExecutionStore,
        audit: AuditLog,
        clock: Clock,
        runner: str,
        describe: Describe,
    ) -> None:
        self._executor = executor
        self._registry = registry
        self._store = store
        self._audit = audit
        self._clock = clock
        self._runner = runner
        self._describe = describe
        self._calls: OrderedDict[tuple[str, str], _Running] = OrderedDict()

    async def execute(self, job: Job, call: WorkerCall) -> CallAnswer:
        """Run a call, or answer what it was answered before.

        Raises:
            IdempotencyConflict: the key was used for another call.
        """
        key = call.key
        if key is None:
            return await self._run(job, call)
        place = (job.id, key)
        known = self._calls.get(place)
        if known is not None:
            _same(known.call, call)
            return await known.outcome()
        entry = self._registry.get(call.tool_name)
        # A server does not cancel a request whose connection is lost: the call runs to its end, and a
        # worker that asks again gets this answer.
        running = self._calls[place] = _Running(call)
        try:
            if entry is not None and _repeatable(entry):
                answer = await self._run(job, call)
            else:
                answer = await self._run_once(job, call, key)
        except BaseException as error:
            del self._calls[place]
            running.broke(error)
            raise
        running.ended(answer)
        if _not_run(answer) or len(call.raw) > _REMEMBERED_BYTES:
            del self._calls[place]
        elif len(self._calls) > _REMEMBERED:
            self._forget_oldest()
        return answer

    def _forget_oldest(self) -> None:
        for place, known in self._calls.items():
            if known.answer is not None:
                del self._calls[place]
                return

    async def _run(self, job: Job, call: WorkerCall, before_run: BeforeRun | None = None) -> CallAnswer:
        try:
            output = await self._executor.execute(
                call.tool_name, call.params, _context(job, call.key), before_run=before_run
            )
        except CallError as error:
            return CallAnswer(problem=self._describe(error))
        return CallAnswer(output=output.as_json())

    async def _run_once(self, job: Job, call: WorkerCall, key: str) -> CallAnswer:
        """Run a call whose fate is recorded, unless it was run before."""
        stored = await self._store.get(job.id, key)
        if stored is not None:
            return await self._repeat(stored, call)
        recorded = False

        async def record(found: Entry) -> None:
            nonlocal recorded
            if not _repeatable(found):
                await self._begin(job, call, key)
                recorded = True

        try:
            answer = await self._run(job, call, record)
        except _Replayed as replay:
            return replay.answer
        except BaseException:
            # The tool broke in a way nobody foresaw: what it did is unknown, and a repeat must hear that.
            if recorded:
                await self._store.finish(job.id, key, self._unknown(call))
            raise
        if recorded:
            await self._remember(job.id, key, answer)
        return answer

    async def _begin(self, job: Job, call: WorkerCall, key: str) -> None:
        mine = Execution(
            job_id=job.id,
            key=key,
            fingerprint=call.fingerprint(),
            tool_name=call.tool_name,
            runner=self._runner,
            state=ExecutionState.RUNNING,
            started_at=self._clock.now(),
        )
        stored = await self._store.begin(mine)
        if stored is not None:
            raise _Replayed(await self._repeat(stored, call))

    async def _repeat(self, stored: Execution, call: WorkerCall) -> CallAnswer:
        if stored.fingerprint != call.fingerprint():
            raise _conflict(stored.tool_name)
        if stored.state is ExecutionState.FINISHED and stored.answer is not None:
            return CallAnswer(output=stored.answer.get("output"), problem=stored.answer.get("problem"))
        answer = self._unknown(call)
        await self._store.finish(stored.job_id, stored.key, answer)
        return CallAnswer(problem=answer["problem"])

    async def _remember(self, job_id: JobId, key: str, answer: CallAnswer) -> None:
        if _not_run(answer):
            await self._store.release(job_id, key)
        else:
            stored = {"output": answer.output} if answer.problem is None else {"problem": answer.problem}
            await self._store.finish(job_id, key, stored)
        await self._audit.flush()

    def _unknown(self, call: WorkerCall) -> dict[str, Any]:
        error = ToolFailed(
            f"{call.tool_name} was running when the orchestrator stopped; its effects are not known",
            outcome=Outcome.UNKNOWN,
            hint="look at what it changes before you call it again",
            cause="outcome_unknown",
        )
        return {"problem": self._describe(error)}


def _repeatable(entry: Entry) -> bool:
    return entry.traits.read_only or entry.traits.idempotent


def _not_run(answer: CallAnswer) -> bool:
    return answer.problem is not None and answer.problem.get("outcome") == Outcome.NOT_RUN


def _same(known: WorkerCall, call: WorkerCall) -> None:
    if known.raw != call.raw and known.fingerprint() != call.fingerprint():
        raise _conflict(known.tool_name)


def _conflict(tool_name: str) -> IdempotencyConflict:
    return IdempotencyConflict(
        f"this Idempotency-Key was used for another call of {tool_name}; use a key of its own for each call"
    )


def _context(job: Job, key: str | None) -> ToolContext:
    spec = job.spec
    return ToolContext(
        job.id,
        key or "",
        spec.agent,
        job.instance_id,
        spec.network,
        grants=spec.grants,
        coerce_safe=spec.coerce_safe,
    )
