"""A model provider that keeps every request and answers what it is told."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any

from orchestrator.ports.models import ModelAnswer, ModelError, ModelRequest, ModelToolCall


def calls(*made: tuple[str, str, str]) -> ModelAnswer:
    """An answer that calls tools: (id, name, arguments as JSON text)."""
    return ModelAnswer("", "tool_calls", tuple(ModelToolCall(*one) for one in made))


FINISH = calls(("end", "finish", '{"success": true, "summary": "done"}'))


class CapturingModel:
    """Implements `ModelProvider`; answers in turn, and `FINISH` when nothing is left.

    Attributes:
        requests: everything that was asked, in order.
        gate: clear it to hold answers.
    """

    def __init__(self, *answers: ModelAnswer | ModelError) -> None:
        self.requests: list[ModelRequest] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self._answers = deque[ModelAnswer | ModelError](answers)

    def then(self, *answers: ModelAnswer | ModelError) -> None:
        self._answers.extend(answers)

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        self.requests.append(request)
        await self.gate.wait()
        answer = self._answers.popleft() if self._answers else FINISH
        if isinstance(answer, ModelError):
            raise answer
        return answer

    def check(self, model: str) -> None:
        """Every name passes."""

    async def close(self) -> None:
        """Nothing is held."""

    def texts(self) -> list[Any]:
        return [message.content for request in self.requests for message in request.messages]
