"""PD-60: agents over the operator API, from `agents.yaml` as it changes, and in the jobs that run as them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.orchestrator import Wired, problem, wired
from tests.support.waiting import until

AGENTS = "/api/v1/networks/local/agents"
PROFILE: dict[str, Any] = {
    "name": "Reviewer",
    "summary": "Reviews",
    "capabilities": ["Code Review"],
    "skills": [{"name": "python", "description": "all of it"}],
    "groups": ["reviewers"],
    "responsibilities": [{"resource_key": "https://example.com/a/b.git", "actions": ["review"]}],
    "launch": {
        "image": "box:1",
        "model": "scripted:model",
        "mission": "Be kind.",
        "autostart": True,
        "allow_hosts": ["*.example.org"],
    },
}


async def test_the_default_network_and_agent_are_there_from_the_start(orchestrator: Wired) -> None:
    assert (await orchestrator.operator.get("/api/v1/networks")).json() == ["local"]
    (coder,) = (await orchestrator.operator.get(AGENTS)).json()
    assert (coder["name"], coder["managed_by"], coder["instances"]) == ("coder", "nobody", [])


async def test_an_agent_is_defined_changed_shown_and_removed(orchestrator: Wired) -> None:
    http = orchestrator.operator
    added = await http.post(AGENTS, json=PROFILE)
    assert added.status_code == 201, added.text
    agent = added.json()
    assert (agent["name"], agent["managed_by"]) == ("reviewer", "operator")
    assert agent["capabilities"] == [{"name": "Code Review", "id": "code-review", "description": ""}]
    assert agent["responsibilities"] == [{"resource_key": "example.com/a/b", "actions": ["review"]}]
    again = await http.post(AGENTS, json=PROFILE)
    assert (again.status_code, problem(again)["code"]) == (409, "name_taken")

    changed = await http.patch(f"{AGENTS}/reviewer", json={"tags": ["x"], "launch": {"model": "openai:m"}})
    assert changed.status_code == 200, changed.text
    shown = (await http.get(f"{AGENTS}/reviewer")).json()
    assert shown == agent | {"tags": ["x"], "launch": agent["launch"] | {"model": "openai:m"}}

    assert (await http.delete(f"{AGENTS}/reviewer")).status_code == 204
    gone = await http.get(f"{AGENTS}/reviewer")
    assert (gone.status_code, problem(gone)["code"]) == (404, "not_found")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"sumary": "x"}, "sumary"),
        ({"launch": {"modell": "x"}}, "launch.modell"),
        ({"launch": {"allow_hosts": ["a.org", "a.org/x"]}}, "'a.org/x' is not a host"),
        ({"groups": ["a b"]}, "can't be a name"),
        ({"tags": "python"}, "tags"),
        ({"kind": "human"}, "a human is not started by Portside"),
    ],
)
async def test_a_profile_that_can_t_be_is_refused_with_its_place_and_nothing_changes(
    orchestrator: Wired, change: dict[str, Any], said: str
) -> None:
    http = orchestrator.operator
    refused = await http.post(AGENTS, json=PROFILE | change)
    assert (refused.status_code, problem(refused)["code"]) == (400, "invalid_request")
    before = (await http.post(AGENTS, json=PROFILE)).json()
    for_change = await http.patch(f"{AGENTS}/reviewer", json=change)
    assert for_change.status_code == 400
    assert said in problem(for_change)["detail"]
    assert (await http.get(f"{AGENTS}/reviewer")).json() == before


async def test_a_job_runs_as_its_agent_wishes_where_the_job_itself_says_nothing(orchestrator: Wired) -> None:
    await orchestrator.operator.post(AGENTS, json=PROFILE)
    plain = await orchestrator.job(await orchestrator.new_job(agent="reviewer", model=""))
    assert (plain.spec.image, plain.spec.model) == ("box:1", "scripted:model")
    assert plain.spec.system_prompt == "Be kind."
    own = {"agent": "reviewer", "model": "scripted:own", "image": "own:1", "system_prompt": "Be quick."}
    spoken = await orchestrator.job(await orchestrator.new_job(**own, default_model="openai:never"))
    assert (spoken.spec.image, spoken.spec.model) == ("own:1", "scripted:own")
    assert spoken.spec.system_prompt == "Be kind.\n\nBe quick."
    worker = await orchestrator.worker(plain.id)
    described = (await worker.get("job")).json()
    assert (described["agent"]["name"], described["system_prompt"]) == ("reviewer", "Be kind.")
    unnamed = await orchestrator.job(
        await orchestrator.new_job(agent="x", model="", default_model="scripted:d")
    )
    assert unnamed.spec.model == "scripted:d"


async def test_no_job_runs_as_a_human(orchestrator: Wired) -> None:
    await orchestrator.operator.post(AGENTS, json={"name": "ann", "kind": "human"})
    refused = await orchestrator.operator.post("/api/v1/jobs", json={"task": "t", "agent": "ann"})
    assert (refused.status_code, problem(refused)["code"]) == (409, "not_served_by_jobs")


async def test_removing_an_agent_by_force_cancels_its_jobs(orchestrator: Wired) -> None:
    http = orchestrator.operator
    await http.post(AGENTS, json={"name": "a"})
    worker = await orchestrator.worker(agent="a")
    assert (await http.delete(f"{AGENTS}/a")).status_code == 409
    assert (await http.delete(f"{AGENTS}/a?force=true")).status_code == 204
    job = await orchestrator.ended(worker.job_id)
    assert (job.state.value, job.reason) == ("cancelled", "agent 'a' was removed")


async def test_a_job_whose_agent_was_removed_before_it_started_fails_and_brings_no_agent_back(
    orchestrator: Wired,
) -> None:
    """The first job of an unknown agent makes it when it is accepted, and no job makes one later."""
    http = orchestrator.operator
    job_id = await orchestrator.launched(agent="Newcomer", network="other")
    others = "/api/v1/networks/other/agents"
    assert [one["name"] for one in (await http.get(others)).json()] == ["newcomer"]
    assert (await http.delete(f"{others}/newcomer")).status_code == 204
    worker = await orchestrator.worker(job_id, register=False)
    refused = await worker.get("job")
    assert problem(refused)["code"] == "job_not_active"
    job = await orchestrator.ended(job_id)
    assert job.state.value == "failed"
    assert job.reason.startswith("agent 'Newcomer' was removed from network 'other' while the job waited")
    assert (await http.get(others)).json() == []


async def test_the_file_is_followed_while_the_service_runs_and_a_broken_one_keeps_the_old(
    home: Path,
) -> None:
    file = home / "agents.yaml"
    file.write_text("networks: {local: {agents: {a: {summary: one}}}}")
    async with wired(home) as running:

        async def summary() -> str:
            found = {one["name"]: one for one in (await running.operator.get(AGENTS)).json()}
            return found["a"]["summary"] if "a" in found else "gone"

        async def problem_of_file() -> str:
            return (await running.operator.get("/api/v1/agents-file")).json()["problem"]

        assert await summary() == "one"
        refused = await running.operator.patch(f"{AGENTS}/a", json={"summary": "mine"})
        assert problem(refused)["code"] == "managed_elsewhere"
        file.write_text("networks: {local: {agents: {a: {summary: two}}}}")
        await eventually_is(summary, "two")
        file.write_text("networks: {local: {agents: {a: {sumary: three}}}}")
        await eventually_is(problem_of_file, f"{file} line 1: networks.local.agents.a.sumary: unknown key")
        assert await summary() == "two"
        file.unlink()
        await eventually_is(summary, "gone")
        assert await problem_of_file() == ""


async def eventually_is(ask: Callable[[], Awaitable[str]], wanted: str) -> None:
    async def holds() -> bool:
        found = await ask()
        return found.startswith(wanted) if wanted else not found

    await until(holds)
