"""Two agents that talk while their orchestrator is killed again and again, at random moments.

`python -m tests.support.storm --kills 50 --seed 7` does it for longer than the tests do, and prints what it saw.
"""

from __future__ import annotations

import argparse
import random
import socket
import sys
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from tests.support.command_line import CommandLine
from tests.support.homes import remove_sockets
from tests.support.outside import Agent, Refused, connected
from tests.support.service import Service, serving
from tests.support.storm_record import Fetch, Record

BOSS, HELPER = "boss", "helper"
# A life is at most so many calls long, and ends in the middle of one.
LONGEST_LIFE = 40
TASKS = "networks/local/tasks?limit=1000"
_DONE = {"completed", "failed", "cancelled"}


def free_port() -> int:
    """One below those that outgoing connections are given: nobody takes it while its owner is killed."""
    while True:
        port = random.SystemRandom().randint(20_000, 32_000)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


@dataclass
class Life:
    """One run of the orchestrator.

    Attributes:
        doomed: it is about to be killed, so that calls may fail.
        over: it was killed.
    """

    number: int
    doomed: bool = False
    over: anyio.Event = field(default_factory=anyio.Event)


@dataclass
class Storm:
    """Members and the one who kills.

    Attributes:
        service: the orchestrator that is killed.
        url: where its MCP endpoints are.
        random: everything that is not the machine's doing comes from it.
        calm: no more kills and no new work; what is under way is brought to its end.
    """

    service: Service
    url: str
    random: random.Random
    record: Record = field(default_factory=Record)
    calm: bool = False
    _life: Life = field(default_factory=lambda: Life(0))
    _calls: int = 0
    _kill_at: int = 0
    _reached: anyio.Event = field(default_factory=anyio.Event)

    async def run(self, kills: int) -> None:
        """Let them talk through so many kills, then until nothing is left to say."""
        tokens = {name: self._token(name) for name in (BOSS, HELPER)}
        steps = {BOSS: self._boss, HELPER: self._helper}
        for number in range(1, kills + 1):
            self._life, self._reached = Life(number), anyio.Event()
            self._kill_at = self._calls + self.random.randint(1, LONGEST_LIFE)
            async with anyio.create_task_group() as members:
                for name, step in steps.items():
                    members.start_soon(self._live, tokens[name], step)
                await self._reached.wait()
                await self._kill()
            await anyio.to_thread.run_sync(self.service.start)
        self._life, self.calm = Life(kills + 1), True
        async with anyio.create_task_group() as members:
            for name, step in steps.items():
                members.start_soon(self._live, tokens[name], self._calmed(step))

    def _token(self, name: str) -> str:
        asked = {"holder": "agent", "name": name, "network": "local", "days": 1}
        return self.service.ask("POST", "tokens", asked)["token"]

    async def _kill(self) -> None:
        """A moment after a call has begun: before it is stored, after it, or while it is answered."""
        with anyio.move_on_after(self.random.uniform(0, 0.03)):
            await self._life.over.wait()
        self._life.doomed = True
        await anyio.to_thread.run_sync(self.service.kill)
        self._life.over.set()

    # --- members -----------------------------------------------------------------------------------------

    async def _live(self, token: str, step: Callable[[Agent], Awaitable[bool]]) -> None:
        """Take steps until one says that it was the last, or the orchestrator is killed."""
        life = self._life
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(_leave_after, life.over, group.cancel_scope)
                async with connected(self.url, token) as agent:
                    while await step(agent):
                        pass
                group.cancel_scope.cancel()
        except Exception:
            if not life.doomed:
                raise
            await life.over.wait()

    def _calmed(self, step: Callable[[Agent], Awaitable[bool]]) -> Callable[[Agent], Awaitable[bool]]:
        """Steps until no task is open, and nothing came for either member after that."""

        async def go_on(agent: Agent) -> bool:
            await step(agent)
            if not self.record.quiet(self._life.number):
                return True
            tasks = await anyio.to_thread.run_sync(self.service.ask, "GET", TASKS)
            return any(one["state"] not in _DONE for one in tasks) or not self.record.quiet(self._life.number)

        return go_on

    async def _call(self, agent: Agent, name: str, **arguments: Any) -> dict[str, Any]:
        self._calls += 1
        if self._calls == self._kill_at:
            self._reached.set()
        return await agent(name, **arguments)

    async def _boss(self, agent: Agent) -> bool:
        what = self.random.random()
        if self.calm or what < 0.3:
            await self._fetch(BOSS, agent)
        elif what < 0.8:
            body = self.record.tries("ask")
            sent = await self._call(agent, "network_ask", body=body, toAgent=HELPER)
            self.record.acknowledged("ask", body, sent["message_id"])
        else:
            objective = self.record.tries("task")
            made = await self._call(agent, "network_delegate", objective=objective, toAgent=HELPER)
            self.record.acknowledged("task", objective, made["task"]["task_id"])
        return True

    async def _helper(self, agent: Agent) -> bool:
        for item in await self._fetch(HELPER, agent):
            if item["kind"] == "ask":
                body = self.record.tries("reply")
                sent = await self._call(agent, "network_reply", threadId=item["thread_id"], body=body)
                self.record.acknowledged("reply", body, sent["message_id"])
            elif item["kind"] == "task_offer":
                await self._work(agent, item["task"]["task_id"])
        return True

    async def _work(self, agent: Agent, task_id: str) -> None:
        for status, reason in (("accepted", ""), ("working", ""), ("completed", "it is there")):
            more = {"reason": reason} if reason else {}
            with suppress(Refused):  # it is another's by now, or nobody's any more
                await self._call(agent, "network_task_update", taskId=task_id, status=status, **more)

    async def _fetch(self, name: str, agent: Agent) -> list[dict[str, Any]]:
        try:
            inbox = await self._call(agent, "network_inbox")
        except Refused as no:
            if no.code != "rate_limited":
                raise
            return []  # it asks so often only when there is little to do
        self.record.fetches.append(Fetch(name, self._life.number, inbox["items"]))
        return inbox["items"]


