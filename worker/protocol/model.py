"""The two bases of every message."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Request(BaseModel):
    """A message to the orchestrator: unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Answer(BaseModel):
    """A message from the orchestrator: unknown fields are ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True)
