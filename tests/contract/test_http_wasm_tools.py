"""WASM tools through the operator API and a worker's hands: consent, and grants that lead somewhere (BR-095)."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import shutil
import tarfile
from pathlib import Path
from typing import Any

from tests.integration.test_wasm_grants import ASK_SECRET, INVOKE, READ
from tests.support.deadline import eventually
from tests.support.orchestrator import Wired, problem, wired
from tests.support.wasm.guests import Source, build

WASM = "/api/v1/tools/wasm"
AGREE = "/api/v1/tools/guest/agree"


def _encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def upload(tmp_path: Path, source: Source, grants: dict[str, Any] | None, **more: Any) -> dict[str, Any]:
    wasm = build(source, tmp_path / "guest.wasm").read_bytes()
    sidecar = None if grants is None else _encoded(json.dumps({"version": 1, **grants}).encode())
    return {"wasm": _encoded(wasm), "sidecar": sidecar, **more}


async def test_a_tool_that_asks_for_something_is_added_with_consent_only(
    orchestrator: Wired, tmp_path: Path
) -> None:
    body = upload(tmp_path, ASK_SECRET, {"secrets": {"exists": ["github"]}})
    asked = ["know whether the secret github exists"]
    answer = await orchestrator.operator.post(f"{WASM}/asks", json={"sidecar": body["sidecar"]})
    assert answer.json() == asked
    refused = problem(await orchestrator.operator.put(f"{WASM}/guest", json=body))
    assert (refused["status"], refused["code"]) == (409, "consent_missing")
    assert asked[0] in refused["detail"]
    assert not list((orchestrator.settings.home / "tools").rglob("*.wasm"))
    added = await orchestrator.operator.put(f"{WASM}/guest", json={**body, "agreed": True})
    assert added.status_code == 201
    shown = (await orchestrator.operator.get("/api/v1/tools/guest")).json()
    assert added.json()["grants"] == shown["grants"] == asked
    worker = await orchestrator.worker()
    assert (await worker.execute("guest", {"text": "github"})).json()["output"]["result"] == "0"
    await orchestrator.stores.secrets.set("github", "value-of-the-secret")
    assert (await worker.execute("guest", {"text": "github"})).json()["output"]["result"] == "1"


def put_in_the_folder(running: Wired, tmp_path: Path, source: Source, grants: dict[str, Any]) -> None:
    """As a person does with cp: the sidecar is there before its component, and whole."""
    tools = running.settings.tools_dir
    tools.mkdir(exist_ok=True)
    (tools / "guest.capabilities.json").write_text(json.dumps({"version": 1, **grants}))
    shutil.copy(build(source, tmp_path / "guest.wasm"), tools)


async def seen(running: Wired, name: str = "guest") -> dict[str, Any]:
    return (await running.operator.get(f"/api/v1/tools/{name}")).json()


def parameters(running: Wired) -> str:
    entry = running.running.registry.get("guest")
    return entry.definition.parameters_json if entry else ""


async def test_a_changed_file_that_asks_for_more_leaves_the_tool_as_it_was_until_agreed_to(
    orchestrator: Wired, tmp_path: Path
) -> None:
    """PD-42: the running tool keeps what it was granted; the difference is what is agreed to."""
    one, two = "know whether the secret one exists", "know whether the secret two exists"
    body = upload(tmp_path, ASK_SECRET, {"secrets": {"exists": ["one"]}}, agreed=True)
    assert (await orchestrator.operator.put(f"{WASM}/guest", json=body)).status_code == 201
    for name in ("one", "two"):
        await orchestrator.stores.secrets.set(name, f"value-of-{name}")
    put_in_the_folder(orchestrator, tmp_path, ASK_SECRET, {"secrets": {"exists": ["one", "two"]}})
    await eventually_problem(orchestrator)
    tool = await seen(orchestrator)
    assert (tool["state"], tool["hosted"], tool["grants"], tool["wants"]) == ("active", True, [one], [two])
    assert "portside tools approve guest" in tool["problem"]
    worker = await orchestrator.worker()

    async def knows(name: str) -> str:
        return (await worker.execute("guest", {"text": name})).json()["output"]["result"]

    assert [await knows("one"), await knows("two")] == ["1", "0"]
    for lines in ([], [one], [one, two]):
        refused = problem(await orchestrator.operator.post(f"{AGREE}", json={"asks": lines}))
        assert (refused["status"], refused["code"]) == (409, "consent_missing")
        assert two in refused["detail"]
    agreed = (await orchestrator.operator.post(f"{AGREE}", json={"asks": [two]})).json()
    assert (agreed["grants"], agreed["wants"], agreed["problem"]) == ([one, two], [], "")
    assert [await knows("one"), await knows("two")] == ["1", "1"]


async def test_a_file_that_nobody_agreed_to_is_hidden_and_nothing_of_it_runs(
    orchestrator: Wired, tmp_path: Path
) -> None:
    """PD-42: whoever put it into the folder; its component is not even asked for its schema."""
    traps = Source(before_schema="unreachable", imports=ASK_SECRET.imports, execute=ASK_SECRET.execute)
    put_in_the_folder(orchestrator, tmp_path, traps, {"secrets": {"exists": ["one"]}})
    await eventually(lambda: orchestrator.running.registry.get("guest"))
    tool = await seen(orchestrator)
    assert (tool["state"], tool["hidden_reason"], tool["grants"]) == ("needs_consent", "needs_consent", [])
    assert tool["wants"] == ["know whether the secret one exists"]
    worker = await orchestrator.worker()
    refused = problem(await worker.execute("guest", {"text": "one"}))
    assert (refused["code"], refused["reason"]) == ("tool_not_hosted", "needs_consent")
    agreed = (await orchestrator.operator.post(f"{AGREE}", json={"asks": tool["wants"]})).json()
    assert agreed["state"] == "failed_to_load", "only now it was run"
    assert "schema() failed" in agreed["reason"]


async def test_another_component_under_an_agreed_file_is_taken_at_once_with_what_was_agreed_to_and_no_more(
    orchestrator: Wired, tmp_path: Path
) -> None:
    """PD-42: an author's rebuild asks nobody; the agreement is about what may be reached, not about code."""
    knows_one = {"secrets": {"exists": ["one"]}}
    body = upload(tmp_path, ASK_SECRET, knows_one, agreed=True)
    assert (await orchestrator.operator.put(f"{WASM}/guest", json=body)).status_code == 201
    for name in ("one", "two"):
        await orchestrator.stores.secrets.set(name, f"value-of-{name}")
    schema = '{"type":"object","properties":{"text":{"type":"string"},"more":{"type":"string"}}}'
    rebuilt = Source(imports=ASK_SECRET.imports, execute=ASK_SECRET.execute, schema=schema)
    shutil.copy(build(rebuilt, tmp_path / "guest.wasm"), orchestrator.settings.tools_dir)
    await eventually(lambda: "more" in parameters(orchestrator))
    tool = await seen(orchestrator)
    granted = ["know whether the secret one exists"]
    assert (tool["state"], tool["grants"], tool["wants"], tool["problem"]) == ("active", granted, [], "")
    worker = await orchestrator.worker()
    answers = [await worker.execute("guest", {"text": name}) for name in ("one", "two")]
    assert [answer.json()["output"]["result"] for answer in answers] == ["1", "0"]


