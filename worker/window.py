"""How much of the conversation goes to the model, and what is done when it is too much."""

from __future__ import annotations

import json
from collections.abc import Sequence

from tool_registry.errors import PortsideError, RemoteProblem
from worker import compaction
from worker.compaction import Shortened, split, tokens_of
from worker.errors import job_is_over
from worker.history import History
from worker.prompts import prompt
from worker.protocol.llm import CompleteRequest, Message, Usage
from worker.protocol.tools import WireToolDefinition
from worker.transport import Transport

_TARGET = 0.7
_SUMMARY_SHARE = 0.5
_LAST_RESORT_TURNS = 3
_SUMMARY_TOKENS = 2_000
_CLIPS_BYTES = (16_384, 4_096, 1_024)


class ContextWindow:
    """Keeps a history within a budget of tokens.

    The budget starts as configured and shrinks when the provider says that a request was too long.
    Estimates are corrected by what the provider counts.
    """

    def __init__(self, transport: Transport, budget_tokens: int) -> None:
        self._transport = transport
        self._budget = budget_tokens
        self._scale = 1.0
        self._tools_chars = 0
        self._tools: Sequence[WireToolDefinition] = ()

    def size(self, messages: Sequence[Message], tools: Sequence[WireToolDefinition]) -> int:
        """About how many tokens a request is."""
        if tools is not self._tools:
            self._tools = tools
            self._tools_chars = sum(
                len(one.name) + len(one.description) + len(json.dumps(one.parameters)) for one in tools
            )
        return int(tokens_of(messages, self._tools_chars) * self._scale)

    def observe(self, messages: Sequence[Message], tools: Sequence[WireToolDefinition], usage: Usage) -> None:
        """Learn from the provider's own count."""
        counted = usage.input_tokens
        estimate = self.size(messages, tools) / self._scale
        if counted > 0 and estimate > 1_000:
            self._scale = min(max(counted / estimate, 0.3), 3.0)

    async def fit(self, history: History, tools: Sequence[WireToolDefinition]) -> list[str]:
        """Shorten the history when it is over the budget; answers what was done, for the log."""
        if self.size(history.messages, tools) <= self._budget:
            return []
        notes = [self._stub(history, tools)]
        if self._over(history, tools):
            notes.append(await self._summarise(history))
        for limit in _CLIPS_BYTES:
            if not self._over(history, tools):
                break
            notes.append(_apply(history, compaction.clip_results(history.messages, limit)))
        if self._over(history, tools):
            notes.append(self._drop_turns(history))
        return [note for note in notes if note]

    def after_overflow(self, history: History, tools: Sequence[WireToolDefinition]) -> list[str] | None:
        """Shorten as far as one step can, without the model, after it refused a request as too long.

        Returns:
            What was done; None when nothing was left to take out.
        """
        before = self.size(history.messages, tools)
        parts = split(history.messages, history.pinned)
        notes: list[str | None] = []
        if parts.older:
            notes.append(_apply(history, compaction.with_summary(parts, compaction.digest(parts.older))))
        notes.append(_apply(history, compaction.clip_results(history.messages, _CLIPS_BYTES[1])))
        if self.size(history.messages, tools) > before * 0.5:
            notes.append(self._drop_turns(history))
            notes.append(_apply(history, compaction.clip_results(history.messages, _CLIPS_BYTES[2])))
            notes.append(_apply(history, compaction.clip_arguments(history.messages, _CLIPS_BYTES[2])))
        self._budget = min(self._budget, int(before * 0.8))
        done = [note for note in notes if note]
        return done or None

    def _over(self, history: History, tools: Sequence[WireToolDefinition]) -> bool:
        return self.size(history.messages, tools) > self._budget

    def _stub(self, history: History, tools: Sequence[WireToolDefinition]) -> str | None:
        excess = self.size(history.messages, tools) - int(self._budget * _TARGET)
        chars = int(excess / self._scale * compaction.CHARS_PER_TOKEN)
        parts = split(history.messages, history.pinned)
        return _apply(history, compaction.stub_results(parts, history.whole, chars))

    async def _summarise(self, history: History) -> str | None:
        parts = split(history.messages, history.pinned)
        if not parts.older:
            return None
        room = int(self._budget * _SUMMARY_SHARE * compaction.CHARS_PER_TOKEN / self._scale)
        request = CompleteRequest(
            messages=[
                Message(role="system", content=prompt("summary")),
                Message(role="user", content=compaction.transcript(parts.older, room)),
            ],
            max_tokens=_SUMMARY_TOKENS,
        )
        try:
            answer = await self._transport.complete(request)
            summary = answer.content
        except PortsideError as error:
            if job_is_over(error) or not isinstance(error, RemoteProblem):
                raise
            summary = ""  # the list of calls below stands in for it
        return _apply(history, compaction.with_summary(parts, summary or compaction.digest(parts.older)))

    def _drop_turns(self, history: History) -> str | None:
        parts = split(history.messages, history.pinned, _LAST_RESORT_TURNS)
        if not parts.older:
            return None
        return _apply(history, compaction.with_summary(parts, compaction.digest(parts.older)))


def _apply(history: History, shortened: Shortened) -> str | None:
    history.messages = shortened.messages
    return shortened.note
