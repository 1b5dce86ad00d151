"""Two jobs of a running orchestrator that find, ask and answer each other, with the real model."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from orchestrator.domain.network.identities import AgentName, NetworkName
from orchestrator.ports.models import ModelAnswer, ModelRequest
from tests.fakes.engine import FakeEngine
from tests.fakes.model import FINISH, CapturingModel, calls
from tests.support.deadline import within
from tests.support.orchestrator import Wired, WorkerHands, http_over, wired
from tests.support.waiting import until
from worker.clock import SystemClock

pytestmark = pytest.mark.xdist_group("minilm")

SEND, CHECK = "send_collaboration_request", "check_collaboration_result"


class Played(CapturingModel):
    """Two models in step with one another.

    Attributes:
        results: what calls came to, by their ids.
        threads: the threads that the helper was asked in, in that order.
        open: how many requests to the helper are not answered.
    """

    def __init__(self) -> None:
        super().__init__()
        self.results: dict[str, Any] = {}
        self.threads: list[str] = []
        self.ready, self.timed_out, self.answered = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.open: Callable[[], Any] = lambda: None
        self._turns = {"scripted:asker": self.asker(), "scripted:helper": self.helper()}

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        for message in request.messages:
            if message.role == "tool" and message.tool_call_id:
                self.results[message.tool_call_id] = json.loads(str(message.content))
        asked_in = re.findall(r"network_reply, threadId ([\w-]+)\.", str(request.messages))
        for inbox in ("inbox-1", "inbox-2"):
            asked_in += [one["thread_id"] for one in self.results.get(inbox, {}).get("items", ())]
        self.threads = list(dict.fromkeys([*self.threads, *asked_in]))
        return await anext(self._turns[request.model], FINISH)

    async def asker(self) -> AsyncGenerator[ModelAnswer]:
        await self.ready.wait()
        yield _call("find", "search_for_agents", query="work out what each employee gets this month")
        (found, *_) = self.results["find"]["results"]
        ask = {"target_agent_id": found["agent_id"], "timeout": 60}
        yield _call("soon", SEND, **ask, task="What does Ann get?")
        yield _call("late", SEND, **{**ask, "timeout": 1}, task="And Bob?")
        request = self.results["late"]["request_id"]
        yield _call("none", CHECK, request_id=request)
        self.timed_out.set()
        await self.answered.wait()
        yield _call("there", CHECK, request_id=request)
        yield _call("gone", CHECK, request_id=request)

    async def helper(self) -> AsyncGenerator[ModelAnswer]:
        able = {"name": "Payroll", "description": "Calculates salaries, overtime and payslips."}
        yield _call("able", "network_register_capabilities", capabilities=[able])
        self.ready.set()
        await until(self._is_asked)
        yield _call("inbox-1", "network_inbox")
        yield _call("first", "network_reply", threadId=self.threads[0], body="4,711 euros")
        await self.timed_out.wait()
        yield _call("inbox-2", "network_inbox")
        yield _call("second", "network_reply", threadId=self.threads[1], body="1,234 euros")
        self.answered.set()

    async def _is_asked(self) -> bool:
        return bool(await self.open())


def _call(call_id: str, tool: str, **arguments: Any) -> ModelAnswer:
    return calls((call_id, tool, json.dumps(arguments)))


def open_requests(running: Wired) -> Callable[[], Any]:
    async def look() -> int:
        def count(reader: Any) -> int:
            return len(reader.unanswered_requests(AgentName("helper"), SystemClock().now()))

        return await running.stores.network.read(NetworkName("local"), count)

    return look


@pytest.fixture
async def played(home: Path) -> AsyncIterator[tuple[Wired, Played]]:
    model = Played()
    async with wired(home, model=model) as running:
        model.open = open_requests(running)
        yield running, model


async def test_one_job_finds_the_other_asks_it_and_fetches_what_came_late(
    played: tuple[Wired, Played],
) -> None:
    """AT-2, AT-4, AT-6, BR-128: search, response in time, timeout, and the late result, once."""
    running, model = played
    helper = await running.new_job(mode="in-process", agent="helper", model="scripted:helper")
    asker = await running.new_job(mode="in-process", agent="asker", model="scripted:asker")
    for job in (asker, helper):
        ended = await running.ended(job, within_s=60.0)
        assert ended.state == "completed", ended
    results = model.results
    assert [one["agent_id"] for one in results["find"]["results"]] == ["helper"]
    assert results["find"]["results"][0]["similarity_score"] >= 0.2
    assert (results["soon"]["success"], results["soon"]["response"]) == (True, "4,711 euros")
    assert (results["late"]["success"], results["late"]["error"]) == (False, "timeout")
    assert 1 <= results["late"]["waited_s"] < 10
    assert results["none"]["status"] == "pending_after_timeout"
    assert (results["there"]["status"], results["there"]["response"]) == ("completed_late", "1,234 euros")
    assert results["gone"]["status"] == "not_found"


async def test_a_request_and_its_response_outlive_the_orchestrator(home: Path) -> None:
    """AT-7, BR-128: stopped while it waits; the next run has the request, its target and its result."""
    engine = FakeEngine()
    ask = {"target_agent_id": "helper", "task": "?", "timeout": 100}
    async with wired(home, engine=engine) as first:
        asker, helper = await first.worker(agent="asker"), await first.worker(agent="helper")
        waiting = asyncio.ensure_future(asker.execute(SEND, ask, key="1:s"))
        await until(open_requests(first))
    await asyncio.gather(waiting, return_exceptions=True)
    async with wired(home, engine=engine) as second:
        asker, helper = [await again(second, hands) for hands in (asker, helper)]
        waiting = asyncio.ensure_future(asker.execute(SEND, ask, key="1:s"))
        (item,) = (await result(helper, "network_inbox", key="1:i"))["items"]
        await result(helper, "network_reply", key="1:r", threadId=item["thread_id"], body="Here.")
        answer = (await within(20.0, waiting)).json()["output"]["result"]
        assert (answer["success"], answer["response"]) == (True, "Here.")
        checked = await result(asker, CHECK, key="1:c", request_id=answer["request_id"])
        assert (checked["status"], checked["response"]) == ("completed", "Here.")


async def again(running: Wired, hands: WorkerHands) -> WorkerHands:
    """The same worker at the next run's socket."""
    http = await running.stack.enter_async_context(http_over(socket=hands.socket, token=hands.token))
    return WorkerHands(http, hands.job_id, hands.token, hands.socket)


async def result(hands: WorkerHands, tool: str, key: str, **params: Any) -> dict[str, Any]:
    answer = await hands.execute(tool, params, key=key)
    assert answer.status_code == 200, answer.text
    return answer.json()["output"]["result"]
