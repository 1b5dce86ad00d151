"""Tasks through the network's tools, in a word each."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.networks import Caller, Refusal


async def delegate(caller: Caller, **arguments: Any) -> dict[str, Any]:
    """A new task."""
    return (await caller("delegate", **({"objective": "Build it."} | arguments)))["task"]


async def move(
    caller: Caller, task: dict[str, Any], status: str, reason: str = "", **more: Any
) -> dict[str, Any]:
    """The task after an update of its status."""
    extra = {"reason": reason} if reason else {}
    return (await caller("task_update", taskId=task["task_id"], status=status, **extra, **more))["task"]


async def refused(call: Any) -> dict[str, Any]:
    """What a rule answered to a call that it refused."""
    with pytest.raises(Refusal) as no:
        await call
    return no.value.result
