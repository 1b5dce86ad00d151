"""A layer around everything: a bug is logged once, and its caller gets an id to ask about."""

from __future__ import annotations

from typing import Any

import structlog
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from orchestrator.http.problems import problem, problem_response
from orchestrator.ports.ids import Ids

_log = structlog.get_logger(__name__)


class Failures:
    """Pure ASGI: turns what nobody foresaw into a 500 problem without a traceback."""

    def __init__(self, app: ASGIApp, ids: Ids) -> None:
        self._app = app
        self._ids = ids

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = False

        async def noted(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self._app(scope, receive, noted)
        except ClientDisconnect:
            pass  # it went away in the middle of its body: nothing is broken, and nobody waits
        except Exception:  # noqa: BLE001 - where a bug ends
            body = logged_bug(scope, self._ids)
            if not started:
                await problem_response(body)(scope, receive, send)


def logged_bug(scope: Scope, ids: Ids) -> dict[str, Any]:
    """Log the exception that is being handled; the problem to answer names the log's entry only."""
    error_id = ids.new()
    _log.exception("request_broke", error_id=error_id, method=scope["method"], path=scope["path"])
    return problem("internal", f"something broke inside; the log has it under {error_id}")
