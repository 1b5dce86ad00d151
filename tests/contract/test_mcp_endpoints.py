"""PD-43: who is let in at the MCP endpoints, what is listed there, and what is not taken."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp import Client
from mcp.client.client import ConnectMode
from mcp_types import ToolListChangedNotification

from orchestrator.http.mcp_changes import CallersChanges
from orchestrator.http.mcp_shares import MAX_SESSIONS
from orchestrator.services.executions import CallAnswer
from orchestrator.services.mcp_endpoints import MCP_ENDPOINTS
from tests.fakes.tools import FakeTool
from tests.support.deadline import within
from tests.support.forger import Forger, now
from tests.support.orchestrator import Wired, http_over, problem, wired
from tests.support.outside import Refused, agent, of_worker, token_for
from tool_registry.registry import Entry, Offer, ToolRegistry

HEADERS = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
INITIALIZE: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "raw", "version": "1"},
    },
}
PATHS = [one.path for one in MCP_ENDPOINTS if one.holder == "agent"]


async def no_act(_params: dict[str, Any], _context: object) -> Any:
    return "done"


@pytest.fixture
async def service(home: Path) -> AsyncIterator[Wired]:
    async with wired(home, listen="127.0.0.1:0") as running:
        yield running


async def post(
    service: Wired, path: str, token: str = "", body: Any = INITIALIZE, **headers: str
) -> httpx.Response:
    sent = HEADERS | ({"Authorization": f"Bearer {token}"} if token else {}) | headers
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    async with httpx.AsyncClient() as http:
        return await http.post(service.running.mcp_url + path, content=content, headers=sent)


# --- tokens ----------------------------------------------------------------------------------------------


async def test_a_token_opens_the_doors_of_its_own_kind_only(service: Wired) -> None:
    """DC-4: every kind of token at every kind of door; a wrong audience is refused everywhere."""
    worker = await service.worker()
    async with AsyncExitStack() as stack:
        local = await stack.enter_async_context(http_over(socket=service.settings.api_socket))
        tokens = {
            "worker": worker.token,
            "operator": service.operator.headers["authorization"].removeprefix("Bearer "),
            "agent": await token_for(service, "scout"),
            "representative": await token_for(service, "rita", "representative"),
        }
        doors = {
            "agent": [("POST", path) for path in PATHS],
            "representative": [("POST", "/mcp/control")],
            "worker": [("GET", f"/worker/{worker.job_id}/job"), ("POST", f"/worker/{worker.job_id}/mcp")],
            "operator": [("GET", "/api/v1/jobs"), ("GET", "/api/v1/tokens")],
        }
        for holder, token in tokens.items():
            for kind, routes in doors.items():
                for method, path in routes:
                    headers = HEADERS | {"Authorization": f"Bearer {token}"}
                    content = json.dumps(INITIALIZE).encode() if method == "POST" else None
                    answer = await local.request(method, path, content=content, headers=headers)
                    case = (holder, method, path)
                    if holder == kind:
                        assert answer.status_code == 200, case
                    else:
                        assert (answer.status_code, problem(answer)["code"]) == (401, "token_invalid"), case


async def test_no_forged_or_odd_token_opens_a_door(service: Wired) -> None:
    """BR-115, BR-117: at every MCP endpoint, with one and the same answer; a network can't be chosen."""
    doors = {path: await token_for(service, "scout") for path in PATHS}
    doors["/mcp/control"] = await token_for(service, "rita", "representative")
    bodies: set[bytes] = set()
    for path, token in doors.items():
        forger = await Forger.after(service, token)
        assert (await post(service, path, forger.token())).status_code == 200
        odd: list[dict[str, Any]] = [
            *({"aud": aud} for aud in ("other", 5, "portside-worker", "portside-operator", ["x"])),
            *({"exp": exp} for exp in ("9999999999", 1e30, None, True, [now() + 900])),
            *({"sub": name} for name in ("boss", 5, None)),
            *({"network": name} for name in ("other", None, 5)),
            *({name: None} for name in ("jti", "iss", "iat", "nbf")),
            {"jti": "unknown"},
            {"nbf": now() + 3600},
        ]
        tokens = [*forger.forgeries().values(), *(forger.token(**changes) for changes in odd)]
        for forged in tokens:
            headers = {b"Authorization": b"Bearer " + forged.encode("latin-1")}
            async with httpx.AsyncClient() as http:
                answer = await http.post(service.running.mcp_url + path, json=INITIALIZE, headers=headers)
            assert (answer.status_code, problem(answer)["code"]) == (401, "token_invalid"), forged[:200]
            bodies.add(answer.content)
        late = await post(service, path, forger.token(exp=now() - 60))
        assert problem(late)["code"] == "token_expired"
    assert len(bodies) == 1


