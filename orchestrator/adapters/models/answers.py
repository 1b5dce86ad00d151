"""The model library's responses in our form."""

from __future__ import annotations

import json

from pydantic_ai.exceptions import UnexpectedModelBehavior
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart

from orchestrator.adapters.models.tools import ShownTools
from orchestrator.ports.models import FinishReason, ModelAnswer, ModelToolCall, ModelUsage


def answer_of(response: ModelResponse, tools: ShownTools) -> ModelAnswer:
    """Map a response; usage counts cached tokens as input tokens too.

    Raises:
        UnexpectedModelBehavior: the stream ended before a finish reason, so the answer is not whole.
    """
    details = response.provider_details or {}
    if not details.get("finish_reason") and not details.get("refusal"):
        raise UnexpectedModelBehavior("the answer broke off: its stream ended without a finish reason")
    calls = tuple(_call(part, tools) for part in response.parts if isinstance(part, ToolCallPart))
    content = "".join(part.content for part in response.parts if isinstance(part, TextPart))
    return ModelAnswer(
        content=content or str(details.get("refusal") or ""),
        finish_reason=_finish_reason(response.finish_reason, has_calls=bool(calls)),
        tool_calls=calls,
        usage=ModelUsage(
            input_tokens=response.usage.input_tokens,
            output_tokens=response.usage.output_tokens,
            cache_read_tokens=response.usage.cache_read_tokens,
            cache_write_tokens=response.usage.cache_write_tokens,
        ),
    )


def _call(part: ToolCallPart, tools: ShownTools) -> ModelToolCall:
    if part.args is None:
        arguments = "{}"
    else:
        arguments = part.args if isinstance(part.args, str) else json.dumps(part.args, ensure_ascii=False)
    return ModelToolCall(
        part.tool_call_id, part.tool_name, tools.original_arguments(part.tool_name, arguments)
    )


def _finish_reason(reason: str | None, *, has_calls: bool) -> FinishReason:
    if reason == "length" or reason == "content_filter":  # noqa: PLR1714 - narrows to the literals
        return reason
    return "tool_calls" if has_calls else "stop"
