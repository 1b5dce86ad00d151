"""PD-44: representatives at `/mcp/control`: rights, real jobs, confirmations and the operator's channel."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from mcp import MCPError
from mcp.client.client import ConnectMode

from orchestrator.services.control_access import ControlAccess
from orchestrator.services.network_members import Refused as Refusal
from tests.support.control_page import PAGE, render
from tests.support.orchestrator import Wired, http_over, problem, wired
from tests.support.outside import Agent, Refused, agent, connected, representative, token_for

EVERYTHING = ["observe", "communicate", "delegate", "operate"]
NAMES = [
    "whoami",
    "list_networks",
    "use_network",
    "network_status",
    "list_agents",
    "find_agents",
    "list_tasks",
    "task_status",
    "list_blocked",
    "ask",
    "reply",
    "delegate",
    "wake_agent",
    "launch_agent",
    "stop_agent",
    "restart_agent",
    "get_history",
    "get_thread",
    "get_graph",
    "channel_send",
    "channel_history",
]
ARGUMENTS = {
    "list_tasks": "networkId status limit",
    "task_status": "taskId*",
    "ask": "body* toAgent toInstance threadId subject taskId resource networkId",
    "reply": "threadId* body*",
    "delegate": "objective* title acceptanceCriteria toAgent toInstance resource networkId",
    "find_agents": "networkId resourceKey action",
    "use_network": "networkId*",
    "wake_agent": "toAgent toInstance reason networkId",
    "launch_agent": "agentName definitionId hostId runtime networkId",
    "stop_agent": "instanceId* confirmationId networkId",
    "restart_agent": "instanceId* confirmationId networkId",
    "get_history": "networkId limit",
    "get_thread": "threadId*",
    "channel_send": "body* conversationId",
    "channel_history": "conversationId limit",
}


@pytest.fixture
async def service(home: Path) -> AsyncIterator[Wired]:
    async with wired(home, listen="127.0.0.1:0") as running:
        yield running


async def refused(call: Any) -> str:
    """The code of a call that must be refused."""
    with pytest.raises(Refused) as no:
        await call
    return no.value.code


# --- the surface -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_representative_has_exactly_the_21_tools_and_nothing_else(
    service: Wired, mode: ConnectMode
) -> None:
    """WN-7: the other surface is refused by the server in both directions, and each try is on record."""
    async with representative(service, "rita", mode, local=EVERYTHING) as rita, agent(service, "bob") as bob:
        tools = {tool.name: tool for tool in (await rita.client.list_tools()).tools}
        others = {"for_others"}  # of the test's own, for representatives too
        assert tools.keys() - others == {f"control_{name}" for name in NAMES}
        for name, arguments in ARGUMENTS.items():
            schema = tools[f"control_{name}"].input_schema
            marked = {one + "*" * (one in schema["required"]) for one in schema["properties"]}
            assert marked == set(arguments.split()), name
        for name in ("network_ask", "network_whoami", "echo"):
            assert await refused(rita(name)) == "tool_not_hosted"
        assert await refused(bob("control_whoami")) == "tool_not_hosted"
    worker = await service.worker()
    across = await worker.execute("control_stop_agent", {"instanceId": "x"})
    assert (problem(across)["code"], problem(across)["reason"]) == ("tool_not_hosted", "wrong_surface")
    await service.operator.get("/api/v1/tool-stats")
    rows = await service.stores.audit.read(job_id="representative:rita")
    assert [one.verdict for one in rows] == ["tool_not_hosted"] * 3


def test_the_page_of_the_control_tools_is_rendered_from_them() -> None:
    assert PAGE.read_text() == render(), "run: python -m tests.support.control_page"


# --- rights ----------------------------------------------------------------------------------------------


async def test_a_representative_may_what_it_was_granted_and_its_person_may(service: Wired) -> None:
    """The effective right is the person's access and the grant, asked at every call."""
    put, rita_path = service.operator.put, "/api/v1/representatives/rita"
    token = await token_for(service, "rita", "representative")
    assert (await put(rita_path, json={"person": "anna"})).status_code == 200
    async with (
        connected(service.running.mcp_url, token, "/mcp/control") as rita,
        agent(service, "bob") as bob,
    ):
        await bob("network_whoami")
        assert (await rita("control_whoami"))["networks"] == []
        assert await refused(rita("control_list_agents", networkId="local")) == "not_found"
        await put(f"{rita_path}/grants/local", json={"rights": EVERYTHING})
        assert (await rita("control_list_networks"))["networks"] == []
        await put("/api/v1/people/anna/access/local", json={"rights": ["observe", "communicate"]})
        assert (await rita("control_list_networks"))["networks"] == [
            {"network": "local", "rights": ["observe", "communicate"], "active": False}
        ]
        assert await refused(rita("control_list_agents")) == "no_active_network"
        await rita("control_use_network", networkId="LOCAL")
        assert "bob" in {one["name"] for one in (await rita("control_list_agents"))["agents"]}
        for name, arguments in {
            "delegate": {"objective": "x", "toAgent": "bob"},
            "launch_agent": {"agentName": "bob"},
            "wake_agent": {"toAgent": "bob"},
            "stop_agent": {"instanceId": "i"},
            "restart_agent": {"instanceId": "i"},
        }.items():
            assert await refused(rita(f"control_{name}", **arguments)) == "not_granted", name
        await put("/api/v1/people/anna/access/local", json={"rights": ["communicate"]})
        for name, arguments in {
            "network_status": {},
            "list_agents": {},
            "find_agents": {"action": "x"},
            "list_tasks": {},
            "list_blocked": {},
            "get_history": {},
            "get_graph": {},
        }.items():
            assert await refused(rita(f"control_{name}", **arguments)) == "not_granted", name
        assert await refused(rita("control_task_status", taskId="t")) == "not_found"
        assert await refused(rita("control_get_thread", threadId="t")) == "not_found"
        await rita("control_ask", body="hello", toAgent="bob")
        await service.operator.delete(rita_path)
        with pytest.raises(MCPError):  # its token is void
            await rita("control_whoami")
    with pytest.raises(Refusal) as gone:  # a call that was let in just before
        await ControlAccess(service.stores.representatives).acting("rita", "call-1")
    assert gone.value.refusal.code == "not_a_representative"
    unknown = await service.operator.post("/api/v1/tokens", json={"holder": "representative", "name": "zoe"})
    assert problem(unknown)["code"] == "not_found"


