"""Dialects, their endpoints, and the names of a job's model in them."""

from __future__ import annotations

from enum import StrEnum

from orchestrator.domain.model_choice import SCRIPTED, split_model

JOB_MODEL = "portside"


class Dialect(StrEnum):
    """Whose API a request speaks."""

    OPENAI = "openai"
    ANTHROPIC = "anthropic"


class Endpoint(StrEnum):
    """What can be asked for, by its path below `v1/`."""

    CHAT = "chat/completions"
    RESPONSES = "responses"
    MESSAGES = "messages"
    COUNT_TOKENS = "messages/count_tokens"


ENDPOINTS = {
    Dialect.OPENAI: frozenset({Endpoint.CHAT, Endpoint.RESPONSES}),
    Dialect.ANTHROPIC: frozenset({Endpoint.MESSAGES, Endpoint.COUNT_TOKENS}),
}


def speaks(model: str, dialect: Dialect) -> bool:
    """Whether a job's model is asked in this dialect; a script is asked in both."""
    prefix, _ = split_model(model)
    return prefix in {dialect.value, SCRIPTED}


def native_name(model: str) -> str:
    """A job's model as the provider calls it. A script's name is a path of the host and is told nobody."""
    prefix, name = split_model(model)
    return JOB_MODEL if prefix == SCRIPTED else name
