"""PD-7: secrets over the operator API: values come in, names go out."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.ports.models import ModelAnswer
from tests.support.orchestrator import Wired, problem, wired

SECRETS = "/api/v1/secrets"
VALUE = "zq-marker-Value/9+8=="


async def test_a_secret_is_set_listed_and_removed_and_its_value_is_never_answered(
    orchestrator: Wired,
) -> None:
    first = await orchestrator.operator.put(f"{SECRETS}/GITHUB", json={"value": VALUE})
    assert (first.status_code, first.json()["version"]) == (200, 1)
    again = await orchestrator.operator.put(f"{SECRETS}/GITHUB", json={"value": VALUE + "2"})
    assert again.json()["version"] == 2
    listed = await orchestrator.operator.get(SECRETS)
    assert [one["name"] for one in listed.json()] == ["GITHUB"]
    assert "marker" not in first.text + again.text + listed.text
    assert await orchestrator.stores.secrets.get("GITHUB") == VALUE + "2"
    assert (await orchestrator.operator.delete(f"{SECRETS}/GITHUB")).status_code == 204
    assert (await orchestrator.operator.get(SECRETS)).json() == []
    gone = await orchestrator.operator.delete(f"{SECRETS}/GITHUB")
    assert (gone.status_code, problem(gone)["code"]) == (404, "not_found")


@pytest.mark.parametrize("name", [".hidden", "-x", "a b", "a" * 129, "é", "a=b"])
async def test_a_name_that_no_placeholder_could_hold_is_refused_without_its_value(
    orchestrator: Wired, name: str
) -> None:
    answer = await orchestrator.operator.put(f"{SECRETS}/{name}", json={"value": VALUE})
    assert (answer.status_code, problem(answer)["code"]) == (400, "invalid_request")
    assert "marker" not in answer.text
    assert await orchestrator.stores.secrets.names() == []


@pytest.mark.parametrize(
    "body", [{"value": ""}, {"value": "a\0b"}, {"value": "x" * 65_537}, {"value": 7}, {}]
)
async def test_a_value_that_can_t_be_is_refused(orchestrator: Wired, body: dict[str, Any]) -> None:
    answer = await orchestrator.operator.put(f"{SECRETS}/A", json=body)
    assert (answer.status_code, problem(answer)["code"]) == (400, "invalid_request")


async def test_nobody_but_an_operator_reaches_the_secrets(orchestrator: Wired) -> None:
    worker = await orchestrator.worker()
    for method, path in (("GET", SECRETS), ("PUT", f"{SECRETS}/A"), ("DELETE", f"{SECRETS}/A")):
        answer = await worker.http.request(method, path, json={"value": VALUE})
        assert answer.status_code == 401, path


@pytest.mark.parametrize(
    ("grants", "said"),
    [
        ({"MISSING": "A"}, "there is no secret 'MISSING'"),
        ({"ONE": "A", "TWO": "A"}, "two secrets are granted as A"),
        ({"ONE": "NO-NAME"}, "can't be an environment variable"),
    ],
    ids=str,
)
async def test_grants_that_can_t_be_handed_out_are_refused_before_the_job_is_stored(
    orchestrator: Wired, grants: dict[str, str], said: str
) -> None:
    for name in ("ONE", "TWO"):
        await orchestrator.stores.secrets.set(name, VALUE)
    answer = await orchestrator.operator.post("/api/v1/jobs", json={"task": "t", "secrets": grants})
    assert (answer.status_code, problem(answer)["code"]) == (400, "invalid_request")
    assert said in problem(answer)["detail"]
    assert (await orchestrator.operator.get("/api/v1/jobs")).json() == []


async def test_an_in_process_job_has_no_commands_to_give_secrets_to(orchestrator: Wired) -> None:
    await orchestrator.stores.secrets.set("ONE", VALUE)
    asked = {"task": "t", "mode": "in-process", "secrets": {"ONE": "A"}}
    answer = await orchestrator.operator.post("/api/v1/jobs", json=asked)
    assert "runs no commands" in problem(answer)["detail"]


async def test_a_secret_set_while_a_job_runs_is_taken_out_of_its_outputs_and_timeline(
    orchestrator: Wired,
) -> None:
    """BR-121: also after it was replaced and removed: a job may still hold the old value."""
    worker = await orchestrator.worker()
    for value in (VALUE, "another-Value-5"):
        await orchestrator.operator.put(f"{SECRETS}/GITHUB", json={"value": value})
    await orchestrator.operator.delete(f"{SECRETS}/GITHUB")
    text = f"{VALUE} and another-Value-5"
    answer = await worker.execute("echo", {"text": text})
    shown = "[redacted:GITHUB] and [redacted:GITHUB]"
    assert shown in answer.text
    assert "marker" not in answer.text
    event = {"type": "log", "seq": 1, "at": "2026-01-01T00:00:00Z", "data": {"level": "info", "text": text}}
    assert (await worker.post("events", {"events": [event]})).status_code == 204
    assert shown in str(await orchestrator.events(worker.job_id))


async def test_secrets_of_an_earlier_run_are_known_from_the_start(home: Any) -> None:
    """BR-121."""
    async with wired(home) as first:
        await first.operator.put(f"{SECRETS}/GITHUB", json={"value": VALUE})
    async with wired(home) as second:
        worker = await second.worker()
        answer = await worker.execute("echo", {"text": f"it is {VALUE}"})
        assert "it is [redacted:GITHUB]" in answer.text
        await worker.finish()


async def test_a_granted_secret_s_name_is_shown_and_its_value_reaches_no_model(orchestrator: Wired) -> None:
    await orchestrator.stores.secrets.set("GITHUB", VALUE)
    worker = await orchestrator.worker(secrets={"GITHUB": "GH_TOKEN"})
    assert (await worker.get("credentials")).json() == [{"env_var": "GH_TOKEN", "value": VALUE}]
    shown = await orchestrator.operator.get(f"/api/v1/jobs/{worker.job_id}")
    assert shown.json()["secrets"] == {"GITHUB": "GH_TOKEN"}
    description = await worker.get("job")
    assert "marker" not in shown.text + description.text
    orchestrator.model.then(ModelAnswer("hello", "stop"))
    # Handed out is known: whatever a tool answers with it is clean before any model is asked.
    assert VALUE not in (await worker.execute("echo", {"text": VALUE})).text
