"""Native requests answered by a model that speaks no dialect, such as a script."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from orchestrator.adapters.models.native_anthropic import AnthropicForm
from orchestrator.adapters.models.native_chat import ChatForm
from orchestrator.adapters.models.native_form import NativeForm
from orchestrator.adapters.models.native_responses import ResponsesForm
from orchestrator.domain.native.names import Endpoint
from orchestrator.ports.models import ModelError, ModelProvider
from orchestrator.ports.native_models import NativeAnswer, NativeRequest

_FORMS: dict[Endpoint, NativeForm] = {
    Endpoint.CHAT: ChatForm(),
    Endpoint.RESPONSES: ResponsesForm(),
    Endpoint.MESSAGES: AnthropicForm(),
}


class NeutralModels:
    """`NativeModels` over a `ModelProvider`: a request is read, and its answer written, in its dialect.

    An answer that was asked for as a stream comes as the events of one.
    """

    def __init__(self, provider: ModelProvider) -> None:
        self._provider = provider

    @asynccontextmanager
    async def open(self, request: NativeRequest) -> AsyncGenerator[NativeAnswer]:
        """Answer a request.

        Raises:
            ModelError: the endpoint is not there, the request can't be read, or as the model raises.
        """
        form = _FORMS.get(request.accepted.endpoint)
        if form is None:
            raise ModelError(f"this model does not know {request.accepted.endpoint}", cause="refused")
        try:
            asked = form.read(json.loads(request.body), job_id=request.job_id, model=request.model)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ModelError(
                f"the request is not as this API wants it: {error!r}", cause="refused"
            ) from error
        answer = await self._provider.complete(asked)
        if request.accepted.stream:
            yield NativeAnswer(200, {"content-type": "text/event-stream"}, _pieces(form.events(answer)))
        else:
            body = json.dumps(form.whole(answer), ensure_ascii=False).encode()
            yield NativeAnswer(200, {"content-type": "application/json"}, _pieces([body]))

    async def close(self) -> None:
        """The provider is its owner's to close."""


async def _pieces(parts: Any) -> AsyncIterator[bytes]:
    for part in parts:
        yield part
