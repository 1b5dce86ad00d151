"""Models: whoever answers `llm/*`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

FinishReason = Literal["stop", "tool_calls", "length", "content_filter"]


@dataclass(frozen=True, slots=True)
class ModelTool:
    """A tool as the job's worker sent it; `parameters_json` is the definition's text."""

    name: str
    description: str
    parameters_json: str


@dataclass(frozen=True, slots=True)
class ModelToolCall:
    """A call the model made; `arguments` is its own JSON text."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ModelMessage:
    """One message.

    `content` is text or a list of `{type: text|image|file, ...}` parts; media parts hold base64 `data`
    (artifacts are resolved before they get here).
    """

    role: Literal["system", "user", "assistant", "tool"]
    content: str | Sequence[Mapping[str, Any]]
    tool_call_id: str | None = None
    tool_calls: tuple[ModelToolCall, ...] = ()
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One request; `tools` None means that the model may not call any."""

    job_id: str
    model: str
    messages: tuple[ModelMessage, ...]
    tools: tuple[ModelTool, ...] | None = None
    tool_choice: Literal["auto", "none", "required"] | Mapping[str, Any] | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    stop_sequences: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ModelUsage:
    """Tokens, as the provider counts them."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """The model's answer."""

    content: str
    finish_reason: FinishReason
    tool_calls: tuple[ModelToolCall, ...] = ()
    usage: ModelUsage = ModelUsage()


class ModelError(Exception):
    """The provider failed after its retries.

    Attributes:
        status: the HTTP status to answer with: 502, 429 or 504.
        retryable: the same request may succeed later.
        fatal: no request of this job can succeed: the job fails with `message`.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int = 502,
        retryable: bool = False,
        retry_after_s: float | None = None,
        cause: str | None = None,
        fatal: bool = False,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.retryable = retryable
        self.retry_after_s = retry_after_s
        self.cause = cause
        self.fatal = fatal


class ModelProvider(Protocol):
    """Answers requests for the models of one kind, such as `openai:` or `scripted:`."""

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        """Answer one request.

        Raises:
            ModelError: the provider failed, after its retries.
        """
        ...

    def check(self, model: str) -> None:
        """Refuse a model before a job is started on it.

        Raises:
            ModelError: no request for it could be answered here; the message says what to do.
        """
        ...

    async def close(self) -> None:
        """Let go of connections."""
        ...
