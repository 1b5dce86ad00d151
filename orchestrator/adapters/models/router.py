"""One provider in front of all: the model's prefix says which one answers."""

from __future__ import annotations

from collections.abc import Mapping

from orchestrator.domain.model_choice import KEY_VARIABLES, split_model
from orchestrator.ports.models import ModelAnswer, ModelError, ModelProvider, ModelRequest


class ModelRouter:
    """Sends each request to the provider of its model's prefix, `openai`, `anthropic` or `scripted`.

    Args:
        providers: by prefix; one that is absent has no key, and the error says which to set.
    """

    def __init__(self, providers: Mapping[str, ModelProvider]) -> None:
        self._providers = dict(providers)

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        """Answer one request.

        Raises:
            ModelError: fatal for a model that no provider answers for; else the provider's own failure.
        """
        return await self.provider(request.model).complete(request)

    def provider(self, model: str) -> ModelProvider:
        """The provider of a model: to be asked before a job is started on it.

        Raises:
            ModelError: fatal; the prefix is unknown, or its provider has no key.
        """
        try:
            prefix, _ = split_model(model)
        except ValueError as fault:
            raise ModelError(str(fault), fatal=True, cause="unknown_model") from None
        provider = self._providers.get(prefix)
        if provider is None:
            raise ModelError(
                f"no key for {prefix} models: set {KEY_VARIABLES.get(prefix, 'a provider key')} where the "
                "orchestrator runs",
                fatal=True,
                cause="no_key",
            )
        return provider

    def check(self, model: str) -> None:
        """Refuse a model that no provider answers for, or that its own provider refuses.

        Raises:
            ModelError: fatal.
        """
        self.provider(model).check(model)

    async def close(self) -> None:
        """Close every provider."""
        for provider in self._providers.values():
            await provider.close()
