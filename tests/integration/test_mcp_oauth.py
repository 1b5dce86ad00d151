"""DC-1, PD-7: logging in at MCP servers, and what the tokens do afterwards, against a real authorisation server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.fakes import mcp_servers as fakes
from tests.fakes.mcp_over_http import HttpServer
from tests.fakes.mcp_servers import Server
from tests.fakes.model import calls
from tests.fakes.oauth_server import Guarded, agree, guarded
from tests.support.deadline import within
from tests.support.orchestrator import Wired, problem, wired

CALLBACK = "http://127.0.0.1:9/callback"
ASK = calls(("1", "g_whoami", "{}"))


@pytest.fixture
async def guard() -> AsyncIterator[Guarded]:
    async with guarded() as found:
        yield found


@pytest.fixture
async def service(home: Path, guard: Guarded) -> AsyncIterator[Wired]:
    """An orchestrator with that server in its file, and one that asks for nothing."""
    write(home, {"g": {"url": guard.url}, "open": fakes.command(fakes.Server)})
    async with wired(home) as running:
        yield running


def write(home: Path, servers: dict[str, Any]) -> None:
    (home / "mcp.json").write_text(json.dumps({"mcpServers": servers}))


async def server(service: Wired, name: str = "g") -> dict[str, Any]:
    return next(one for one in (await service.operator.get("/api/v1/mcp")).json() if one["name"] == name)


async def reaches(service: Wired, state: str, name: str = "g") -> dict[str, Any]:
    async with asyncio.timeout(20):
        while (found := await server(service, name))["state"] != state:  # noqa: ASYNC110 - it has no event
            await asyncio.sleep(0.02)
    return found


async def begun(service: Wired, name: str = "g") -> dict[str, Any]:
    answer = await service.operator.post(f"/api/v1/mcp/{name}/login", json={"callback": CALLBACK})
    assert answer.status_code == 201, answer.text
    return answer.json()


async def finished(service: Wired, login: dict[str, Any], returned: dict[str, str]) -> httpx.Response:
    return await service.operator.post(f"/api/v1/mcp-logins/{login['id']}", json={"returned": returned})


async def log_in(service: Wired) -> None:
    login = await begun(service)
    answer = await finished(service, login, await agree(login["url"]))
    assert answer.status_code == 200, answer.text
    await reaches(service, "ready")


async def whoami(service: Wired) -> tuple[str, bool]:
    """A job's call of the guarded tool."""
    service.model.then(ASK)
    asked = len(service.model.requests)
    job = await service.ended(await service.new_job(mode="in-process"), within_s=30)
    assert job.state == "completed", job.reason
    result = service.model.requests[asked + 1].messages[-1]
    return str(result.content), result.is_error


async def test_before_a_login_the_server_says_how_to_log_in(service: Wired):
    """BR-052: and the others work."""
    found = await reaches(service, "failed")
    assert "portside mcp login" in found["reason"]
    assert (await reaches(service, "ready", "open"))["tool_count"] == 1


async def test_a_login_discovers_registers_and_proves_itself_and_its_tokens_are_sealed(
    service: Wired, guard: Guarded
):
    """PD-7: PKCE and `state` are checked by the other side; no token stands in the database or the log."""
    login = await begun(service)
    query = httpx.URL(login["url"]).params
    assert query["code_challenge_method"] == "S256"
    assert len(query["code_challenge"]) == 43
    assert len(query["state"]) >= 32
    assert query["resource"] == guard.url
    assert query["redirect_uri"] == CALLBACK
    assert (await finished(service, login, await agree(login["url"]))).status_code == 200
    await reaches(service, "ready")
    assert await whoami(service) == ("you are known", False)
    (client,) = guard.authority.clients.values()
    assert client.client_name == "Portside"
    tokens = [*guard.authority.access, *guard.authority.refresh]
    assert tokens
    stored = b"".join(path.read_bytes() for path in service.settings.home.glob("portside.db*"))
    assert not [token for token in tokens if token.encode() in stored]


async def test_a_token_that_is_about_to_end_is_refreshed_before_it_is_used(service: Wired, guard: Guarded):
    """BR-070: and the new refresh token is the one that is used next."""
    guard.authority.lifetime_s = 0
    login = await begun(service)
    assert (await finished(service, login, await agree(login["url"]))).status_code == 422  # refused at once
    guard.authority.lifetime_s = 3600
    await log_in(service)
    guard.authority.lifetime_s = 1
    guard.authority.revoke_access()
    assert await whoami(service) == ("you are known", False)
    first = guard.authority.refreshes
    assert first >= 1
    async with asyncio.timeout(20):
        while guard.authority.refreshes < first + 2:
            assert await whoami(service) == ("you are known", False)
    assert len(set(guard.authority.seen)) == len(guard.authority.seen)


async def test_calls_side_by_side_refresh_a_refused_token_once(service: Wired, guard: Guarded):
    """BR-070: each is sent once more, since 401 proves that it did not run."""
    await log_in(service)
    guard.authority.revoke_access()
    service.model.then(calls(*((str(number), "g_whoami", "{}") for number in range(5))))
    job = await service.ended(await service.new_job(mode="in-process"), within_s=30)
    assert job.state == "completed"
    results = [one for one in service.model.requests[1].messages if one.role == "tool"]
    assert [(str(one.content), one.is_error) for one in results] == [("you are known", False)] * 5
    assert guard.authority.refreshes == 1


