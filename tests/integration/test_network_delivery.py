"""Messages between two jobs of a running orchestrator: pushed at once, proven by acknowledgement (WN-3, WN-4)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from tests.fakes.engine import FakeEngine
from tests.support.deadline import within
from tests.support.orchestrator import Wired, WorkerHands, http_over, wired


async def poll(hands: WorkerHands, wait_s: float = 0.0, ack: list[str] | None = None) -> list[dict[str, Any]]:
    answer = await hands.get("prompt", params={"wait_s": wait_s, "ack": ack or []})
    return [] if answer.status_code == 204 else answer.json()["deliveries"]


async def call(hands: WorkerHands, tool: str, key: str, **params: Any) -> dict[str, Any]:
    answer = await hands.execute(f"network_{tool}", params, key=f"1:{key}")
    assert answer.status_code == 200, answer.text
    output = answer.json()["output"]
    assert not output["is_error"], output
    return output["result"]


async def test_a_message_reaches_a_waiting_worker_at_once_and_counts_when_it_is_acknowledged(
    orchestrator: Wired,
) -> None:
    """BR-123: delivered is what the receiver proved."""
    coder, reviewer = await orchestrator.worker(agent="coder"), await orchestrator.worker(agent="reviewer")
    waiting = asyncio.ensure_future(poll(reviewer, 20.0))
    ask = {"body": "Is it right?", "toAgent": "reviewer"}
    sent = await call(coder, "ask", "1", **ask)
    (delivery,) = await within(15.0, waiting)
    assert (delivery["kind"], delivery["thread_id"]) == ("message", sent["thread_id"])
    assert "> Is it right?" in delivery["text"].splitlines()
    assert (await call(coder, "ask", "1", **ask))["recipients"][0]["state"] in {"waiting", "held"}
    assert await poll(reviewer, ack=[delivery["delivery_id"]]) == []
    await call(reviewer, "reply", "1", threadId=sent["thread_id"], body="Yes.")
    (answer,) = await poll(coder)
    assert "> Yes." in answer["text"].splitlines()


async def test_a_restart_of_the_orchestrator_between_push_and_acknowledgement_loses_nothing(
    home: Path,
) -> None:
    """BR-123, BR-124: the next run pushes the same delivery by the same id until it is acknowledged."""
    engine = FakeEngine()
    async with wired(home, engine=engine) as first:
        coder, reviewer = await first.worker(agent="coder"), await first.worker(agent="reviewer")
        await call(coder, "ask", "1", body="m", toAgent="reviewer")
        before = await poll(reviewer)
    async with wired(home, engine=engine) as second:
        http = await second.stack.enter_async_context(http_over(socket=reviewer.socket, token=reviewer.token))
        again = WorkerHands(http, reviewer.job_id, reviewer.token, reviewer.socket)
        assert [one["text"].splitlines()[-2] for one in before] == ["> m"]
        assert await poll(again) == before
        assert await poll(again, ack=[before[0]["delivery_id"]]) == []


async def test_a_task_for_an_agent_without_a_job_is_offered_to_its_first_one(orchestrator: Wired) -> None:
    """BR-132: pending says why, and ends when somebody comes."""
    coder = await orchestrator.worker(agent="coder")
    await orchestrator.worker(agent="reviewer")
    ended = await orchestrator.worker(agent="tester")
    await ended.finish()
    task = (await call(coder, "delegate", "1", objective="Test it.", toAgent="tester"))["task"]
    assert task["state"] == "pending"
    assert task["reason"] == "another instance of 'tester' is needed and none is available now"
    tester = await orchestrator.worker(agent="tester")
    (offer,) = await poll(tester, 20.0)
    assert (offer["kind"], offer["task_id"]) == ("task_offer", task["task_id"])
    await call(tester, "task_update", "1", taskId=task["task_id"], status="accepted")
    await tester.finish("failed")
    (record,) = [await call(coder, "task_get", "2", taskId=task["task_id"])]
    assert record["task"]["state"] == "pending"
    assert record["history"][-1]["by"] is None
