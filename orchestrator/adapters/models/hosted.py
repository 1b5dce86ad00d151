"""Models of OpenAI, of Anthropic, and of servers that speak as they do.

Requests are streamed inside: a provider that falls silent is noticed after two minutes instead of ten, and
the arguments of calls arrive as the model wrote them. An answer counts only as a whole: what broke off is
dropped and asked for again.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any, Literal, cast

import anyio
import httpx2
import structlog
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI
from pydantic_ai.direct import model_request_stream
from pydantic_ai.messages import ModelMessage as LibraryMessage
from pydantic_ai.messages import ModelResponse
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.profiles import ModelProfile
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider
from pydantic_ai.settings import ModelSettings

from orchestrator.adapters.models.answers import answer_of
from orchestrator.adapters.models.messages import MessageMapper
from orchestrator.adapters.models.retries import ProviderRetries
from orchestrator.adapters.models.tools import ShownTools
from orchestrator.domain.model_choice import split_model
from orchestrator.domain.shaping.family import Family, family_of
from orchestrator.ports.models import ModelAnswer, ModelError, ModelRequest

_BASE_URLS = {"openai": "https://api.openai.com/v1", "anthropic": "https://api.anthropic.com"}
# The library's own rewriting of schemas is off: what a provider is shown is the copy shaped by our rules.
_PROFILE: ModelProfile = {"json_schema_transformer": None}

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long a provider may take.

    Attributes:
        total_s: for one call of `complete`, waits and retries included.
        first_event_s: until the first piece of an answer; a local server reads a long prompt first.
        idle_s: between two pieces of an answer; a ping is not one.
    """

    connect_s: float = 10.0
    total_s: float = 600.0
    first_event_s: float = 300.0
    idle_s: float = 120.0


class HostedModels:
    """Answers for `openai:M` or `anthropic:M`.

    Args:
        dialect: which of the two APIs is spoken.
        api_key: of the provider; may be empty for a server of one's own.
        base_url: of a compatible server; None is the provider itself.
        retries: the one owner of asking again.
    """

    def __init__(
        self,
        dialect: Literal["openai", "anthropic"],
        *,
        api_key: str,
        retries: ProviderRetries,
        base_url: str | None = None,
        timeouts: Timeouts | None = None,
    ) -> None:
        self._dialect: Literal["openai", "anthropic"] = dialect
        self._key = api_key
        self._base_url = base_url
        self._family: Family = family_of(dialect, base_url)
        self._retries = retries
        self._timeouts = timeouts or Timeouts()
        self._reported: set[tuple[str, str]] = set()
        self._client = self._make_client()

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        """Answer one request; cancelling it closes the provider's connection at once.

        Raises:
            ModelError: `context_overflow` when the request is too long for the model; else the
                provider's words, bounded and without the key, after the retries that made sense.
        """
        tools = ShownTools.of(request.tools or (), self._family)
        self._report_refused(tools)
        native = self._dialect == "anthropic"
        mapper = MessageMapper(tools, media_in_results=native, strict_ids=native)
        messages = mapper.map(request.messages)

        async def ask() -> ModelAnswer:
            return answer_of(await self._ask(request, messages, tools), tools)

        with anyio.move_on_after(self._timeouts.total_s):
            return await self._retries.run(request.job_id, ask, secret=self._key)
        raise ModelError(
            f"the model gave no whole answer within {self._timeouts.total_s:g} s", status=504, cause="timeout"
        )

    async def _ask(
        self, request: ModelRequest, messages: list[LibraryMessage], tools: ShownTools
    ) -> ModelResponse:
        opening = model_request_stream(
            self._model(split_model(request.model)[1]),
            messages,
            model_settings=_settings(request),
            model_request_parameters=ModelRequestParameters(function_tools=tools.definitions()),
            instrument=False,
        )
        async with AsyncExitStack() as stack:
            with anyio.fail_after(self._timeouts.first_event_s):
                stream = await stack.enter_async_context(opening)
                events = aiter(stream)
                event = await anext(events, None)
            while event is not None:
                with anyio.fail_after(self._timeouts.idle_s):
                    event = await anext(events, None)
            return stream.get()

    def _report_refused(self, tools: ShownTools) -> None:
        for tool in tools.refused:
            for reason in tool.refusals:
                if (tool.name, reason) not in self._reported:
                    self._reported.add((tool.name, reason))
                    _log.warning("tool kept from the model", tool=tool.name, reason=reason)

    def _make_client(self) -> AsyncOpenAI | AsyncAnthropic:
        # Given explicitly, key and address are not looked up in the environment.
        common: dict[str, Any] = {
            "api_key": self._key or "none",
            "base_url": self._base_url or _BASE_URLS[self._dialect],
            "max_retries": 0,
            "http_client": httpx2.AsyncClient(
                timeout=httpx2.Timeout(self._timeouts.first_event_s, connect=self._timeouts.connect_s),
                limits=httpx2.Limits(max_connections=None, max_keepalive_connections=20),
                event_hooks={"response": [refuse_what_is_no_stream]},
            ),
        }
        return AsyncOpenAI(**common) if self._dialect == "openai" else AsyncAnthropic(**common)

    def _model(self, name: str) -> Model:
        if isinstance(self._client, AsyncAnthropic):
            return AnthropicModel(
                name, provider=AnthropicProvider(anthropic_client=self._client), profile=_PROFILE
            )
        if self._base_url is None:
            provider = OpenAIProvider(openai_client=self._client)
        else:
            provider = OpenAICompatibleProvider("compatible", openai_client=self._client)
        return OpenAIChatModel(name, provider=provider, profile=_PROFILE)

    def check(self, model: str) -> None:
        """Every name passes: only the provider itself knows its models."""

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()


async def refuse_what_is_no_stream(response: httpx2.Response) -> None:
    """Turn an answer that is JSON or a page, although a stream was asked for, into a failed one.

    Some servers tell their errors with status 200; a proxy in front may answer a page.
    """
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if response.status_code == 200 and (kind == "text/html" or kind.endswith("json")):
        await response.aread()
        response.status_code = 502


def _settings(request: ModelRequest) -> ModelSettings:
    settings = ModelSettings()
    if request.max_tokens is not None:
        settings["max_tokens"] = request.max_tokens
    if request.temperature is not None:
        settings["temperature"] = request.temperature
    if request.stop_sequences:
        settings["stop_sequences"] = list(request.stop_sequences)
    if request.tools and request.tool_choice is not None:
        choice = request.tool_choice
        settings["tool_choice"] = choice if isinstance(choice, str) else [_chosen_name(choice)]
    return settings


def _chosen_name(choice: Mapping[str, Any]) -> str:
    """The tool that a choice names, as either API writes it."""
    function: Any = choice.get("function", choice)
    name = cast("dict[str, Any]", function).get("name") if isinstance(function, dict) else None
    if not isinstance(name, str):
        raise ModelError(
            "tool_choice names no tool: write auto, none, required or {name: TOOL}", cause="refused"
        )
    return name
