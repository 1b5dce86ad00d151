"""What goes wrong between us and a server behind a URL, below MCP."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, cast

from mcp_types import INTERNAL_ERROR

_FAULT_KEY = "httpFault"


class Fault(StrEnum):
    """What went wrong below MCP."""

    LOST_SESSION = "lost_session"
    UNAUTHORISED = "unauthorised"
    NOT_CONNECTED = "not_connected"
    BROKEN = "broken"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class HttpFault:
    """A fault, as it travels in a JSON-RPC error's data; `status` is 0 where there was no HTTP answer."""

    kind: Fault
    detail: str
    status: int = 0

    def as_error(self) -> dict[str, Any]:
        """The JSON-RPC error that carries it."""
        data = {_FAULT_KEY: {"kind": self.kind, "detail": self.detail, "status": self.status}}
        return {"code": INTERNAL_ERROR, "message": self.detail, "data": data}

    @property
    def not_run(self) -> bool:
        """It proves that the request did not reach a tool."""
        return self.kind in {Fault.LOST_SESSION, Fault.UNAUTHORISED, Fault.NOT_CONNECTED}

    @property
    def new_session_heals(self) -> bool:
        """The server is there and refuses this session, or its token, only."""
        return self.kind in {Fault.LOST_SESSION, Fault.UNAUTHORISED}


def fault_in(data: Any) -> HttpFault | None:
    """The fault in a JSON-RPC error's data; None when the server itself answered."""
    if not isinstance(data, dict):
        return None
    fault = cast("dict[str, Any]", data).get(_FAULT_KEY)
    if not isinstance(fault, dict):
        return None
    body = cast("dict[str, Any]", fault)
    if body.get("kind") not in set(Fault):
        return None
    return HttpFault(Fault(body["kind"]), str(body["detail"]), int(body.get("status", 0)))


def refusal_of(status: int) -> HttpFault:
    """What a status of 400 or more means, and what to do."""
    if status == 401:
        text = "it says 401, not authorised: check the token in `headers`, or log in: portside mcp login NAME"
        return HttpFault(Fault.UNAUTHORISED, text, status)
    hint = {
        403: " (check the permissions of the token)",
        404: " (check the path of `url`)",
        405: " (check the path of `url`)",
    }.get(status, "")
    return HttpFault(Fault.REFUSED, f"it answered HTTP {status}{hint}", status)
