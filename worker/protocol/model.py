"""The two bases of every message."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Count = Annotated[int, Field(ge=0, lt=2**53)]
"""A number of something, as every column and every JSON parser can hold it."""


class Request(BaseModel):
    """A message to the orchestrator: unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Answer(BaseModel):
    """A message from the orchestrator: unknown fields are ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True)
