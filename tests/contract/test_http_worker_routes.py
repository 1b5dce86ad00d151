"""HW-6, PD-4: every worker route, what it answers."""

from __future__ import annotations

import asyncio
import io
import tarfile
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

import pytest

from orchestrator.adapters.db.deliveries import SqlDeliveryStore
from orchestrator.domain.jobs import JobId
from orchestrator.ports.deliveries import PendingDelivery
from tests.fakes.model import calls
from tests.support.deadline import within
from tests.support.orchestrator import Wired, problem
from worker.protocol.job import JobDescription
from worker.protocol.tools import Catalog

AT = datetime(2026, 1, 2, tzinfo=UTC).isoformat()


def event(seq: int, text: str = "hello") -> dict[str, Any]:
    return {"type": "log", "seq": seq, "at": AT, "data": {"level": "info", "text": text}}


async def test_the_first_get_of_a_job_describes_it_and_makes_it_running(orchestrator: Wired) -> None:
    worker = await orchestrator.worker(
        register=False, title="T", task="do this", max_iterations=7, max_tokens=99, system_prompt="Be kind."
    )
    assert (await orchestrator.job(worker.job_id)).state == "starting"
    answer = await worker.get("job")
    described = JobDescription.model_validate_json(answer.content)
    assert (described.job_id, described.title, described.task) == (worker.job_id, "T", "do this")
    assert (described.limits.max_iterations, described.limits.max_tokens) == (7, 99)
    assert (described.system_prompt, described.model) == ("Be kind.", "scripted:model")
    assert (described.agent.name, described.agent.network) == ("coder", "local")
    assert (described.attempt, described.protocol_version) == (1, "1")
    job = await orchestrator.job(worker.job_id)
    assert (job.state, job.deadline_at) == ("running", described.limits.deadline_at)


async def test_the_token_file_is_gone_once_the_worker_has_registered(orchestrator: Wired) -> None:
    """00-decisions 13: the orchestrator removes it at the first authenticated GET job."""
    worker = await orchestrator.worker(register=False)
    token_file = worker.socket.with_name("token")
    assert token_file.stat().st_mode & 0o777 == 0o444
    assert worker.socket.parent.parent.stat().st_mode & 0o777 == 0o700
    await worker.get("job")
    assert not token_file.exists()


async def test_registering_twice_changes_nothing(orchestrator: Wired) -> None:
    worker = await orchestrator.worker()
    first, second = (await worker.get("job")).json(), (await worker.get("job")).json()
    assert first == second
    registered = [
        one
        for one in await orchestrator.events(worker.job_id, "status")
        if "registered" in str(one["message"])
    ]
    assert len(registered) == 1


async def test_an_empty_workspace_is_204_and_another_comes_as_it_was_uploaded(orchestrator: Wired) -> None:
    empty = await orchestrator.worker()
    assert (await empty.get("workspace")).status_code == 204
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        tar.addfile(tarfile.TarInfo("a.txt"))
    stored = (await orchestrator.operator.put("/api/v1/workspaces", content=packed.getvalue())).json()
    assert stored == {"sha256": sha256(packed.getvalue()).hexdigest(), "size_bytes": len(packed.getvalue())}
    worker = await orchestrator.worker(workspace_sha256=stored["sha256"])
    answer = await worker.get("workspace")
    assert answer.headers["content-type"] == "application/x-tar"
    assert answer.content == packed.getvalue()
    assert (await worker.get("job")).json()["workspace"] == {"root": "/workspace"} | stored


async def test_changes_need_a_digest_that_fits(orchestrator: Wired) -> None:
    worker = await orchestrator.worker()
    missing = await worker.upload_changes(b"diff", digest="")
    assert (missing.status_code, problem(missing)["code"]) == (400, "invalid_request")
    wrong = await worker.upload_changes(b"diff", digest="sha-256=:AAAA:")
    assert (wrong.status_code, problem(wrong)["code"]) == (400, "invalid_request")
    assert (await orchestrator.job(worker.job_id)).changes_sha256 is None
    right = await worker.upload_changes(b"diff")
    assert (right.status_code, right.content) == (204, b"")
    diff = await orchestrator.operator.get(f"/api/v1/jobs/{worker.job_id}/diff")
    assert diff.content == b"diff"