async def test_an_agreement_outlives_the_orchestrator_and_ends_with_the_tool(
    home: Path, tmp_path: Path
) -> None:
    """PD-42: a change that came while nothing ran is not followed either."""
    async with wired(home) as first:
        body = upload(tmp_path, ASK_SECRET, {"secrets": {"exists": ["one"]}}, agreed=True)
        assert (await first.operator.put(f"{WASM}/guest", json=body)).status_code == 201
    async with wired(home) as second:
        assert (await seen(second))["state"] == "active"
    put_in_the_folder(second, tmp_path, ASK_SECRET, {"secrets": {"exists": ["two"]}})
    async with wired(home) as third:
        assert (await seen(third))["state"] == "needs_consent"
        assert (await third.operator.delete("/api/v1/tools/guest")).status_code == 204
        put_in_the_folder(third, tmp_path, ASK_SECRET, {"secrets": {"exists": ["one"]}})
        await eventually(lambda: third.running.registry.get("guest"))
        assert (await seen(third))["state"] == "needs_consent"


async def eventually_problem(running: Wired) -> None:
    async with asyncio.timeout(20):
        while not (await seen(running))["problem"]:  # noqa: ASYNC110 - the file is read by a watcher
            await asyncio.sleep(0.01)


async def test_a_tool_that_asks_for_nothing_needs_no_consent(orchestrator: Wired, tmp_path: Path) -> None:
    for grants in (None, {}, {"limits": {"timeout_s": 2}}):
        added = await orchestrator.operator.put(f"{WASM}/guest", json=upload(tmp_path, Source(), grants))
        assert added.status_code == 201
        assert added.json()["grants"] == []
    broken = {"sidecar": _encoded(b"{")}
    assert (await orchestrator.operator.post(f"{WASM}/asks", json=broken)).json() == []