async def test_a_void_and_a_missing_token_say_what_to_do(service: Wired) -> None:
    token = await token_for(service, "scout")
    (about,) = (await service.operator.get("/api/v1/tokens")).json()
    assert (await post(service, "/mcp", token)).status_code == 200
    assert (await service.operator.delete(f"/api/v1/tokens/{about['id']}")).json()["revoked_at"]
    void = await post(service, "/mcp", token)
    assert (problem(void)["code"], void.headers["www-authenticate"]) == ("token_revoked", "Bearer")
    assert problem(await post(service, "/mcp"))["code"] == "token_missing"
    unknown = await service.operator.delete("/api/v1/tokens/none")
    assert problem(unknown)["code"] == "not_found"


@pytest.mark.parametrize(
    "asked",
    [
        {"holder": "agent", "name": "a b"},
        {"holder": "agent", "name": "a", "network": "/"},
        {"holder": "agent", "name": "a", "days": 0},
        {"holder": "agent", "name": "a", "days": 367},
        {"holder": "worker", "name": "a"},
    ],
)
async def test_a_token_that_can_t_be_is_refused(service: Wired, asked: dict[str, Any]) -> None:
    answer = await service.operator.post("/api/v1/tokens", json=asked)
    assert (answer.status_code, problem(answer)["code"]) == (400, "invalid_request")
    assert (await service.operator.get("/api/v1/tokens")).json() == []


async def test_a_session_belongs_to_the_agent_and_the_endpoint_that_opened_it(service: Wired) -> None:
    mine, other = await token_for(service, "scout"), await token_for(service, "other")
    session = (await post(service, "/mcp", mine)).headers["mcp-session-id"]
    listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
    assert (await post(service, "/mcp", mine, listing, **{"mcp-session-id": session})).status_code == 200
    for path, token in (("/mcp", other), ("/mcp/communication", mine)):
        answer = await post(service, path, token, listing, **{"mcp-session-id": session})
        assert answer.status_code == 404, path


# --- what is listed --------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_an_agent_is_shown_the_network_s_tools_as_the_registry_has_them(
    service: Wired, mode: ConnectMode
) -> None:
    """HW-2: names, descriptions and schemas unchanged, with the schema of the results beside them."""
    async with agent(service, "scout", mode=mode) as scout:
        assert scout.client.protocol_version == ("2026-07-28" if mode == "auto" else "2025-11-25")
        listed = {tool.name: tool for tool in (await scout.client.list_tools()).tools}
        entries = {
            one.name: one
            for one in service.running.registry.entries()
            if one.traits.source == "network" and one.traits.surface == "worker"
        }
        assert listed.keys() == entries.keys()
        assert len(listed) >= 12
        for name, tool in listed.items():
            assert tool.description == entries[name].definition.description
            assert tool.input_schema == entries[name].definition.parameters
            assert tool.output_schema is not None
        assert "Replies are tool calls" in (scout.client.instructions or "")


