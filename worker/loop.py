"""The agent loop: deliveries in, model, tool calls, results, until there is an end.

The same class runs in a container and in the orchestrator's own process; only the `Transport` differs.
What an answer is, which call is meant, what repeats and what no longer fits is decided by pure functions
in the modules beside this one.
"""

from __future__ import annotations

from dataclasses import dataclass

from tool_registry.clock import Clock
from tool_registry.errors import PortsideError, RemoteProblem
from worker import wording
from worker.answer import Answer, Kind, judge
from worker.calls import CallRunner, Turn
from worker.ending import LoopEnd
from worker.errors import job_is_over
from worker.events import TEXT_CHARS, EventSink, shortened
from worker.finish import FinishTool
from worker.history import History, ToolResult, check_pairing, storable_call, with_unique_ids
from worker.inbox import Inbox
from worker.limits import Spent, reached
from worker.protocol.events import ContractData, MessageData
from worker.protocol.job import JobDescription, JobOutcome, StatusReport
from worker.protocol.llm import CompleteWithToolsAnswer, CompleteWithToolsRequest, Message, WireToolCall
from worker.protocol.tools import WireToolDefinition
from worker.stuck import NOTICE_AT, STUCK_AT, Repetition, Verdict
from worker.surface import ToolSurface
from worker.transport import Transport
from worker.window import ContextWindow

MAX_EMPTY = 2
MAX_CUT = 3


@dataclass(frozen=True, slots=True)
class LoopParts:
    """What a loop works with; all of it is one job's own."""

    surface: ToolSurface
    runner: CallRunner
    finish: FinishTool
    history: History
    window: ContextWindow
    events: EventSink
    inbox: Inbox
    clock: Clock


