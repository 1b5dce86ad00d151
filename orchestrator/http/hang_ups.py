"""Work that nobody waits for any longer ends."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect
from starlette.types import Receive

T = TypeVar("T")


async def while_connected(receive: Receive, work: Coroutine[Any, Any, T]) -> T:
    """What `work` comes to; it is cancelled as soon as its client hangs up.

    Args:
        receive: of a request whose body was read: all that still comes is the hang-up.
        work: what the client waits for.

    Raises:
        ClientDisconnect: the client hung up first.
    """
    working, leaving = asyncio.create_task(work), asyncio.create_task(_hang_up(receive))
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (working, leaving):
            task.cancel()
        await asyncio.gather(working, leaving, return_exceptions=True)
    if working.cancelled():
        raise ClientDisconnect
    return working.result()


async def _hang_up(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