async def test_another_network_s_things_do_not_exist(service: Wired) -> None:
    async with (
        representative(service, "rita", local=EVERYTHING, prod=["communicate"]) as rita,
        agent(service, "bob", network="prod") as bob,
    ):
        task = (await bob("network_delegate", objective="secret"))["task"]["task_id"]
        thread = (await bob("network_ask", body="secret", toAgent="bob"))["thread_id"]
        assert await refused(rita("control_task_status", taskId=task)) == "not_found"
        assert await refused(rita("control_get_thread", threadId=thread)) == "not_found"
        assert await refused(rita("control_list_agents", networkId="prod")) == "not_granted"
        assert await refused(rita("control_list_agents", networkId="other")) == "not_found"


# --- looking and talking ---------------------------------------------------------------------------------


async def test_a_representative_asks_reads_the_answer_and_follows_work(service: Wired) -> None:
    async with representative(service, "rita", local=EVERYTHING) as rita, agent(service, "bob") as bob:
        await bob("network_whoami")
        await rita("control_use_network", networkId="local")
        asked = await rita("control_ask", body="how far?", toAgent="bob", subject="state")
        (item,) = (await bob("network_inbox"))["items"]
        assert (item["from"]["agent"], item["body"]) == ("rita", "how far?")
        await bob("network_reply", threadId=asked["thread_id"], body="half")
        thread = await rita("control_get_thread", threadId=asked["thread_id"])
        assert [(one["from"]["agent"], one["body"]) for one in thread["messages"]] == [
            ("rita", "how far?"),
            ("bob", "half"),
        ]
        await rita("control_reply", threadId=asked["thread_id"], body="go on")
        task = (await rita("control_delegate", objective="finish", toAgent="bob"))["task"]
        await bob("network_task_update", taskId=task["task_id"], status="accepted")
        await bob("network_task_update", taskId=task["task_id"], status="blocked", reason="no key")
        status = await rita("control_task_status", taskId=task["task_id"])
        assert (status["task"]["state"], status["history"][-1]["reason"]) == ("blocked", "no key")
        await look_around(rita, task["task_id"])
        own = {one["name"]: one for one in (await bob("network_discover"))["agents"]}
        assert (own["rita"]["kind"], own["rita"]["available"]) == ("representative", False)


