"""What the engine says about a container, as the port's values. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from container.engine.sandbox import (
    EventKind,
    SandboxEvent,
    SandboxRef,
    SandboxState,
    SandboxStatus,
)

LABEL = "portside.sandbox"
"""On every container and volume made here; its value is the sandbox's name."""

_STATES = {
    "created": SandboxState.CREATED,
    "configured": SandboxState.CREATED,
    "initialized": SandboxState.CREATED,
    "running": SandboxState.RUNNING,
    "restarting": SandboxState.RUNNING,
    "paused": SandboxState.PAUSED,
}
_KINDS = {
    "start": EventKind.STARTED,
    "die": EventKind.EXITED,
    "died": EventKind.EXITED,
    "oom": EventKind.OOM,
    "destroy": EventKind.REMOVED,
    "remove": EventKind.REMOVED,
}


def status_of(inspected: Mapping[str, Any]) -> SandboxStatus:
    """One `inspect` answer.

    A container that could not be started stays `created` with an exit code: only its error counts.
    """
    state: Mapping[str, Any] = inspected["State"]
    running = bool(state.get("Running"))
    unknown = SandboxState.RUNNING if running else SandboxState.EXITED
    where = _STATES.get(str(state.get("Status")), unknown)
    config: Mapping[str, Any] = inspected.get("Config") or {}
    return SandboxStatus(
        ref=SandboxRef(name=str(inspected["Name"]).lstrip("/"), id=str(inspected["Id"])),
        state=where,
        labels=dict(config.get("Labels") or {}),
        exit_code=int(state["ExitCode"]) if where is SandboxState.EXITED else None,
        oom_killed=bool(state.get("OOMKilled")),
        error=str(state.get("Error") or ""),
        started_at=_time(state.get("StartedAt")),
        finished_at=_time(state.get("FinishedAt")),
    )


def listed_status(row: Mapping[str, Any]) -> SandboxStatus:
    """One row of a list, of a container that runs."""
    return SandboxStatus(
        ref=SandboxRef(name=str(row["Names"][0]).lstrip("/"), id=str(row["Id"])),
        state=SandboxState.RUNNING,
        labels=dict(row.get("Labels") or {}),
    )


def event_of(message: Mapping[str, Any]) -> SandboxEvent | None:
    """One line of the engine's event stream; None when it is not about a sandbox's life."""
    kind = _KINDS.get(str(message.get("Action") or message.get("status")))
    actor: Mapping[str, Any] = message.get("Actor") or {}
    attributes: Mapping[str, Any] = actor.get("Attributes") or {}
    if kind is None or LABEL not in attributes:
        return None
    return SandboxEvent(kind=kind, name=str(attributes[LABEL]))


def _time(text: object) -> datetime | None:
    if not text or str(text).startswith("0001-"):
        return None
    return datetime.fromisoformat(str(text))
