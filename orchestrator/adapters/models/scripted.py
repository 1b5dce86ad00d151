"""A model that follows a script: the demo's, and the tests'."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import anyio
from pydantic import JsonValue

from orchestrator.adapters.models.conversation import (
    answers_in,
    before_answer,
    newest_result,
    text_of,
    value_at,
)
from orchestrator.adapters.models.expectations import first_unmet
from orchestrator.adapters.models.placeholders import fill, fill_text
from orchestrator.adapters.models.script import Call, Capture, Script, Turn
from orchestrator.adapters.models.script_file import ScriptError, load_script
from orchestrator.domain.model_choice import split_model
from orchestrator.ports.models import (
    ModelAnswer,
    ModelError,
    ModelMessage,
    ModelRequest,
    ModelToolCall,
    ModelUsage,
)


class ScriptedModels:
    """Answers for `scripted:PATH`.

    The turn follows from the conversation alone, from the number of answers it holds, so a job goes on
    after a restart and any number of jobs may follow one script at a time. An expectation that is not
    met ends the job, with a message that names the turn, what was expected and what was shown.
    """

    def __init__(self, sleep: Callable[[float], Awaitable[None]] = anyio.sleep) -> None:
        self._sleep = sleep
        self._loaded: dict[Path, tuple[int, Script]] = {}

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        """Answer as the script's next turn says.

        Raises:
            ModelError: fatal when the script can't be read, has ended, or expected something else;
                otherwise the failure that the turn asks for.
        """
        script = self._script(request.model)
        answers = answers_in(request.messages)
        index = _turn_at(script, request.messages, answers)
        if index is None:
            raise _fatal(f"{script.name} has ended: its {len(script.turns)} turns are used up")
        turn = script.turns[index]
        where = f"{script.name}, turn {index + 1} (line {script.lines[index]})"
        unmet = first_unmet(turn.expect, request)
        if unmet:
            raise _fatal(f"{where}: {unmet}")
        captured = _captured(script, request.messages, answers)
        if turn.delay_s:
            await self._sleep(turn.delay_s)
        _raise_failure(turn)
        return _answer(turn, captured, answers)

    def check(self, model: str) -> None:
        """Read the script of a model before a job is started on it.

        Raises:
            ModelError: fatal; the script can't be used.
        """
        self._script(model)

    def _script(self, model: str) -> Script:
        path = Path(split_model(model)[1]).expanduser()
        try:
            changed_ns = path.stat().st_mtime_ns if path.is_file() else 0
            if self._loaded.get(path, (None,))[0] != changed_ns:
                self._loaded[path] = changed_ns, load_script(path)
        except ScriptError as fault:
            raise _fatal(str(fault)) from None
        return self._loaded[path][1]

    async def close(self) -> None:
        """Nothing is held."""


def _fatal(message: str) -> ModelError:
    return ModelError(f"scripted model: {message}", fatal=True, cause="script")


def _raise_failure(turn: Turn) -> None:
    if turn.error:
        raise ModelError(
            turn.error.message,
            status=turn.error.status,
            retryable=turn.error.retryable,
            retry_after_s=turn.error.retry_after_s,
            cause=turn.error.cause,
            fatal=turn.error.fatal,
        )


def _answer(turn: Turn, captured: dict[str, JsonValue], answers: int) -> ModelAnswer:
    calls = tuple(
        ModelToolCall(
            id=call.id if call.id is not None else f"call_{answers + 1}_{number}",
            name=call.tool,
            arguments=_arguments(call, captured),
        )
        for number, call in enumerate(turn.call, 1)
    )
    return ModelAnswer(
        content=fill_text(turn.say or "", captured),
        finish_reason=turn.finish_reason or ("tool_calls" if calls else "stop"),
        tool_calls=calls,
        usage=ModelUsage(**turn.usage.model_dump()),
    )


def _arguments(call: Call, captured: dict[str, JsonValue]) -> str:
    if isinstance(call.arguments, str):
        return fill_text(call.arguments, captured)
    return json.dumps(fill(call.arguments, captured), ensure_ascii=False, separators=(",", ":"))


def _captured(script: Script, messages: tuple[ModelMessage, ...], answers: int) -> dict[str, JsonValue]:
    """Every value captured so far, read again from what each turn was shown."""
    values: dict[str, JsonValue] = {}
    for past in range(answers + 1):
        index = _turn_at(script, messages, past)
        assert index is not None
        for name, capture in script.turns[index].capture.items():
            shown = before_answer(messages, past)
            where = f"{script.name}, turn {index + 1} (line {script.lines[index]})"
            values[name] = _capture(name, capture, shown, where)
    return values


def _turn_at(script: Script, messages: Sequence[ModelMessage], answers: int) -> int | None:
    def over(turn: Turn, given: int) -> bool:
        texts = [text_of(message) for message in before_answer(messages, given)]
        return all(any(wanted in text for text in texts) for wanted in turn.until)

    return script.turn_at(answers, over)


def _capture(name: str, capture: Capture, shown: Sequence[ModelMessage], where: str) -> JsonValue:
    if capture.pattern is not None:
        return _found(name, capture.pattern, shown, where)
    result = newest_result(shown, capture.tool)
    try:
        if result:
            return value_at(result.text, capture.pointer)
    except LookupError:  # told below, with what was shown
        pass
    seen = result.text[:300] if result else "no tool result"
    raise _fatal(f"{where}: nothing to capture as {name} at {capture.pointer!r}; shown: {seen}")


def _found(name: str, pattern: str, shown: Sequence[ModelMessage], where: str) -> str:
    for message in reversed(shown):
        if found := re.search(pattern, text_of(message)):
            return found[1]
    raise _fatal(f"{where}: nothing to capture as {name}: no message is like {pattern!r}")