async def test_credentials_are_those_granted_and_their_values_stand_in_no_event(orchestrator: Wired) -> None:
    """BR-121: what was handed out is said by name."""
    none = await orchestrator.worker()
    assert (await none.get("credentials")).status_code == 204
    await orchestrator.stores.secrets.set("github", "ghp-marker-value")
    worker = await orchestrator.worker(secrets={"github": "GH_TOKEN"})
    assert (await worker.get("credentials")).json() == [{"env_var": "GH_TOKEN", "value": "ghp-marker-value"}]
    told = str(await orchestrator.events(worker.job_id))
    assert "github" in told
    assert "ghp-marker-value" not in told


async def test_a_granted_secret_that_is_gone_is_said_by_name(orchestrator: Wired) -> None:
    await orchestrator.stores.secrets.set("github", "ghp-marker-value")
    worker = await orchestrator.worker(secrets={"github": "GH_TOKEN"})
    await orchestrator.stores.secrets.delete("github")
    answer = await worker.get("credentials")
    assert answer.status_code == 409
    assert "'github'" in problem(answer)["detail"]


async def test_a_status_is_204_and_its_message_stands_in_the_timeline(orchestrator: Wired) -> None:
    worker = await orchestrator.worker()
    answer = await worker.post("status", {"state": "running", "message": "reading", "iteration": 3})
    assert (answer.status_code, answer.content) == (204, b"")
    assert (await orchestrator.events(worker.job_id, "status"))[-1] == {
        "state": "running",
        "message": "running: reading",
        "iteration": 3,
    }


async def test_events_are_stored_once_by_their_number(orchestrator: Wired) -> None:
    worker = await orchestrator.worker()
    assert (await worker.post("events", {"events": [event(1, "a"), event(2, "b")]})).status_code == 204
    assert (await worker.post("events", {"events": [event(2, "b"), event(3, "c")]})).status_code == 204
    texts = [one["text"] for one in await orchestrator.events(worker.job_id, "log")]
    assert texts == ["a", "b", "c"]


async def test_events_that_no_timeline_can_hold_are_refused(orchestrator: Wired) -> None:
    """PD-4, PD-76: what a worker says can always be stored, and always be read again."""
    worker = await orchestrator.worker()
    result = {
        "call_id": "1",
        "tool_name": "echo",
        "verdict": "invalid_params",
        "is_error": True,
        "preview": "",
        "duration_ms": 2**70,
        "unsent": True,
    }
    odds: tuple[dict[str, Any], ...] = (
        # It would be recorded as a call, and take the records of all other calls of that moment with it.
        {"type": "tool_result", "data": result},
        {"type": "status", "data": {"state": "running", "iteration": -1}},
        {"seq": 2**63},
        {"seq": 10**3000},
        {"seq": 0},
        {"at": "2026-01-02T00:00:00"},
        {"at": "9999-12-31T23:59:59-12:00"},
        {"at": "0001-01-01T00:00:00+14:00"},
        {"at": 1e15},
        {"at": "today"},
    )
    for odd in odds:
        refused = await worker.post("events", {"events": [event(1) | odd]})
        assert (refused.status_code, problem(refused)["code"]) == (400, "invalid_request"), odd
    assert (await worker.post("events", {"events": [event(2**63 - 1)]})).status_code == 204
    assert len(await orchestrator.events(worker.job_id, "log")) == 1
    reported = await worker.post("complete", {"outcome": "completed", "iterations": 2**63})
    assert (reported.status_code, problem(reported)["code"]) == (400, "invalid_request")