async def test_a_login_that_was_withdrawn_ends_in_a_clear_error_and_the_job_goes_on(
    service: Wired, guard: Guarded
):
    """BR-070: it names the command, and shows no token; the other server is unaffected."""
    await log_in(service)
    tokens = [*guard.authority.access, *guard.authority.refresh]
    guard.authority.revoke_access()
    guard.authority.refuses_refresh = True
    said, is_error = await whoami(service)
    assert is_error
    assert "401" in said
    assert "portside mcp login" in said
    found = await reaches(service, "failed")
    assert "portside mcp login" in found["reason"]
    assert not [token for token in tokens if token in said + json.dumps(found)]
    assert (await server(service, "open"))["state"] == "ready"
    guard.authority.refuses_refresh = False
    await log_in(service)
    assert await whoami(service) == ("you are known", False)


async def test_tokens_outlive_a_restart_and_are_refreshed_where_they_were_given(home: Path, guard: Guarded):
    """PD-6: the endpoints are remembered with them."""
    write(home, {"g": {"url": guard.url}})
    async with wired(home) as first:
        await log_in(first)
    guard.authority.revoke_access()
    async with wired(home) as second:
        await reaches(second, "ready")
        assert await whoami(second) == ("you are known", False)
        assert guard.authority.refreshes == 1


async def test_tokens_are_sent_to_the_address_they_are_for_and_to_no_other(service: Wired, guard: Guarded):
    """BR-070: a changed `url` needs a login of its own."""
    await log_in(service)
    async with HttpServer(Server()) as other:
        write(service.settings.home, {"g": {"url": other.url}})
        async with asyncio.timeout(20):
            while not other.requests:  # noqa: ASYNC110 - it has no event
                await asyncio.sleep(0.02)
        await reaches(service, "ready")
        assert not [one for one in other.requests if "authorization" in one.headers]
        write(service.settings.home, {})


async def test_a_person_who_refuses_is_told_and_nothing_is_kept(service: Wired, guard: Guarded):
    guard.authority.refuses = True
    login = await begun(service)
    refused = problem(await finished(service, login, await agree(login["url"])))
    assert refused["code"] == "mcp_login_failed"
    assert "access_denied" in refused["detail"]
    assert guard.authority.access == {}
    again = problem(await finished(service, login, {"code": "x", "state": "y"}))
    assert (again["status"], again["code"]) == (404, "mcp_login_not_found")


async def test_a_redirect_with_anothers_state_is_refused(service: Wired, guard: Guarded):
    login = await begun(service)
    returned = await agree(login["url"])
    refused = problem(await finished(service, login, {**returned, "state": "forged"}))
    assert "State" in refused["detail"]
    assert guard.authority.access == {}


async def test_logging_out_forgets_the_tokens(service: Wired, guard: Guarded):
    await log_in(service)
    assert (await service.operator.delete("/api/v1/mcp/g/login")).status_code == 200
    await reaches(service, "failed")
    assert problem(await service.operator.delete("/api/v1/mcp/g/login"))["status"] == 404


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("open", "is a command"),
        ("plain", "asks for no login"),
        ("gone", "can't be reached"),
        ("no", "no MCP server"),
    ],
)
async def test_what_has_no_login_says_so(service: Wired, name: str, said: str):
    async with HttpServer(Server()) as plain:
        entries: dict[str, Any] = {
            "open": fakes.command(fakes.Server),
            "plain": {"url": plain.url},
            "gone": {"url": "http://127.0.0.1:9/mcp"},
        }
        write(service.settings.home, entries)
        answer = await service.operator.post(f"/api/v1/mcp/{name}/login", json={"callback": CALLBACK})
        assert said in problem(answer)["detail"]
        write(service.settings.home, {})


async def test_a_client_that_was_registered_by_hand_is_used_as_it_is(home: Path):
    """For authorisation servers that register nobody."""
    async with guarded(registers=False) as guard:
        known = {
            "client_id": "by-hand",
            "client_secret": "s-3cret-of-client",
            "redirect_uris": [CALLBACK],
            "token_endpoint_auth_method": "client_secret_post",
        }
        guard.authority.clients["by-hand"] = type_of_client(known)
        entry = {
            "url": guard.url,
            "oauth": {"client_id": "by-hand", "client_secret": "${secret:CLIENT}", "callback_port": 9},
        }
        write(home, {"g": entry})
        async with wired(home) as service:
            await service.stores.secrets.set("CLIENT", "s-3cret-of-client")
            assert (await service.operator.get("/api/v1/mcp/g/login")).json() == {"port": 9}
            await log_in(service)
            assert await whoami(service) == ("you are known", False)
            assert list(guard.authority.clients) == ["by-hand"]
            guard.authority.revoke_access()
            assert await whoami(service) == ("you are known", False)


def type_of_client(known: dict[str, Any]) -> Any:
    from mcp.shared.auth import OAuthClientInformationFull

    return OAuthClientInformationFull.model_validate(known)


async def test_the_command_line_logs_in_through_a_browser(home: Path, guard: Guarded):
    """As its user sees it: an address to open, then a page that says that it is done."""
    write(home, {"g": {"url": guard.url}})
    from tests.support.command_line import CommandLine

    line = CommandLine(home, {})
    command = await asyncio.to_thread(line.start, "mcp", "login", "g", "--no-browser", "--json")
    assert command.stderr is not None
    assert command.stdout is not None
    try:
        said = await within(60, asyncio.to_thread(command.stderr.readline))
        assert said.startswith("agree here: http://127.0.0.1:")
        async with httpx.AsyncClient(follow_redirects=True, timeout=60.0) as browser:
            page = await browser.get(said.removeprefix("agree here: ").strip())
        assert "close this page" in page.text
        assert await within(60, asyncio.to_thread(command.wait)) == 0
        assert json.loads(command.stdout.read()) == {"name": "g"}
    finally:
        command.kill()
        command.wait()
        command.stdout.close()
        command.stderr.close()
    async with wired(home) as service:
        await reaches(service, "ready")
        assert await whoami(service) == ("you are known", False)