class AgentLoop:
    """Runs one job's conversation.

    Attributes:
        spent: what has been used so far; stays readable after a cancel.
        last_text: the last text the model wrote.
    """

    def __init__(self, job: JobDescription, transport: Transport, parts: LoopParts) -> None:
        self._job = job
        self._transport = transport
        self._surface = parts.surface
        self._runner = parts.runner
        self._finish = parts.finish
        self._history = parts.history
        self._window = parts.window
        self._events = parts.events
        self._inbox = parts.inbox
        self._clock = parts.clock
        self._repetition = Repetition()
        self._contract_shown = False
        self._empty = 0
        self._cut = 0
        self._partial_text = ""
        self.spent = Spent()
        self.last_text = ""

    async def run(self) -> LoopEnd:
        """Go on until there is an end.

        Raises:
            PortsideError: the job is over for the orchestrator, or it stayed away.
        """
        while True:
            reason = reached(self._job.limits, self.spent, self._clock.now())
            if reason is not None:
                return self._end("limit", reason)
            self.spent.iterations += 1
            await self._prepare()
            try:
                answer = await self._ask()
            except RemoteProblem as problem:
                if job_is_over(problem):
                    raise
                return self._refused(problem)
            self._inbox.shown()
            end = await self._act(answer)
            if end is not None:
                return end

    async def _prepare(self) -> None:
        """Take in what came from outside, and bring the tool list up to date."""
        for delivery in self._inbox.take():
            self._history.add_user(delivery.text)
            self._say("user", delivery.text)
        try:
            await self._transport.status(StatusReport(state="running", iteration=self.spent.iterations))
            await self._refresh()
        except RemoteProblem as problem:
            if job_is_over(problem):
                raise
            # The tools of the step before serve this one too; the next step asks again.
            self._events.warn(f"the tool catalogue could not be refreshed: {problem.message}")

    async def _refresh(self) -> None:
        changed = await self._surface.refresh()
        for line in changed.warnings():
            self._events.warn(line)
        if changed.added or changed.removed:
            added, removed = ", ".join(changed.added) or "none", ", ".join(changed.removed) or "none"
            self._events.log("info", f"tools changed; added: {added}; removed: {removed}")

    async def _ask(self) -> CompleteWithToolsAnswer:
        tools = self._surface.tools()
        self._note(await self._window.fit(self._history, tools))
        try:
            return await self._request(tools)
        except RemoteProblem as problem:
            if not _too_long(problem):
                raise
            done = self._window.after_overflow(self._history, tools)
            if done is None:
                size = self._window.size(self._history.messages, tools)
                raise _does_not_fit(problem, size, len(tools)) from problem
            self._note(done)
            return await self._request(tools)

    async def _request(self, tools: list[WireToolDefinition]) -> CompleteWithToolsAnswer:
        messages = list(self._history.messages)
        if self._empty:
            messages.append(Message(role="user", content=wording.EMPTY))
        check_pairing(messages)
        request = CompleteWithToolsRequest(messages=messages, model=self._job.model, tools=tools)
        self._show_contract(request)
        answer = await self._transport.complete_with_tools(request)
        self.spent.add(answer.usage)
        self._window.observe(messages, tools, answer.usage)
        return answer

    def _show_contract(self, request: CompleteWithToolsRequest) -> None:
        """Prove once that the first tool-capable request carries every advertised schema as it is."""
        if self._contract_shown:
            return
        self._contract_shown = True
        contract = self._surface.contract(request)
        self._events.emit(
            ContractData(
                catalog_hash=contract.catalog_hash,
                request_hash=contract.request_hash,
                tools=contract.tools,
                identical=contract.identical,
            )
        )

    async def _act(self, raw: CompleteWithToolsAnswer) -> LoopEnd | None:
        answer = judge(raw)
        if answer.text.strip():
            self.last_text = answer.text
            self._say("assistant", answer.text, raw)
        if answer.kind is not Kind.EMPTY:
            self._empty = 0
        if answer.kind not in {Kind.CUT_CALLS, Kind.CUT_TEXT}:
            self._cut = 0
        match answer.kind:
            case Kind.CALLS:
                return await self._calls(answer)
            case Kind.TEXT:
                return self._text(answer)
            case Kind.EMPTY:
                return self._empty_answer()
            case Kind.FILTERED:
                return self._end("failed", "the model's content filter stopped its answer")
            case Kind.CUT_CALLS | Kind.CUT_TEXT:
                return self._cut_answer(answer)

    async def _calls(self, answer: Answer) -> LoopEnd | None:
        self._partial_text = ""
        turn = self._runner.plan(self._unique(answer))
        try:
            await self._runner.run(turn, self.spent.iterations)
        finally:
            # Also after a cancel: what the history holds can always be sent back.
            self._history.whole.update(turn.whole)
            self._history.add_turn(answer.text, [one.call for one in turn.planned], turn.every_result())
        if answer.dropped_calls:
            self._history.add_user(wording.dropped_calls(answer.dropped_calls, len(answer.calls)))
        if self._finish.taken is not None:
            return self._finished()
        return self._repeated(turn)

    def _unique(self, answer: Answer) -> list[WireToolCall]:
        return with_unique_ids(answer.calls, self._history.call_ids, prefix=f"call_{self.spent.iterations}")

    def _finished(self) -> LoopEnd:
        taken = self._finish.taken
        assert taken is not None
        if taken.success:
            return self._end("completed", message=taken.summary)
        return self._end(
            "failed", f"the agent says that the task is not done: {taken.summary}", taken.summary
        )

    def _repeated(self, turn: Turn) -> LoopEnd | None:
        verdict = self._repetition.add(turn.outcomes)
        if verdict is Verdict.NOTICE:
            self._history.add_user(wording.repeated(NOTICE_AT))
            self._events.warn(f"the same calls gave the same results {NOTICE_AT} times")
        if verdict is not Verdict.STUCK:
            return None
        names = ", ".join(dict.fromkeys(one.call.name for one in turn.planned))
        if turn.unknown_names:
            return self._end("failed", f"stuck: repeated unknown tool {names}, {STUCK_AT} times in a row")
        return self._end("failed", f"stuck: {names} was called {STUCK_AT} times with the same result")

    def _text(self, answer: Answer) -> LoopEnd | None:
        text, self._partial_text = self._partial_text + answer.text, ""
        self._history.add_turn(answer.text, [], {})
        if self._inbox.waiting:
            return None  # somebody spoke meanwhile: the agent answers that before it ends
        return self._end("completed", message=text)

    def _empty_answer(self) -> LoopEnd | None:
        self._empty += 1
        if self._empty > MAX_EMPTY:
            return self._end("failed", f"empty responses: the model answered nothing {self._empty} times")
        return None

    def _cut_answer(self, answer: Answer) -> LoopEnd | None:
        """Nothing of a cut answer runs; the model hears why, a few times."""
        self._cut += 1
        if answer.kind is Kind.CUT_CALLS:
            calls = [storable_call(call) for call in self._unique(answer)]
            told = ToolResult(wording.CUT_CALLS, is_error=True)
            self._history.add_turn(answer.text, calls, {call.id: told for call in calls})
        else:
            self._partial_text += answer.text
            if answer.text.strip():
                self._history.add_turn(answer.text, [], {})
            self._history.add_user(wording.CUT_TEXT)
        self._events.log(
            "warning", "the model's answer was cut off by its output limit; nothing of it was run"
        )
        if self._cut > MAX_CUT:
            return self._end(
                "failed", f"the output limit cut the model's answer off {self._cut} times in a row"
            )
        return None

    def _refused(self, problem: RemoteProblem) -> LoopEnd:
        if problem.code == "budget_exhausted":
            return self._end("limit", problem.message)
        return self._end("failed", f"{problem.code}: {problem.message}")

    def _end(self, outcome: JobOutcome, reason: str | None = None, message: str | None = None) -> LoopEnd:
        return LoopEnd(outcome, reason, message or self.last_text or None, self.spent.iterations)

    def _note(self, notes: list[str]) -> None:
        for note in notes:
            self._events.log("info", f"the conversation was shortened: {note}")

    def _say(self, role: str, text: str, answer: CompleteWithToolsAnswer | None = None) -> None:
        self._events.emit(
            MessageData.model_validate(
                {
                    "role": role,
                    "text": shortened(text, TEXT_CHARS),
                    "iteration": self.spent.iterations,
                    "finish_reason": answer.finish_reason if answer else None,
                    "usage": answer.usage if answer else None,
                }
            )
        )


def _too_long(problem: RemoteProblem) -> bool:
    return problem.cause == "context_overflow" or problem.code == "payload_too_large"


def _does_not_fit(problem: RemoteProblem, tokens: int, tools: int) -> PortsideError:
    return RemoteProblem(
        f"the system prompt, {tools} tools and the task alone are about {tokens:,} tokens,"
        f" more than the model takes: use fewer tools, a shorter task or another model ({problem.message})",
        code="context_overflow",
        retryable=False,
    )
