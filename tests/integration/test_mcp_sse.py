"""Servers of the older HTTP transport that misbehave (DC-1)."""

from __future__ import annotations

import anyio
import pytest

from tests.fakes import mcp_servers as fakes
from tests.fakes.mcp_over_http import HttpServer, Reply, Request
from tests.fakes.mcp_servers import Server
from tests.fakes.sse_server import SseServer
from tests.support.mcp import running, until
from tool_registry.errors import Outcome, ToolFailed, ToolTimeout
from tool_registry.mcp.status import ServerState


def _is_call(request: Request) -> bool:
    return bool(request.body) and request.body.get("method") == "tools/call"


def _entry(server: SseServer, **more: object) -> dict[str, object]:
    return {"url": server.url, "type": "sse", **more}


async def test_a_stream_that_is_cut_in_a_call_fails_it_at_once_and_not_twice():
    """BR-050, BR-070: the call may have had effects; the next one has a new session."""
    async with SseServer(Server()) as server, running({"s": _entry(server)}) as found:
        failures: list[ToolFailed] = []
        server.intercept = lambda request: Reply(202) if _is_call(request) else None

        async def unanswered() -> None:
            try:
                await found.call("echo")
            except ToolFailed as error:
                failures.append(error)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(unanswered)
            await until(lambda: "tools/call" in server.methods())
            server.cut()
            await until(lambda: failures, within_s=3)
        server.intercept = lambda _request: None
        assert "went away" in failures[0].message
        assert failures[0].outcome is Outcome.UNKNOWN
        assert (await found.call("echo", {"text": "next"})).result == "next"
        assert server.methods().count("initialize") == 2


async def test_a_session_that_is_not_known_any_more_is_opened_anew_and_the_call_sent_once_more():
    """BR-069: 404 proves that the call did not run."""
    async with SseServer(Server()) as server, running({"s": _entry(server)}) as found:
        refused: list[Request] = []

        def once(request: Request) -> Reply | None:
            if not _is_call(request) or refused:
                return None
            refused.append(request)
            return Reply(404)

        server.intercept = once
        assert (await found.call("echo", {"text": "again"})).result == "again"
        assert server.methods().count("tools/call") == 2


@pytest.mark.parametrize(
    ("reply", "said"), [(Reply(500), "HTTP 500"), (Reply(drop=True), "the connection broke")]
)
async def test_a_post_that_fails_is_the_answer_to_its_own_call(reply: Reply, said: str):
    """BR-062: at once, not after the timeout; the session goes on."""
    async with SseServer(Server()) as server, running({"s": _entry(server)}) as found:
        server.intercept = lambda request: reply if _is_call(request) else None
        with anyio.fail_after(5), pytest.raises(ToolFailed, match=said):
            await found.call("echo")
        server.intercept = lambda _request: None
        assert (await found.call("echo", {"text": "next"})).result == "next"
        assert server.methods().count("initialize") == 1


async def test_a_call_that_times_out_is_cancelled_at_the_server():
    """BR-068: with a notice of its own, and the late answer is ignored."""
    async with SseServer(fakes.Slow()) as server, running({"s": _entry(server, timeout_s=0.5)}) as found:
        with anyio.fail_after(5), pytest.raises(ToolTimeout):
            await found.call("slow")
        await until(lambda: "notifications/cancelled" in server.methods())
        assert (await found.call("echo", {"text": "ok"})).result == "ok"


async def test_messages_are_not_sent_to_another_origin():
    """BR-070: they would carry the credentials there."""
    async with HttpServer(Server()) as other, SseServer(Server()) as server:
        server.endpoint = f"http://127.0.0.1:{other.port}/messages"
        entry = _entry(server, headers={"Authorization": "Bearer t"})
        async with running({"s": entry}, wait=False) as found:
            await found.settled(state=ServerState.FAILED)
            assert "another origin" in found.status().reason
        assert other.requests == []


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (Reply(401), "401"),
        (Reply(404), "check the path of `url`"),
        (Reply(200, {"content-type": "text/html"}), "text/html, not a stream of events"),
        (Reply(307, {"location": "http://127.0.0.1:9/"}), "HTTP 307"),
        (Reply(drop=True), "can't be reached"),
    ],
)
async def test_a_stream_that_is_none_is_a_failed_start_with_the_reason(reply: Reply, said: str):
    async with SseServer(Server()) as server:
        server.intercept = lambda _request: reply
        async with running({"s": _entry(server)}, wait=False) as found:
            await found.settled(state=ServerState.FAILED)
            assert said in found.status().reason


async def test_a_stream_that_never_says_where_messages_go_fails_at_its_start_timeout():
    """BR-052: with the setting that would give it longer."""
    async with SseServer(Server()) as server:
        server.endpoint = ""
        async with running({"s": _entry(server, start_timeout_s=0.5)}, wait=False) as found:
            await found.settled(state=ServerState.FAILED)
            assert "start_timeout_s" in found.status().reason


async def test_a_result_of_20_mb_arrives_whole():
    """BR-065: events are not bounded at one megabyte, as the SDK's own client has it."""
    async with SseServer(fakes.Large()) as server, running({"s": _entry(server)}) as found:
        dump = await found.call("dump")
        assert dump.result.startswith("HEAD\n")
        assert dump.result.endswith("TAIL")


async def test_a_server_that_is_neither_is_refused_with_both_reasons():
    async with HttpServer(Server()) as server:
        server.intercept = lambda _request: Reply(404)
        async with running({"s": {"url": server.url}}, wait=False) as found:
            await found.settled(state=ServerState.FAILED)
            assert found.status().reason.count("HTTP 404") == 2
        assert {request.method for request in server.requests} == {"POST", "GET"}


async def test_a_named_transport_is_not_tried_another_way():
    async with HttpServer(Server()) as server:
        server.intercept = lambda _request: Reply(404)
        async with running({"s": {"url": server.url, "type": "http"}}, wait=False) as found:
            await found.settled(state=ServerState.FAILED)
        assert {request.method for request in server.requests} == {"POST"}
