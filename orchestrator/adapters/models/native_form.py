"""What a dialect's form is: how its requests are read and its answers written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Literal, Protocol, cast

from orchestrator.domain.native.names import JOB_MODEL
from orchestrator.ports.models import ModelAnswer, ModelRequest

Json = dict[str, Any]
Role = Literal["system", "user", "assistant", "tool"]
SHOWN_MODEL = JOB_MODEL
PIECE_CHARS = 24


class NativeForm(Protocol):
    """One endpoint's requests and answers."""

    def read(self, body: Json, *, job_id: str, model: str) -> ModelRequest:
        """A request's messages and tools.

        Raises:
            KeyError, TypeError, ValueError, AttributeError: it is not as the API wants it.
        """
        ...

    def whole(self, answer: ModelAnswer) -> Json:
        """An answer in one piece."""
        ...

    def events(self, answer: ModelAnswer) -> Iterator[bytes]:
        """An answer as server-sent events."""
        ...


def role_of(message: Json) -> Role:
    """Whose message it is; OpenAI's newer word for `system` counts as that.

    Raises:
        ValueError: nobody's.
    """
    role: Any = message["role"]
    if role == "developer":
        return "system"
    if role not in {"system", "user", "assistant", "tool"}:
        raise ValueError(f"unknown role {str(role)[:40]!r}")
    return role


def text_of(content: Any) -> str:
    """The text of a message's content: a string, or the text parts of a list."""
    if isinstance(content, str):
        return content
    parts = cast("list[Json]", content or [])
    return "\n".join(str(part["text"]) for part in parts if "text" in part)


def pieces(text: str) -> Iterator[str]:
    """A text as a model would stream it."""
    for start in range(0, len(text), PIECE_CHARS):
        yield text[start : start + PIECE_CHARS]


def event(data: Any, name: str | None = None) -> bytes:
    """A server-sent event."""
    head = f"event: {name}\n" if name else ""
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    return f"{head}data: {text}\n\n".encode()


def parameters_text(schema: Any) -> str:
    """A tool's schema as the registry writes it."""
    return json.dumps(schema or {"type": "object"}, ensure_ascii=False, separators=(",", ":"))
