"""Model requests on the wire: provider-neutral messages, tools and usage."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import ConfigDict, Field

from worker.protocol.model import Answer, Request
from worker.protocol.tools import WireToolDefinition

FinishReason = Literal["stop", "tool_calls", "length", "content_filter"]


class TextPart(Answer):
    """Text."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    type: Literal["text"] = "text"
    text: str


class MediaPart(Answer):
    """An image or a file: base64 `data`, or the id of an artifact of this job."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    type: Literal["image", "file"]
    media_type: str
    data: str | None = None
    artifact: str | None = None


class WireToolCall(Answer):
    """A call as the model made it; `arguments` is its JSON text, untouched."""

    id: str
    name: str
    arguments: str


class Message(Answer):
    """One message.

    A `tool` message answers one call of the assistant message before it and holds its result, a
    string or compact JSON; `is_error` marks a failed one.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    role: Literal["system", "user", "assistant", "tool"]
    content: str | list[TextPart | MediaPart] = ""
    tool_call_id: str | None = None
    tool_calls: list[WireToolCall] = Field(default_factory=list[WireToolCall])
    is_error: bool = False


class CompleteRequest(Request):
    """Ask the job's model for an answer without tools."""

    messages: list[Message]
    model: str | None = None
    max_tokens: int | None = Field(default=None, ge=1)
    temperature: float | None = Field(default=None, ge=0, le=2)
    stop_sequences: list[str] = Field(default_factory=list[str], max_length=16)


class CompleteWithToolsRequest(CompleteRequest):
    """The same with tools; each definition's text equals the catalogue's."""

    tools: list[WireToolDefinition]
    tool_choice: Literal["auto", "none", "required"] | dict[str, Any] | None = None


class Usage(Answer):
    """Tokens, as the provider counts them."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0


class CompleteAnswer(Answer):
    """An answer without tool calls."""

    content: str = ""
    finish_reason: FinishReason
    usage: Usage = Usage()


class CompleteWithToolsAnswer(CompleteAnswer):
    """An answer that may call tools; ids are the provider's own, possibly empty or repeated."""

    tool_calls: list[WireToolCall] = Field(default_factory=list[WireToolCall])
