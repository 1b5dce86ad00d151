"""What a native request may hold: the fields, tools and kinds of content that act nowhere but in the model.

A job has no network. A provider has, and would use it for whoever asks: remote MCP servers, web search, code
containers, files and stored prompts of the account, images fetched from an address. None of that is listed
here, and what is not listed is refused by name. Source: the request types of the two SDKs.
"""

from __future__ import annotations

from collections.abc import Mapping

from orchestrator.domain.native.names import Endpoint

_SAMPLING = frozenset({"model", "stream", "temperature", "top_p", "tools", "tool_choice", "metadata"})
_OPENAI = _SAMPLING | {
    "parallel_tool_calls",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
    "safety_identifier",
    "service_tier",
    "store",
    "stream_options",
    "top_logprobs",
    "user",
}
_ANTHROPIC = _SAMPLING | {
    "cache_control",
    "context_management",
    "max_tokens",
    "messages",
    "output_config",
    "service_tier",
    "speed",
    "stop_sequences",
    "system",
    "thinking",
    "top_k",
}

FIELDS: Mapping[Endpoint, frozenset[str]] = {
    Endpoint.CHAT: _OPENAI
    | {
        "frequency_penalty",
        "function_call",
        "functions",
        "logit_bias",
        "logprobs",
        "max_completion_tokens",
        "max_tokens",
        "messages",
        "modalities",
        "n",
        "prediction",
        "presence_penalty",
        "reasoning_effort",
        "response_format",
        "seed",
        "stop",
        "verbosity",
        # servers that speak as OpenAI does take these too
        "chat_template_kwargs",
        "min_p",
        "repetition_penalty",
        "think",
        "thinking",
        "top_k",
    },
    Endpoint.RESPONSES: _OPENAI
    | {
        "client_metadata",
        "context_management",
        "include",
        "input",
        "instructions",
        "max_output_tokens",
        "max_tool_calls",
        "previous_response_id",
        "reasoning",
        "text",
        "truncation",
    },
    Endpoint.MESSAGES: _ANTHROPIC,
    Endpoint.COUNT_TOKENS: _ANTHROPIC,
}

# Tools that the agent runs itself; all others the provider would run.
OPENAI_TOOLS = frozenset({"function", "custom", "local_shell", "apply_patch"})
ANTHROPIC_TOOLS = ("bash_", "text_editor_", "memory_", "tool_search_tool_")

RESPONSE_ITEMS = frozenset(
    {
        "message",
        "reasoning",
        "compaction",
        "function_call",
        "function_call_output",
        "custom_tool_call",
        "custom_tool_call_output",
        "local_shell_call",
        "local_shell_call_output",
        "apply_patch_call",
        "apply_patch_call_output",
    }
)
OPENAI_PARTS = frozenset(
    {
        "text",
        "refusal",
        "image_url",
        "input_audio",
        "file",
        "input_text",
        "input_image",
        "input_file",
        "output_text",
        "summary_text",
        "reasoning_text",
    }
)
ANTHROPIC_BLOCKS = frozenset(
    {
        "text",
        "image",
        "document",
        "search_result",
        "tool_use",
        "tool_result",
        "tool_reference",
        "thinking",
        "redacted_thinking",
        "compaction",
    }
)
ANTHROPIC_SOURCES = frozenset({"base64", "text", "content"})