async def test_events_are_masked_again_when_they_arrive(orchestrator: Wired) -> None:
    """BR-121: known secrets and sensitive arguments, whatever the worker did (00-decisions 4)."""
    worker = await orchestrator.worker()
    use = {
        "call_id": "1",
        "tool_name": "echo",
        "params": {"text": "private"},
        "source": "proxy",
        "iteration": 1,
    }
    sent = [
        event(1, f"key {orchestrator.tools.secret}"),
        {"type": "tool_use", "seq": 2, "at": AT, "data": use},
    ]
    assert (await worker.post("events", {"events": sent})).status_code == 204
    (stored,) = await orchestrator.events(worker.job_id, "tool_use")
    assert stored["source"] == "mcp"  # the worker knows a proxy only
    told = str(await orchestrator.events(worker.job_id))
    assert orchestrator.tools.secret not in told
    assert "private" not in told
    assert "[masked]" in told


async def test_a_prompt_comes_again_until_it_is_acknowledged(orchestrator: Wired) -> None:
    worker = await orchestrator.worker()
    assert (await worker.get("prompt")).status_code == 204
    said = await orchestrator.operator.post(f"/api/v1/jobs/{worker.job_id}/prompt", json={"text": "faster"})
    assert said.status_code == 202
    (first,) = (await worker.get("prompt")).json()["deliveries"]
    assert first == {
        "delivery_id": first["delivery_id"],
        "kind": "prompt",
        "text": "faster",
        "thread_id": None,
        "task_id": None,
    }
    (again,) = (await worker.get("prompt")).json()["deliveries"]
    assert again == first
    assert (await worker.get("prompt", params={"ack": first["delivery_id"]})).status_code == 204
    assert (await worker.get("prompt")).status_code == 204


async def test_a_long_poll_ends_as_soon_as_something_comes(orchestrator: Wired) -> None:
    worker = await orchestrator.worker()
    poll = asyncio.create_task(worker.get("prompt", params={"wait_s": 25}))
    await orchestrator.operator.post(f"/api/v1/jobs/{worker.job_id}/prompt", json={"text": "now"})
    answer = await within(5.0, poll)
    assert [one["text"] for one in answer.json()["deliveries"]] == ["now"]


