"""What a model's answer amounts to, before anything is done about it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from worker.protocol.llm import CompleteWithToolsAnswer, WireToolCall

MAX_CALLS = 128
MAX_CUT_CALLS = 16


class Kind(StrEnum):
    """The six things an answer can be."""

    CALLS = "calls"
    TEXT = "text"
    EMPTY = "empty"
    CUT_CALLS = "cut_calls"
    CUT_TEXT = "cut_text"
    FILTERED = "filtered"


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer, judged.

    Attributes:
        calls: those that are kept in the history; of a cut answer none may run.
        dropped_calls: how many were beyond the bound and are kept nowhere.
    """

    kind: Kind
    text: str
    calls: Sequence[WireToolCall] = ()
    dropped_calls: int = 0


def judge(answer: CompleteWithToolsAnswer) -> Answer:
    """Say what an answer is.

    An answer that ended at the output limit is cut whatever it holds, and so is one whose arguments stop
    in the middle of their JSON whatever its finish reason says: nothing of either may run.
    """
    text, calls = answer.content, answer.tool_calls
    if answer.finish_reason == "content_filter":
        return Answer(Kind.FILTERED, text)
    cut = answer.finish_reason == "length"
    if calls and (cut or any(is_cut(call.arguments) for call in calls)):
        return Answer(Kind.CUT_CALLS, text, calls[:MAX_CUT_CALLS], max(len(calls) - MAX_CUT_CALLS, 0))
    if calls:
        return Answer(Kind.CALLS, text, calls[:MAX_CALLS], max(len(calls) - MAX_CALLS, 0))
    if cut:
        return Answer(Kind.CUT_TEXT, text)
    return Answer(Kind.TEXT if text.strip() else Kind.EMPTY, text)


def is_cut(arguments: str | None) -> bool:
    """Whether a text is the beginning of a JSON value and not the whole of one."""
    text = (arguments or "").rstrip()
    if not text:
        return False
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return _stops_at(error, text)
    except RecursionError:
        return False  # too deep to be read: the strict parser says so
    return False


def _stops_at(error: json.JSONDecodeError, text: str) -> bool:
    if error.msg.startswith("Unterminated string"):
        return True
    rest = text[error.pos :]
    if not rest:
        return True
    if error.msg.startswith("Invalid \\u"):
        return '"' not in rest and len(rest) < 6
    return any(word.startswith(rest) for word in ("true", "false", "null", "-"))
