"""Routes that let a caller in before they read what it sends, and that read JSON strictly."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from fastapi import HTTPException, Request, Response
from fastapi.routing import APIRoute

from tool_registry.arguments import strict_json

Gate = Callable[[Request], Awaitable[None]]


class _StrictRequest(Request):
    """A request whose JSON has one meaning: no NaN, no key twice, no half of a surrogate pair."""

    async def json(self) -> Any:
        """The body's value.

        Raises:
            HTTPException: 400; it is the one kind that FastAPI passes on from here.
        """
        try:
            return strict_json((await self.body()).decode())
        except ValueError as error:
            raise HTTPException(400, f"the body is not valid JSON: {error}") from None


def gated(gate: Gate) -> type[APIRoute]:
    """A route class with a gate in front.

    A dependency would come too late: FastAPI reads the body before it.

    Args:
        gate: raises what keeps the caller out.
    """

    class Gated(APIRoute):
        def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
            handle = super().get_route_handler()

            async def behind_gate(request: Request) -> Response:
                await gate(request)
                return await handle(_StrictRequest(request.scope, request.receive))

            return behind_gate

    return Gated
