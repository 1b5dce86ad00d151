"""A job watched to its end, whichever orchestrator looks after it meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from enum import Enum
from typing import Any

from orchestrator.cli.client import ApiProblem, OperatorClient
from orchestrator.cli.failures import CommandFailed
from orchestrator.cli.interrupts import Interrupts
from orchestrator.cli.output import Output
from orchestrator.cli.session import Needs, orchestrator_for
from orchestrator.cli.timeline import TimelinePrinter
from orchestrator.domain.jobs import JobState
from orchestrator.settings import Settings

Begin = Callable[[OperatorClient], Awaitable[str]]
Conclude = Callable[[OperatorClient, str, list[dict[str, Any]]], Awaitable[int]]

_AGAIN_S = 0.2


class Outcome(Enum):
    """Why watching stopped."""

    ENDED = "the job has ended"
    LEFT = "the person has left it alone"
    LOST = "the orchestrator has ended, the job has not"


async def see_to_end(
    settings: Settings,
    output: Output,
    needs: Needs,
    *,
    begin: Begin,
    conclude: Conclude,
    cancels: bool = True,
) -> int:
    """Begin or find a job, show its timeline, conclude when it has ended.

    The orchestrator that is used may be another command's and end with it: then one of our own takes over.

    With nobody to ask, an interrupt cancels the job, or leaves it where it can go on (`cancels` is false).

    Returns:
        The command's exit code.
    """
    with Interrupts() as interrupts:
        watch = Watch(output, interrupts, cancels=cancels)
        job_id = ""
        while True:
            async with orchestrator_for(settings, output.say, needs) as client:
                job_id = job_id or await begin(client)
                outcome = await watch.follow(client, job_id)
                if outcome is Outcome.ENDED:
                    return await conclude(client, job_id, watch.events)
            if outcome is Outcome.LEFT:
                output.say(f"the job goes on; come back with: portside jobs attach {job_id}")
                return 0
            await asyncio.sleep(_AGAIN_S)


class Watch:
    """Shows events once each, over any number of connections.

    Attributes:
        events: all of them, in order.
    """

    def __init__(self, output: Output, interrupts: Interrupts, *, cancels: bool) -> None:
        self.events: list[dict[str, Any]] = []
        self._output = output
        self._interrupts = interrupts
        self._unasked = "c" if cancels else "d"
        self._printer = TimelinePrinter(output.console)
        self._cancelling = False
        self._cancel_taken = False

    async def follow(self, client: OperatorClient, job_id: str) -> Outcome:
        """Show events until the job or the orchestrator has ended, or the person leaves."""
        if self._cancelling and not await self._cancel(client, job_id):
            return Outcome.LOST
        feed = client.events(job_id, after=self.events[-1]["position"] if self.events else 0)
        coming = asyncio.ensure_future(anext(feed, None))
        interrupt = asyncio.ensure_future(self._interrupts.next())
        try:
            while True:
                await asyncio.wait({coming, interrupt}, return_when=asyncio.FIRST_COMPLETED)
                if interrupt.done():
                    if await self._leave(client, asks=interrupt.result()):
                        return Outcome.LEFT
                    if self._cancelling and not await self._cancel(client, job_id):
                        return Outcome.LOST
                    interrupt = asyncio.ensure_future(self._interrupts.next())
                if coming.done():
                    event = coming.result()
                    if event is None:
                        return await _how_it_is(client, job_id)
                    self._take(event)
                    coming = asyncio.ensure_future(anext(feed, None))
        finally:
            await _let_go(feed, coming, interrupt)

    def _take(self, event: dict[str, Any]) -> None:
        self.events.append(event)
        if self._output.as_json:
            self._output.json_line({"event": event})
        else:
            self._printer.show(event)

    async def _cancel(self, client: OperatorClient, job_id: str) -> bool:
        """Whether an orchestrator has taken the cancellation; the next one is asked when this one is gone."""
        if not self._cancel_taken:
            try:
                await client.post(f"/api/v1/jobs/{job_id}/cancel")
            except ApiProblem:
                raise
            except CommandFailed:
                return False
        self._cancel_taken = True
        return True

    async def _leave(self, client: OperatorClient, *, asks: bool) -> bool:
        """What an interrupt leads to: the job is to be cancelled, or left (True), or watched on."""
        if self._cancelling:
            raise KeyboardInterrupt  # asked again while it ends: leave at once, the job ends by itself
        unasked = "c" if client.embedded else self._unasked
        choice = await self._interrupts.ask(_question(client)) if asks else unasked
        if choice.startswith("c"):
            self._cancelling = True
            self._output.say("cancelling the job; interrupt once more to leave without waiting")
            return False
        if choice.startswith("d") and not client.embedded:
            return True
        self._output.say("watching on")
        return False


def _question(client: OperatorClient) -> str:
    if client.embedded:
        return (
            "\nThe job needs this command: its orchestrator runs in it (--detach starts one that stays).\n"
            "[c]ancel the job, or Enter to go on: "
        )
    return "\n[c]ancel the job, [d]etach and let it go on, or Enter to watch on: "


async def _how_it_is(client: OperatorClient, job_id: str) -> Outcome:
    try:
        job = await client.get(f"/api/v1/jobs/{job_id}")
    except ApiProblem:
        raise  # such as a job that was removed meanwhile
    except CommandFailed:
        return Outcome.LOST
    return Outcome.ENDED if JobState(job["state"]).terminal else Outcome.LOST


async def _let_go(feed: AsyncGenerator[Any], *waits: asyncio.Future[Any]) -> None:
    for wait in waits:
        wait.cancel()
    await asyncio.gather(*waits, return_exceptions=True)
    await feed.aclose()