@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
async def test_schemas_leave_byte_for_byte_as_their_owner_wrote_them(service: Wired, version: str) -> None:
    """HW-2: key order and nulls too, over both revisions."""
    worker = await service.worker()
    path, token = f"/worker/{worker.job_id}/mcp", worker.token
    headers = HEADERS | {"Authorization": f"Bearer {token}", "MCP-Protocol-Version": version}
    meta: dict[str, Any] = {
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    listing: dict[str, Any] = {"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {"_meta": meta}}
    if version == "2025-11-25":
        opened = await worker.http.post(path, json=INITIALIZE, headers=headers)
        headers["mcp-session-id"] = opened.headers["mcp-session-id"]
        listing.pop("params")
    else:
        headers["Mcp-Method"] = "tools/list"
    answer = await worker.http.post(path, json=listing, headers=headers)
    catalogue = (await worker.get("tools/catalog")).json()["tools"]
    assert len(catalogue) > 12
    text = answer.text if "json" in answer.headers["content-type"] else answer.text.partition("data: ")[2]
    tools = {tool["name"]: tool for tool in json.loads(text.partition("\r\n")[0])["result"]["tools"]}
    assert tools.keys() == {tool["name"] for tool in catalogue}
    for tool in catalogue:
        shown = json.dumps(tools[tool["name"]]["inputSchema"])
        assert shown == json.dumps({**tool["parameters"], "type": "object"})


async def test_each_endpoint_shows_its_own_part_and_refuses_the_rest(service: Wired) -> None:
    """WN-7: a call across is refused by the server, with a record."""
    async with agent(service, "scout", "/mcp/communication") as scout:
        assert {"network_inbox", "network_reply"} <= set(await scout.tools())
        assert "network_claim" not in await scout.tools()
        assert (await scout("network_inbox"))["items"] == []
        with pytest.raises(Refused, match="connect to /mcp") as refused:
            await scout("network_claim", scope="a")
        assert refused.value.code == "tool_not_hosted"
    async with agent(service, "scout", "/mcp/discovery") as scout:
        with pytest.raises(Refused, match="connect to /mcp"):
            await scout("network_inbox")
    await service.operator.get("/api/v1/tool-stats")
    rows = await service.stores.audit.read(job_id="agent:scout@local")
    assert [(one.tool_name, one.verdict) for one in rows] == [
        ("network_inbox", "ok"),
        ("network_claim", "tool_not_hosted"),
        ("network_inbox", "tool_not_hosted"),
    ]


async def test_no_agent_reaches_what_belongs_to_jobs_or_representatives(service: Wired) -> None:
    """WN-7: neither the tools of MCP servers nor those of representatives; every try is on record."""
    async with agent(service, "scout") as scout:
        assert not {"echo", "for_others"} & set(await scout.tools())
        for name in ("echo", "for_others"):
            with pytest.raises(Refused, match="belongs to another kind of caller") as refused:
                await scout(name)
            assert refused.value.code == "tool_not_hosted"
        with pytest.raises(Refused, match="there is no tool named"):
            await scout("nothing")
    await service.operator.get("/api/v1/tool-stats")
    rows = await service.stores.audit.read(job_id="agent:scout@local")
    assert [(one.tool_name, one.verdict) for one in rows] == [
        ("echo", "tool_not_hosted"),
        ("for_others", "tool_not_hosted"),
        ("nothing", "tool_not_found"),
    ]


async def test_arguments_are_held_to_the_schema(service: Wired) -> None:
    """PD-1: the one pipeline runs these calls too."""
    async with agent(service, "scout") as scout:
        with pytest.raises(Refused, match="/ttlSeconds") as refused:
            await scout("network_claim", scope="a", ttlSeconds=0)
        assert refused.value.code == "invalid_params"


# --- a job's own endpoint --------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_job_s_worker_has_its_tools_over_mcp_too(service: Wired, mode: ConnectMode) -> None:
    """HW-5: the same tools, checks and records as over tools/execute."""
    worker = await service.worker(agent="coder")
    async with of_worker(worker, mode) as coder:
        assert coder.client.protocol_version == ("2026-07-28" if mode == "auto" else "2025-11-25")
        catalogue = (await worker.get("tools/catalog")).json()["tools"]
        assert sorted(await coder.tools()) == sorted(tool["name"] for tool in catalogue)
        assert (await coder("network_whoami"))["instance"]["job_id"] == worker.job_id
        said = await coder.client.call_tool("echo", {"text": "a", "times": 3})
        assert said.content[0].model_dump()["text"] == "aaa"
        for name, arguments, code in (
            ("echo", {"text": 5}, "invalid_params"),
            ("for_others", {}, "tool_not_hosted"),
            ("control_whoami", {}, "tool_not_hosted"),
            ("gated", {}, "tool_not_hosted"),
            ("nothing", {}, "tool_not_found"),
            ("breaks", {}, "tool_failed"),
        ):
            with pytest.raises(Refused) as refused:
                await coder(name, **arguments)
            assert refused.value.code == code, name
    calls = (await service.operator.get(f"/api/v1/jobs/{worker.job_id}/calls")).json()
    assert [(one["tool_name"], one["verdict"]) for one in calls] == [
        ("network_whoami", "ok"),
        ("echo", "ok"),
        ("echo", "invalid_params"),
        ("for_others", "tool_not_hosted"),
        ("control_whoami", "tool_not_hosted"),
        ("gated", "tool_not_hosted"),
        ("nothing", "tool_not_found"),
        ("breaks", "tool_failed"),
    ]
    headers = HEADERS | {"Authorization": f"Bearer {worker.token}"}
    for path in (*PATHS, "/mcp/control"):
        elsewhere = await worker.http.post(path, json=INITIALIZE, headers=headers)
        assert problem(elsewhere)["code"] == "forbidden"


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_client_is_told_when_its_tools_change(service: Wired, mode: ConnectMode) -> None:
    """MCP, tools: what declares listChanged sends it."""
    told = asyncio.Event()

    async def on_message(message: object) -> None:
        if isinstance(message, ToolListChangedNotification):
            told.set()

    async def listen(client: Client) -> None:
        async with client.listen(tools_list_changed=True) as changes:
            listening.set()
            async for _ in changes:
                told.set()

    worker, listening = await service.worker(), asyncio.Event()
    registry = service.running.registry
    async with (
        asyncio.timeout(60.0),
        of_worker(worker, mode, on_message) as coder,
        asyncio.TaskGroup() as tasks,
    ):
        tools = coder.client.server_capabilities.tools
        assert tools is not None
        assert tools.list_changed
        if mode == "auto":
            task = tasks.create_task(listen(coder.client))
            await listening.wait()
        else:
            task = tasks.create_task(asyncio.Event().wait())
            await coder.tools()
        number = 0
        while not told.is_set():  # the older client opens its stream some time after it connected
            registry.replace("more", [Offer(FakeTool(f"more_{number}", no_act, owner="more"))])
            with suppress(TimeoutError):
                await within(1.0, told.wait())
            number += 1
        assert f"more_{number - 1}" in await coder.tools()
        task.cancel()


class Watcher:
    """A caller that sees what workers see, and calls nothing."""

    principal = place = "watcher"
    instructions = ""

    def __init__(self, registry: ToolRegistry) -> None:
        self._registry = registry

    def entries(self) -> Sequence[Entry]:
        return [one for one in self._registry.entries() if one.traits.surface != "representative"]

    async def present(self, session: str) -> None:
        raise AssertionError(session)

    async def call(self, session: str, name: str, params: dict[str, Any]) -> CallAnswer:
        raise AssertionError(name)


async def test_a_change_of_what_a_caller_does_not_see_is_none(service: Wired) -> None:
    registry, events = service.running.registry, list[object]()
    unsubscribe = CallersChanges(Watcher(registry), registry.subscribe).subscribe(events.append)
    registry.replace("more", [Offer(FakeTool("more", no_act, owner="more", surface="representative"))])
    assert events == []
    registry.replace("more", [Offer(FakeTool("more", no_act, owner="more"))])
    registry.replace("more", [Offer(FakeTool("more", no_act, owner="more"))])
    assert len(events) == 1
    unsubscribe()
    registry.replace("more", [])
    assert len(events) == 1


async def test_no_caller_takes_the_room_of_others(service: Wired) -> None:
    """PD-75: sessions are bounded for each caller; one that ended makes room."""
    greedy, other = await token_for(service, "greedy"), await token_for(service, "other")
    sessions = [(await post(service, "/mcp", greedy)).headers["mcp-session-id"] for _ in range(MAX_SESSIONS)]
    refused = await post(service, "/mcp", await token_for(service, "greedy"))
    assert (refused.status_code, problem(refused)["code"]) == (429, "rate_limited")
    assert (await post(service, "/mcp", other)).status_code == 200
    ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
    assert (await post(service, "/mcp", greedy, ping, **{"mcp-session-id": sessions[0]})).status_code == 200
    headers = HEADERS | {"Authorization": f"Bearer {greedy}", "mcp-session-id": sessions[0]}
    async with httpx.AsyncClient(headers=headers) as http:
        assert (await http.delete(service.running.mcp_url + "/mcp")).status_code == 200
    assert (await post(service, "/mcp", greedy)).status_code == 200
    assert (await post(service, "/mcp", greedy)).status_code == 429


# --- what is not taken -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://localhost.evil.example"},
        {"Host": "evil.example"},
        {"Host": "127.0.0.1.evil.example:80"},
        {"Host": ""},
    ],
)
async def test_what_a_web_page_of_another_host_sends_is_not_taken(
    service: Wired, headers: dict[str, str]
) -> None:
    answer = await post(service, "/mcp", await token_for(service, "scout"), **headers)
    assert (answer.status_code, problem(answer)["code"]) == (403, "forbidden")
    kept = await post(
        service, "/mcp", await token_for(service, "scout"), Origin="http://localhost:3000", Host="localhost"
    )
    assert kept.status_code == 200


