"""Which model is meant, and who answers for it (PD-11)."""

from __future__ import annotations

import pytest

from orchestrator.adapters.models.router import ModelRouter
from orchestrator.adapters.models.scripted import ScriptedModels
from orchestrator.domain.model_choice import ModelChoice, NoModelChosen, resolve_model, split_model
from orchestrator.ports.models import ModelAnswer, ModelError, ModelRequest

OPENAI, ANTHROPIC = {"OPENAI_API_KEY": "k"}, {"ANTHROPIC_API_KEY": "k"}


class Echo:
    """Answers with the model it was asked for."""

    def __init__(self) -> None:
        self.closed = False
        self.checked = ""

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        return ModelAnswer(request.model, "stop")

    def check(self, model: str) -> None:
        self.checked = model

    async def close(self) -> None:
        self.closed = True


@pytest.mark.parametrize(
    ("explicit", "environment", "model", "reason"),
    [
        ("openai:a", {"PORTSIDE_MODEL": "openai:b", **ANTHROPIC}, "openai:a", "asked for"),
        (None, {"PORTSIDE_MODEL": "openai:b", **OPENAI, **ANTHROPIC}, "openai:b", "PORTSIDE_MODEL is set"),
        (
            " ",
            {"PORTSIDE_MODEL": " ", "OPENAI_API_KEY": " ", **ANTHROPIC},
            "anthropic:",
            "ANTHROPIC_API_KEY is set",
        ),
        (None, OPENAI, "openai:", "OPENAI_API_KEY is set"),
    ],
)
def test_the_more_explicit_name_wins(
    explicit: str | None, environment: dict[str, str], model: str, reason: str
) -> None:
    choice = resolve_model(explicit, environment)
    assert choice.model.startswith(model)
    assert choice.reason == reason


def test_both_keys_ask_for_a_choice() -> None:
    with pytest.raises(NoModelChosen, match="both provider keys are set") as caught:
        resolve_model(None, {**OPENAI, **ANTHROPIC})
    assert [choice.partition(":")[0] for choice in caught.value.choices] == ["openai", "anthropic"]


def test_nothing_set_says_what_to_set() -> None:
    with pytest.raises(NoModelChosen, match="set OPENAI_API_KEY or ANTHROPIC_API_KEY"):
        resolve_model(None, {})


@pytest.mark.parametrize(
    ("named", "model"),
    [("qwen3:8b", "openai:qwen3:8b"), ("openai:qwen3:8b", "openai:qwen3:8b"), ("anthropic:m", "anthropic:m")],
)
def test_a_server_of_ones_own_takes_bare_names_with_colons(named: str, model: str) -> None:
    environment = {"PORTSIDE_MODEL": named, "PORTSIDE_MODEL_BASE_URL": "http://127.0.0.1:11434/v1"}
    expected = ModelChoice(model, "http://127.0.0.1:11434/v1", "PORTSIDE_MODEL is set")
    assert resolve_model(None, environment) == expected


def test_a_script_has_no_server() -> None:
    assert resolve_model("scripted:x.yaml", {"PORTSIDE_MODEL_BASE_URL": "http://h"}).base_url is None


@pytest.mark.parametrize("model", ["gpt", "mistral:x", "openai:", ":x", "", "OpenAI:x"])
def test_an_unknown_model_names_the_choices(model: str) -> None:
    with pytest.raises(ValueError, match="write openai:MODEL, anthropic:MODEL or scripted:PATH"):
        split_model(model)


async def test_the_prefix_says_who_answers_and_closing_reaches_all() -> None:
    openai, anthropic = Echo(), Echo()
    router = ModelRouter({"openai": openai, "anthropic": anthropic})
    answer = await router.complete(ModelRequest("job-1", "anthropic:m:1", ()))
    assert answer.content == "anthropic:m:1"
    assert router.provider("openai:x") is openai
    router.check("openai:y")
    assert (openai.checked, anthropic.checked) == ("openai:y", "")
    await router.close()
    assert (openai.closed, anthropic.closed) == (True, True)


@pytest.mark.parametrize(
    ("model", "message"),
    [("nobody:m", "write openai:MODEL"), ("openai:m", "no key for openai models: set OPENAI_API_KEY")],
)
async def test_a_model_nobody_answers_for_ends_the_job(model: str, message: str) -> None:
    router = ModelRouter({"scripted": ScriptedModels()})
    with pytest.raises(ModelError, match=message) as caught:
        await router.complete(ModelRequest("job-1", model, ()))
    assert caught.value.fatal
    with pytest.raises(ModelError, match=message):
        router.check(model)
