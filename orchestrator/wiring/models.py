"""The models that can be asked, as the settings say."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Literal

from pydantic import SecretStr

from orchestrator.adapters.models.native_neutral import NeutralModels
from orchestrator.adapters.models.native_router import NativeRouter
from orchestrator.adapters.models.native_upstream import NativeUpstream
from orchestrator.adapters.models.on_demand import OnDemand
from orchestrator.adapters.models.router import ModelRouter
from orchestrator.adapters.models.scripted import ScriptedModels
from orchestrator.domain.jobs import JobId
from orchestrator.ports.models import ModelProvider
from orchestrator.ports.native_models import NativeModels
from orchestrator.services.timeline import Timeline
from orchestrator.settings import Settings
from worker.clock import SystemClock

OnWait = Callable[[str, float, str], Awaitable[None]]


def models_of(
    settings: Settings, timeline: Timeline, clock: SystemClock, more: Mapping[str, ModelProvider]
) -> ModelRouter:
    """The models, which tell a job's timeline when a provider asks to wait.

    `more` are providers in place of built-in ones, by the prefix of their models' names.
    """

    async def on_wait(job_id: str, seconds: float, reason: str) -> None:
        text = f"the model's provider asks to wait {seconds:.1f} s: {reason}"
        await timeline.note(JobId(job_id), "log", level="warning", text=text)

    return _router(settings, on_wait, clock, more)


def check_model(settings: Settings, model: str) -> None:
    """Refuse a model that no request could be answered with here.

    Raises:
        ModelError: it is unknown, its key is not set, or its script can't be used.
    """

    async def nobody_waits(_job_id: str, _seconds: float, _reason: str) -> None: ...

    _router(settings, nobody_waits, SystemClock(), {}).check(model)


def _router(
    settings: Settings, on_wait: OnWait, clock: SystemClock, more: Mapping[str, ModelProvider]
) -> ModelRouter:
    """The models that can be asked here: scripts, and the providers that have a key or an address."""

    def hosted(dialect: Literal["openai", "anthropic"]) -> OnDemand:
        return OnDemand(lambda: _hosted(dialect, settings, on_wait, clock))

    providers: dict[str, ModelProvider] = {"scripted": ScriptedModels()}
    if settings.openai_api_key or settings.model_base_url:
        providers["openai"] = hosted("openai")
    if settings.anthropic_api_key or settings.model_base_url:
        providers["anthropic"] = hosted("anthropic")
    return ModelRouter({**providers, **more})


def native_models_of(settings: Settings, models: ModelRouter) -> NativeRouter:
    """The same for agents that speak a provider's own dialect."""
    answering: dict[str, NativeModels] = {"scripted": NeutralModels(models)}
    base_url = settings.model_base_url or None
    if settings.openai_api_key or base_url:
        key = secret_text(settings.openai_api_key) or ""
        answering["openai"] = NativeUpstream("openai", api_key=key, base_url=base_url)
    if settings.anthropic_api_key or base_url:
        key = secret_text(settings.anthropic_api_key) or ""
        answering["anthropic"] = NativeUpstream("anthropic", api_key=key, base_url=base_url)
    return NativeRouter(answering)


def _hosted(
    dialect: Literal["openai", "anthropic"], settings: Settings, on_wait: OnWait, clock: SystemClock
) -> ModelProvider:
    # The providers' libraries take a second to import, and many a run needs none of them.
    from orchestrator.adapters.models.hosted import HostedModels
    from orchestrator.adapters.models.retries import ProviderRetries

    key = settings.openai_api_key if dialect == "openai" else settings.anthropic_api_key
    return HostedModels(
        dialect,
        api_key=secret_text(key) or "",
        retries=ProviderRetries(on_wait, clock),
        base_url=settings.model_base_url or None,
    )


def secret_text(value: SecretStr | None) -> str | None:
    """What a secret setting says."""
    return value.get_secret_value() if value is not None else None