async def look_around(rita: Agent, task_id: str) -> None:
    blocked = (await rita("control_list_blocked"))["tasks"]
    assert [(one["task_id"], one["reason"]) for one in blocked] == [(task_id, "no key")]
    assert (await rita("control_list_tasks", status="working"))["tasks"] == []
    assert len((await rita("control_list_tasks", limit=1))["tasks"]) == 1
    state = await rita("control_network_status")
    assert (state["instances"], state["available"]) == (2, 1)
    assert state["open_tasks"] == [{"state": "blocked", "count": 1}]
    kinds = [one["kind"] for one in (await rita("control_get_history", limit=20))["entries"]]
    assert {"ask", "reply", "task"} <= set(kinds)
    graph = await rita("control_get_graph")
    assert {(one["from"], one["to"], one["kind"]) for one in graph["edges"]} >= {
        ("rita", "bob", "message"),
        ("bob", "rita", "message"),
        ("rita", "bob", "task"),
    }
    assert [one["name"] for one in (await rita("control_find_agents", action="nothing"))["agents"]] == []


async def test_a_name_of_a_worker_is_no_representative_s(service: Wired) -> None:
    """BR-135: nobody speaks in an agent's name."""
    async with agent(service, "bob") as bob, representative(service, "bob", local=EVERYTHING) as false_bob:
        await bob("network_whoami")
        call = false_bob("control_ask", body="x", toAgent="bob", networkId="local")
        assert await refused(call) == "name_taken"


async def test_a_removed_representative_s_token_opens_nothing_for_the_next_of_its_name(
    service: Wired,
) -> None:
    """PD-44: also while it was never missed."""
    token = await token_for(service, "rita", "representative")
    assert (await service.operator.delete("/api/v1/representatives/rita")).status_code == 204
    again = await token_for(service, "rita", "representative")
    async with http_over(socket=service.settings.api_socket) as local:
        for held, let_in in ((token, False), (again, True)):
            said = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
            headers = {
                "Authorization": f"Bearer {held}",
                "Accept": "application/json, text/event-stream",
                "MCP-Protocol-Version": "2026-07-28",
            }
            answer = await local.post("/mcp/control", json=said, headers=headers)
            assert (answer.status_code != 401) == let_in, answer.text
            assert let_in or problem(answer)["code"] == "token_revoked"
    assert [bool(one["revoked_at"]) for one in (await service.operator.get("/api/v1/tokens")).json()] == [
        False,
        True,
    ]


async def test_the_operator_and_a_representative_talk_in_the_channel(service: Wired) -> None:
    async with representative(service, "rita", local=["observe"]) as rita:
        sent = await rita("control_channel_send", body="may I?")
        (shown,) = (await service.operator.get("/api/v1/channel")).json()
        assert (shown["representative"], shown["body"], shown["from_operator"]) == ("rita", "may I?", False)
        said = {"representative": "rita", "body": "yes", "conversation_id": sent["conversation_id"]}
        assert (await service.operator.post("/api/v1/channel", json=said)).status_code == 201
        history = await rita("control_channel_history", conversationId=sent["conversation_id"])
        assert [(one["from"], one["body"]) for one in history["messages"]] == [
            ("representative", "may I?"),
            ("operator", "yes"),
        ]
        nobody = await service.operator.post("/api/v1/channel", json={**said, "representative": "zoe"})
        assert problem(nobody)["code"] == "not_found"


# --- jobs ------------------------------------------------------------------------------------------------