async def test_a_tool_reads_the_workspace_that_its_job_began_with(
    orchestrator: Wired, tmp_path: Path
) -> None:
    """BR-094: regular files under what is granted; a link is followed nowhere."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, data in (
            ("./data/a.txt", b"old"),
            ("data/a.txt", b"new \xc3\xa9"),
            ("data/" + "long/" * 40 + "b", b"deep"),
        ):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
        for name, target in (("data/link", "/etc/hostname"), ("data/inner", "a.txt")):
            link = tarfile.TarInfo(name)
            link.type, link.linkname = tarfile.SYMTYPE, target
            tar.addfile(link)
        empty = tarfile.TarInfo("data/empty")
        tar.addfile(empty)
    stored = (await orchestrator.operator.put("/api/v1/workspaces", content=packed.getvalue())).json()
    body = upload(tmp_path, READ, {"workspace": {"read": ["data"]}}, agreed=True)
    assert (await orchestrator.operator.put(f"{WASM}/guest", json=body)).status_code == 201
    worker = await orchestrator.worker(workspace_sha256=stored["sha256"])
    paths = (
        "data/a.txt",
        "data/" + "long/" * 40 + "b",
        "data/empty",
        "data/link",
        "data/inner",
        "data",
        "data/absent",
    )
    answers = [(await worker.execute("guest", {"text": path})).json()["output"]["result"] for path in paths]
    assert answers == ["new \u00e9", "deep", "", "0", "0", "0", "0"]
    without = await orchestrator.worker()
    assert (await without.execute("guest", {"text": "data/a.txt"})).json()["output"]["result"] == "0"


async def test_a_tool_calls_another_as_its_job_could_and_no_further(
    orchestrator: Wired, tmp_path: Path
) -> None:
    """The other tool's schema, visibility and approval hold as for a call of the job's own."""
    body = upload(tmp_path, Source(), {"approval": "always"}, agreed=True)
    assert (await orchestrator.operator.put(f"{WASM}/inner", json=body)).status_code == 201
    body = upload(tmp_path, INVOKE, {"tools": {"other": "inner"}}, agreed=True)
    assert (await orchestrator.operator.put(f"{WASM}/guest", json=body)).status_code == 201
    plain, granted = await orchestrator.worker(), await orchestrator.worker(grants=["inner"])
    refused = (await plain.execute("guest", {"text": "x"})).json()["output"]
    assert refused["result"].startswith("tool_not_hosted: ")
    assert (await granted.execute("guest", {"text": "x"})).json()["output"]["result"] == '{"text":"x"}'
    wrong = (await granted.execute("guest", {"text": "x", "more": 1})).json()
    assert wrong["output"]["result"] == '{"text":"x","more":1}'
    calls = (await orchestrator.operator.get(f"/api/v1/jobs/{granted.job_id}/calls")).json()
    assert "inner" in json.dumps(calls)