@pytest.mark.parametrize(
    "body", [b"{", b"", b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}', b'{"a":NaN}', b"\xff"]
)
async def test_a_body_whose_json_has_no_single_meaning_is_refused(service: Wired, body: bytes) -> None:
    answer = await post(service, "/mcp", await token_for(service, "scout"), body)
    assert (answer.status_code, problem(answer)["code"]) == (400, "invalid_request")


async def test_bodies_are_bounded_before_anybody_reads_them(service: Wired) -> None:
    token = await token_for(service, "scout")
    answer = await post(service, "/mcp", token, b'"' + b"x" * (16 * 1024 * 1024) + b'"')
    assert (answer.status_code, problem(answer)["code"]) == (413, "payload_too_large")


async def test_the_address_of_the_endpoints_serves_nothing_else(service: Wired) -> None:
    worker = await service.worker()
    async with httpx.AsyncClient(base_url=service.running.mcp_url) as http:
        for path in ("/api/v1/jobs", "/health", f"/worker/{worker.job_id}/mcp", "/"):
            headers = {"Authorization": f"Bearer {worker.token}"}
            assert problem(await http.post(path, headers=headers))["code"] == "not_found", path
        put = await http.put("/mcp", headers={"Authorization": f"Bearer {await token_for(service, 'a')}"})
        assert put.status_code == 405


@pytest.mark.parametrize("address", ["0.0.0.0:0", "192.0.2.1:80", "localhost:80", "127.0.0.1", "nonsense:x"])
async def test_an_address_that_others_could_reach_is_refused(home: Path, address: str) -> None:
    with pytest.raises(OSError, match="can't listen on"):
        async with wired(home, listen=address):
            pass
