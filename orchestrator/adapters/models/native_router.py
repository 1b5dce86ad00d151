"""One place for native requests in front of all: the job's model says who answers."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager

from orchestrator.domain.model_choice import KEY_VARIABLES, split_model
from orchestrator.ports.models import ModelError
from orchestrator.ports.native_models import NativeAnswer, NativeModels, NativeRequest


class NativeRouter:
    """Sends each request to who answers for its model's prefix.

    Args:
        models: by prefix, `openai`, `anthropic` or `scripted`.
    """

    def __init__(self, models: Mapping[str, NativeModels]) -> None:
        self._models = dict(models)

    @asynccontextmanager
    async def open(self, request: NativeRequest) -> AsyncGenerator[NativeAnswer]:
        """Send a request.

        Raises:
            ModelError: fatal for a model that nobody answers for; else as who answers raises.
        """
        prefix, _ = split_model(request.model)
        models = self._models.get(prefix)
        if models is None:
            raise ModelError(
                f"no key for {prefix} models: set {KEY_VARIABLES.get(prefix, 'a provider key')} where the "
                "orchestrator runs",
                fatal=True,
                cause="no_key",
            )
        async with models.open(request) as answer:
            yield answer

    async def close(self) -> None:
        """Close every one."""
        for models in self._models.values():
            await models.close()