async def test_launching_and_waking_work_on_real_jobs(service: Wired) -> None:
    put = await service.operator.post(
        "/api/v1/networks/local/agents",
        json={"name": "builder", "launch": {"mission": "Build.", "model": "scripted:model"}},
    )
    assert put.status_code == 201, put.text
    async with representative(service, "rita", local=EVERYTHING) as rita:
        await rita("control_use_network", networkId="local")
        assert await refused(rita("control_launch_agent", agentName="nobody")) == "not_found"
        assert await refused(rita("control_wake_agent")) == "no_recipient"
        first = await rita("control_launch_agent", agentName="builder")
        again = await rita("control_launch_agent", definitionId="builder", agentName="x")
        assert (first["launched"], again["launched"]) == (True, False)
        assert first["job_id"] == again["job_id"]
        job = await service.job(first["job_id"])
        assert (job.spec.agent, job.spec.model) == ("builder", "scripted:model")
        assert (job.spec.system_prompt or "").startswith("Build.")
        await service.worker(first["job_id"])
        woken = await rita("control_wake_agent", toAgent="builder", reason="hurry")
        assert (woken["how"], woken["instance_id"]) == ("prompted", first["instance_id"])
        (prompt,) = await service.stores.deliveries.pending(job.id)
        assert prompt.text == "rita wakes you for operator: hurry"


async def test_stopping_takes_a_person_s_yes_for_that_call_once(service: Wired) -> None:
    first, second = await service.worker(agent="one"), await service.worker(agent="two")
    ids = [(await service.job(one.job_id)).instance_id for one in (first, second)]
    async with (
        representative(service, "rita", local=EVERYTHING) as rita,
        representative(service, "otto", local=EVERYTHING) as otto,
        agent(service, "bob") as bob,
    ):
        outside = await bob.instance_id()
        stop: dict[str, Any] = {"instanceId": ids[0], "networkId": "local"}
        asked = await rita("control_stop_agent", **stop)
        assert asked["status"] == "confirmation_required"
        assert (await rita("control_stop_agent", **stop))["confirmation_id"] == asked["confirmation_id"]
        assert not (await service.job(first.job_id)).state.terminal
        stop["confirmationId"] = asked["confirmation_id"]
        assert await refused(rita("control_stop_agent", **stop)) == "confirmation_pending"
        (shown,) = (await service.operator.get("/api/v1/confirmations")).json()
        assert re.fullmatch(rf"rita \(for operator\) wants to stop one, job {first.job_id}", shown["says"])
        path = f"/api/v1/confirmations/{asked['confirmation_id']}/confirm"
        assert (await service.operator.post(path, json={})).json()["confirmed_at"]
        assert await refused(otto("control_stop_agent", **stop)) == "confirmation_invalid"
        assert await refused(rita("control_restart_agent", **stop)) == "confirmation_invalid"
        assert await refused(rita("control_stop_agent", **{**stop, "instanceId": ids[1]})) == (
            "confirmation_invalid"
        )
        done = await rita("control_stop_agent", **stop)
        assert (done["status"], done["job_id"]) == ("stopping", first.job_id)
        job = await service.job(first.job_id)
        assert job.reason == "stopped by rita for operator"
        assert await refused(rita("control_stop_agent", **stop)) in {"confirmation_invalid", "target_ended"}
        late = await service.operator.post(path, json={})
        assert problem(late)["code"] == "conflict"
        assert await refused(rita("control_stop_agent", instanceId=outside, networkId="local")) == "not_a_job"


async def test_restarting_starts_another_job_like_the_first(service: Wired) -> None:
    worker = await service.worker(agent="one", title="the first")
    old = await service.job(worker.job_id)
    async with representative(service, "rita", local=EVERYTHING) as rita:
        restart = {"instanceId": old.instance_id, "networkId": "local"}
        asked = await rita("control_restart_agent", **restart)
        await service.operator.post(f"/api/v1/confirmations/{asked['confirmation_id']}/confirm", json={})
        done = await rita("control_restart_agent", **restart, confirmationId=asked["confirmation_id"])
        new = await service.job(done["job_id"])
        assert (new.spec, new.id != old.id) == (old.spec, True)
        assert (await service.job(old.id)).cancel_requested_at is not None