async def test_what_comes_while_a_poll_looks_is_not_missed(
    orchestrator: Wired, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = await orchestrator.worker()
    pending, said = SqlDeliveryStore.pending, asyncio.Event()

    async def slowly(store: SqlDeliveryStore, job_id: JobId, *, limit: int = 50) -> list[PendingDelivery]:
        found = await pending(store, job_id, limit=limit)
        if not said.is_set():
            said.set()
            path = f"/api/v1/jobs/{worker.job_id}/prompt"
            assert (await orchestrator.operator.post(path, json={"text": "now"})).status_code == 202
        return found

    monkeypatch.setattr(SqlDeliveryStore, "pending", slowly)
    answer = await within(5.0, worker.get("prompt", params={"wait_s": 25}))
    assert [one["text"] for one in answer.json()["deliveries"]] == ["now"]


async def test_a_long_poll_without_news_is_204(orchestrator: Wired) -> None:
    worker = await orchestrator.worker()
    assert (await worker.get("prompt", params={"wait_s": 0.05})).status_code == 204


async def test_the_catalogue_has_an_etag_and_answers_304_while_it_stands(orchestrator: Wired) -> None:
    worker = await orchestrator.worker()
    answer = await worker.get("tools/catalog")
    catalog = Catalog.model_validate_json(answer.content)
    etag = answer.headers["etag"]
    assert etag == f'"{catalog.catalog_version}"'
    for known in (etag, f"W/{etag}", f'"other", {etag}', "*"):
        same = await worker.get("tools/catalog", headers={"If-None-Match": known})
        assert (same.status_code, same.content, same.headers["etag"]) == (304, b"", etag)
    orchestrator.running.registry.set_enabled("echo", enabled=False)
    changed = await worker.get("tools/catalog", headers={"If-None-Match": etag})
    assert changed.status_code == 200
    assert changed.headers["etag"] != etag
    assert "echo" not in [one["name"] for one in changed.json()["tools"]]


async def test_the_catalogue_holds_what_hosted_jobs_may_see_and_its_policies(orchestrator: Wired) -> None:
    worker = await orchestrator.worker(grants=["gated"])
    body = (await worker.get("tools/catalog")).json()
    names = {one["name"] for one in body["tools"]}
    assert {"echo", "count", "gated", "network_claim"} <= names
    assert not names & {"switched_off", "broken_file", "for_others"}
    assert body["policies"]["echo"]["read_only"]
    assert body["policies"]["echo"]["sensitive"] == ["/text"]
    assert body["policies"].keys() == names


async def test_the_model_answers_with_and_without_tools(orchestrator: Wired) -> None:
    worker = await orchestrator.worker()
    orchestrator.model.then(calls(("c1", "echo", '{"text":"a"}')), calls())
    tools = (await worker.get("tools/catalog")).json()["tools"]
    asked = {"messages": [{"role": "user", "content": "hi"}], "tools": tools, "tool_choice": "auto"}
    response = await worker.post("llm/complete_with_tools", asked)
    assert response.status_code == 200, response.text
    answer = response.json()
    assert answer["tool_calls"] == [{"id": "c1", "name": "echo", "arguments": '{"text":"a"}'}]
    assert answer["finish_reason"] == "tool_calls"
    assert set(answer["usage"]) == {
        "input_tokens",
        "output_tokens",
        "cache_read_tokens",
        "cache_write_tokens",
    }
    plain = await worker.post("llm/complete", {"messages": [{"role": "user", "content": "hi"}]})
    assert plain.status_code == 200
    assert orchestrator.model.requests[1].tools is None
    assert {one.model for one in orchestrator.model.requests} == {"scripted:model"}


async def test_a_worker_can_t_choose_another_model(orchestrator: Wired) -> None:
    worker = await orchestrator.worker()
    answer = await worker.post("llm/complete", {"messages": [], "model": "scripted:dearer"})
    assert (answer.status_code, problem(answer)["code"]) == (400, "invalid_request")
    assert not orchestrator.model.requests


async def test_an_artifact_is_read_in_parts_by_its_own_job_only(orchestrator: Wired) -> None:
    worker, other = await orchestrator.worker(), await orchestrator.worker()
    cut = (await worker.execute("huge")).json()["output"]
    artifact = cut["truncated"]["artifact"]
    whole = "".join(f"line {number}\n" for number in range(20_000)).encode()
    answer = await worker.get(f"artifacts/{artifact}")
    assert answer.content == whole
    assert answer.headers["x-total-bytes"] == str(len(whole))
    part = await worker.get(f"artifacts/{artifact}", params={"offset": 10, "limit": 20})
    assert part.content == whole[10:30]
    beyond = await worker.get(f"artifacts/{artifact}", params={"offset": 2**30})
    assert (beyond.status_code, beyond.content) == (200, b"")
    hidden = await other.get(f"artifacts/{artifact}")
    assert (hidden.status_code, problem(hidden)["code"]) == (404, "not_found")


async def test_a_call_answers_its_output_and_the_catalogue_s_version(orchestrator: Wired) -> None:
    worker = await orchestrator.worker()
    answer = await worker.execute("echo", {"text": "ä", "times": 2}, key="1:a")
    assert answer.status_code == 200
    body = answer.json()
    assert body["output"]["result"] == "ää"
    assert body["catalog_version"] == (await worker.get("tools/catalog")).json()["catalog_version"]


async def test_a_tool_that_says_it_failed_is_no_http_error(orchestrator: Wired) -> None:
    worker = await orchestrator.worker()
    answer = await worker.execute("says_no", key="1:a")
    assert answer.status_code == 200
    output = answer.json()["output"]
    assert output["is_error"]
    assert output["result"]["code"] == "claim_conflict"


@pytest.mark.parametrize("path", ["/health", "/ready"])
async def test_health_needs_no_token(orchestrator: Wired, path: str) -> None:
    worker = await orchestrator.worker()
    for http in (orchestrator.operator, worker.http):
        answer = await http.get(path, headers={"Authorization": ""})
        assert (answer.status_code, answer.json()) == (200, {"status": "ok"})
