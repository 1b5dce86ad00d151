"""Which model answers a job when several ways of naming one are open."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

SCRIPTED = "scripted"
PROVIDERS = ("openai", "anthropic")
PREFIXES = (*PROVIDERS, SCRIPTED)
KEY_VARIABLES: Mapping[str, str] = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}
DEFAULT_MODELS: Mapping[str, str] = {"openai": "openai:gpt-5", "anthropic": "anthropic:claude-sonnet-5-5"}


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """The model that was chosen.

    Attributes:
        model: `openai:M`, `anthropic:M` or `scripted:PATH`.
        base_url: of a compatible server; None is the provider's own.
        reason: where the choice comes from, as a person would say it.
    """

    model: str
    base_url: str | None
    reason: str


class NoModelChosen(Exception):
    """Nothing, or more than one thing, names a model.

    Attributes:
        choices: the models to choose from when both provider keys are set; else empty.
    """

    def __init__(self, message: str, *, choices: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.choices = choices


def split_model(model: str) -> tuple[str, str]:
    """`prefix:name` in its two parts; names may hold colons, as `openai:qwen3:8b` does.

    Raises:
        ValueError: the prefix is unknown or the name is empty; the message names the choices.
    """
    prefix, _, name = model.partition(":")
    if prefix in PREFIXES and name.strip():
        return prefix, name
    raise ValueError(f"unknown model {model!r}: write openai:MODEL, anthropic:MODEL or scripted:PATH")


def resolve_model(explicit: str | None, environment: Mapping[str, str]) -> ModelChoice:
    """Choose: what was asked for, else `PORTSIDE_MODEL`, else the one provider whose key is set.

    With `PORTSIDE_MODEL_BASE_URL` a name without a known prefix is one of that server's, spoken to as
    OpenAI's are. A variable that holds only blanks counts as absent.

    Raises:
        NoModelChosen: nothing names a model, or both provider keys are set.
        ValueError: the model named has no known prefix.
    """
    base_url = environment.get("PORTSIDE_MODEL_BASE_URL", "").strip() or None
    for value, reason in (
        (explicit, "asked for"),
        (environment.get("PORTSIDE_MODEL"), "PORTSIDE_MODEL is set"),
    ):
        if value and value.strip():
            return _named(value.strip(), base_url, reason)
    with_key = [provider for provider in PROVIDERS if environment.get(KEY_VARIABLES[provider], "").strip()]
    choices = tuple(DEFAULT_MODELS[provider] for provider in with_key)
    if len(with_key) == 1:
        return ModelChoice(choices[0], base_url, f"{KEY_VARIABLES[with_key[0]]} is set")
    if choices:
        raise NoModelChosen(
            f"both provider keys are set: choose with --model {' or --model '.join(choices)}", choices=choices
        )
    raise NoModelChosen(
        "no model is configured: set OPENAI_API_KEY or ANTHROPIC_API_KEY, name one with --model, or set "
        "PORTSIDE_MODEL and PORTSIDE_MODEL_BASE_URL for a server of your own"
    )


def _named(model: str, base_url: str | None, reason: str) -> ModelChoice:
    if base_url and model.partition(":")[0] not in PREFIXES:
        model = f"openai:{model}"
    prefix, _ = split_model(model)
    return ModelChoice(model, None if prefix == SCRIPTED else base_url, reason)