async def _leave_after(over: anyio.Event, scope: anyio.CancelScope) -> None:
    await over.wait()
    scope.cancel()


async def storm(command_line: CommandLine, *, kills: int, seed: int) -> tuple[Record, dict[str, Any]]:
    """A whole storm over a new home; answers the record, and what the hub says of its signatures."""
    port = free_port()
    environment = {**command_line.environment, "PORTSIDE_LISTEN": f"127.0.0.1:{port}"}
    listening = CommandLine(command_line.home, environment)
    with serving(listening) as service:
        over = Storm(service, f"http://127.0.0.1:{port}", random.Random(seed))
        await over.run(kills)
        for one in service.ask("GET", TASKS):
            over.record.tasks.append(service.ask("GET", f"networks/local/tasks/{one['task_id']}"))
        verdict = service.ask("GET", "networks/local/verify")
    return over.record, verdict


def main() -> None:
    """Do it as long as asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.support.storm", description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--engine", default="", help="a container engine's address; found by itself unless given"
    )
    parser.add_argument("--database", default="", help="a database's address; SQLite unless given")
    given = parser.parse_args()
    settings = {"PORTSIDE_ENGINE_URL": given.engine, "PORTSIDE_DATABASE_URL": given.database}
    environment = {name: value for name, value in settings.items() if value}
    with tempfile.TemporaryDirectory(prefix="portside-storm-") as folder:
        home = Path(folder) / "home"
        try:
            run = CommandLine(home, environment)
            record, verdict = anyio.run(lambda: storm(run, kills=given.kills, seed=given.seed))
        finally:
            remove_sockets(home)
    sys.stdout.write(f"{record.summary()}; signatures: {verdict}\n")
    faults = record.faults()
    sys.stdout.write("".join(f"{fault}\n" for fault in faults))
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
