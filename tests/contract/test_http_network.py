"""PD-62, PD-63, PD-64: a network over the operator API: read, spoken in by a human, and verified."""

from __future__ import annotations

from typing import Any

from tests.support.orchestrator import Wired, problem
from tests.support.waiting import until

NETWORK = "/api/v1/networks/local"
ANN = f"{NETWORK}/agents/ann"


async def got(running: Wired, path: str) -> Any:
    answer = await running.operator.get(f"{NETWORK}/{path}")
    assert answer.status_code == 200, answer.text
    return answer.json()


async def said(running: Wired, path: str, status: int = 201, **body: Any) -> Any:
    answer = await running.operator.post(f"{ANN}/{path}", json=body)
    assert answer.status_code == status, answer.text
    return answer.json() if answer.content else None


async def test_a_human_and_a_job_work_together_and_the_operator_sees_it(orchestrator: Wired) -> None:
    await orchestrator.operator.post(f"{NETWORK}/agents", json={"name": "ann", "kind": "human"})
    task = await said(orchestrator, "tasks", objective="Build it.", to="coder", acceptance_criteria=["green"])
    worker = await orchestrator.worker()
    (offer,) = (await worker.execute("network_inbox")).json()["output"]["result"]["items"]
    assert offer["task"]["task_id"] == task["task_id"]
    moves = ({"status": "accepted"}, {"status": "working"}, {"status": "blocked", "reason": "no key"})
    for move in moves:  # without keys: each is a call of its own
        done = await worker.execute("network_task_update", {"taskId": task["task_id"]} | move)
        assert not done.json()["output"]["is_error"], done.text
    await worker.execute("network_claim", {"scope": "src/**"})
    asked = await worker.execute("network_ask", {"toAgent": "ann", "body": "Which key?"})
    thread_id = asked.json()["output"]["result"]["thread_id"]

    status = await got(orchestrator, "status")
    assert (status["agents"], status["available"], status["tasks"]) == (2, 2, {"blocked": 1})
    assert (status["blocked"][0]["reason"], status["claims"]) == ("no key", 1)
    assert [one["scope"] for one in await got(orchestrator, "claims")] == ["src/**"]
    assert [one["state"] for one in await got(orchestrator, "tasks?state=blocked")] == ["blocked"]
    assert await got(orchestrator, "tasks?state=failed") == []
    detail = await got(orchestrator, f"tasks/{task['task_id']}")
    assert [one["state"] for one in detail["history"]] == [
        "pending",
        "offered",
        "accepted",
        "working",
        "blocked",
    ]

    inbox = await got(orchestrator, "agents/ann/inbox")
    assert [one["message"]["kind"] for one in inbox] == ["status", "ask"]
    await said(orchestrator, "inbox/seen", 204, delivery_ids=[one["delivery_id"] for one in inbox])
    await said(orchestrator, "reply", thread_id=thread_id, body="This one.")
    assert await got(orchestrator, "agents/ann/inbox") == []
    thread = await got(orchestrator, f"threads/{thread_id}")
    assert [(one["sender"], one["body"], one["signed"]) for one in thread["messages"]] == [
        ("coder", "Which key?", True),
        ("ann", "This one.", True),
    ]
    assert thread["messages"][1]["copies"][0]["agent"] == "coder"
    assert {one["thread_id"] for one in await got(orchestrator, "threads")} >= {thread_id}
    assert await got(orchestrator, "verify") == {"threads": 2, "signed": 3, "unsigned": 0, "faults": []}


async def test_what_is_not_there_and_what_can_t_be_is_said(orchestrator: Wired) -> None:
    await orchestrator.operator.post(f"{NETWORK}/agents", json={"name": "ann", "kind": "human"})
    for path in ("threads/x", "tasks/x", "verify?thread_id=x", "agents/eve/inbox"):
        answer = await orchestrator.operator.get(f"{NETWORK}/{path}")
        assert (answer.status_code, problem(answer)["code"]) == (404, "not_found"), path
    elsewhere = await orchestrator.operator.get("/api/v1/networks/nowhere/status")
    assert problem(elsewhere)["detail"] == "there is no network 'nowhere'"
    coder = await orchestrator.operator.post(f"{NETWORK}/agents/coder/ask", json={"to": "ann", "body": "x"})
    assert (coder.status_code, problem(coder)["code"]) == (409, "not_a_human")


async def test_waiting_work_starts_its_agent_in_a_sandbox_of_its_own(orchestrator: Wired) -> None:
    """PD-61"""
    http = orchestrator.operator
    await http.post(f"{NETWORK}/agents", json={"name": "ann", "kind": "human"})
    launch = {"model": "scripted:model", "mission": "Be kind.", "autostart": True}
    await http.post(f"{NETWORK}/agents", json={"name": "rev", "launch": launch})
    task = await said(orchestrator, "tasks", objective="Review it.", to="rev")
    job_id = await _started(orchestrator)
    worker = await orchestrator.worker(job_id)
    described = (await worker.get("job")).json()
    assert described["system_prompt"] == "Be kind."
    assert "> Review it." in described["task"]
    assert (await got(orchestrator, f"tasks/{task['task_id']}"))["state"] == "offered"
    (offer,) = (await worker.execute("network_inbox")).json()["output"]["result"]["items"]
    assert offer["task"]["task_id"] == task["task_id"]


async def _started(running: Wired) -> str:
    found: list[str] = []

    async def there() -> bool:
        jobs = (await running.operator.get("/api/v1/jobs")).json()
        found[:] = [one["id"] for one in jobs if one["agent"] == "rev"]
        return bool(found)

    await until(there)
    assert len(found) == 1
    return found[0]
