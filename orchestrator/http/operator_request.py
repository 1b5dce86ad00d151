"""What every request of the operator API is."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class OperatorRequest(BaseModel):
    """A request: unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)
