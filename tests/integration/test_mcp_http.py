"""Servers over streamable HTTP that misbehave."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest

from tests.fakes import mcp_servers as fakes
from tests.fakes.mcp_over_http import HttpServer, Reply, Request
from tests.fakes.mcp_servers import Server
from tests.support.mcp import CONTEXT, Running, running, until
from tool_registry.errors import Outcome, ToolFailed, ToolTimeout, ToolUnavailable
from tool_registry.mcp.status import ServerState


def _is_call(request: Request) -> bool:
    return bool(request.body) and request.body.get("method") == "tools/call"


async def _failure(found: Running) -> str:
    """What a call that must fail says, whichever of the two ways it fails."""
    try:
        output = await found.call("echo")
    except ToolFailed as error:
        return error.message
    assert output.is_error
    return output.text()


async def test_a_lost_session_is_made_anew_and_the_call_sent_once_more():
    """BR-069: 404 proves that the call did not run; initialize goes out without the old id."""
    async with HttpServer(Server()) as server, running({"s": {"url": server.url}}) as found:
        assert (await found.call("echo", {"text": "1"})).result == "1"
        server.forget()
        server.requests.clear()
        assert (await found.call("echo", {"text": "2"})).result == "2"
        assert server.methods() == [
            "tools/call",
            "initialize",
            "notifications/initialized",
            "tools/list",
            "tools/call",
        ]
        again = next(each for each in server.requests if each.body and each.body["method"] == "initialize")
        assert "mcp-session-id" not in again.headers


async def test_a_session_that_is_lost_again_is_an_error_after_one_more_attempt():
    """BR-069: bounded; the error says that the call did not run."""
    async with HttpServer(Server()) as server, running({"s": {"url": server.url}}) as found:
        await found.call("echo")
        server.intercept = lambda request: Reply(404) if _is_call(request) else None
        with pytest.raises(ToolFailed, match="no longer knows the session") as failed:
            await found.call("echo")
        assert failed.value.outcome is Outcome.NOT_RUN
        assert server.methods().count("tools/call") == 3


async def test_a_server_without_sessions_is_used_without_the_header():
    """BR-069: a stateless server gets no session id."""
    async with (
        HttpServer(Server(), with_sessions=False) as server,
        running({"s": {"url": server.url}}) as found,
    ):
        assert (await found.call("echo", {"text": "1"})).result == "1"
        assert not any("mcp-session-id" in each.headers for each in server.requests)


async def test_a_connection_that_breaks_in_a_call_fails_it_at_once_and_not_twice():
    """BR-050: over HTTP too; the call may have had effects, so it is not repeated."""
    async with HttpServer(Server()) as server, running({"s": {"url": server.url}}) as found:
        server.intercept = lambda request: Reply(drop=True) if _is_call(request) else None
        with anyio.fail_after(2), pytest.raises(ToolFailed, match="the connection broke") as failed:
            await found.call("echo")
        assert failed.value.outcome is Outcome.UNKNOWN
        assert server.methods().count("tools/call") == 1
        server.intercept = lambda _request: None
        assert (await found.call("echo", {"text": "next"})).result == "next"


async def test_a_stream_that_ends_without_the_answer_fails_the_call():
    """BR-050: over SSE the end of the stream is the end of the wait."""
    cut = Reply(200, {"content-type": "text/event-stream"}, b": about to answer\n\n")
    async with HttpServer(Server()) as server, running({"s": {"url": server.url}}) as found:
        server.intercept = lambda request: cut if _is_call(request) else None
        with anyio.fail_after(2), pytest.raises(ToolFailed, match="went away") as failed:
            await found.call("echo")
        assert failed.value.outcome is Outcome.UNKNOWN
        server.intercept = lambda _request: None
        assert (await found.call("echo", {"text": "next"})).result == "next"


async def test_one_broken_call_leaves_the_others_running():
    """BR-050: a fault belongs to the request it happened to."""
    async with HttpServer(Server()) as server, running({"s": {"url": server.url}}) as found:
        held = anyio.Event()

        def intercept(request: Request) -> Reply | None:
            if not _is_call(request):
                return None
            wanted = request.body["params"]["arguments"]["text"]
            if wanted == "held":
                held.set()
                return Reply(hang=True)
            return Reply(drop=True)

        server.intercept = intercept
        ended: list[str] = []

        async def hold() -> None:
            await found.call("echo", {"text": "held"})
            ended.append("held")

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(hold)
            await held.wait()
            with pytest.raises(ToolFailed):
                await found.call("echo", {"text": "broken"})
            assert found.status().state is ServerState.READY
            assert ended == []
            tasks.cancel_scope.cancel()


async def test_a_server_that_is_gone_is_unavailable_and_used_again_when_it_is_back():
    """BR-050: a refused connection proves that nothing ran."""
    server = HttpServer(Server())
    async with server:
        context = running({"s": {"url": server.url}})
        found = await context.__aenter__()
        echo = found.tool("echo")
    try:
        with pytest.raises(ToolUnavailable, match="can't be reached"):
            await echo.execute({}, CONTEXT)
        await found.settled(state=ServerState.FAILED)
        assert found.names() == []
        async with server:
            await found.settled()
            assert (await found.call("echo", {"text": "back"})).result == "back"
    finally:
        await context.__aexit__(None, None, None)


async def test_a_server_that_accepts_and_never_answers_fails_at_its_start_timeout():
    """BR-052: the others are not delayed; the reason names the setting."""
    async with HttpServer(Server()) as silent, HttpServer(Server()) as good:
        silent.intercept = lambda _request: Reply(hang=True)
        entries = {"s": {"url": silent.url, "start_timeout_s": 0.5}, "good": {"url": good.url}}
        async with running(entries, wait=False) as found:
            await found.settled("good")
            await found.settled("s", ServerState.FAILED)
            assert "did not answer `initialize` within 0.5 s" in found.status().reason


async def test_a_call_that_is_never_answered_times_out_and_the_server_is_told():
    """BR-068: over HTTP the notice is a message of its own."""
    entry = {"timeout_s": 0.5}
    async with HttpServer(Server()) as server, running({"s": {"url": server.url, **entry}}) as found:
        server.intercept = lambda request: Reply(hang=True) if _is_call(request) else None
        with anyio.fail_after(3), pytest.raises(ToolTimeout):
            await found.call("echo")
        call = next(each.body for each in server.requests if _is_call(each))
        await until(lambda: "notifications/cancelled" in server.methods())
        notice = next(
            each.body
            for each in server.requests
            if each.body and each.body["method"] == "notifications/cancelled"
        )
        assert notice["params"]["requestId"] == call["id"]


async def test_a_notice_that_is_never_accepted_does_not_hold_the_next_call():
    """BR-068: the message that cancels a call may not block the conversation."""
    entry = {"timeout_s": 10}
    async with HttpServer(Server()) as server, running({"s": {"url": server.url, **entry}}) as found:
        server.intercept = lambda request: (
            Reply(hang=True)
            if _is_call(request) or (request.body and request.body["method"] == "notifications/cancelled")
            else None
        )
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(found.call, "echo")
            await until(lambda: "tools/call" in server.methods())
            tasks.cancel_scope.cancel()
        await until(lambda: "notifications/cancelled" in server.methods())
        server.intercept = lambda _request: None
        assert (await found.call("echo", {"text": "next"})).result == "next"


async def test_a_token_that_was_rotated_is_read_again_and_the_call_repeated():
    """BR-070: one re-read, one retry; a 401 proves that the call did not run."""
    valid = "old"

    async def resolve(_name: str) -> str | None:
        return valid

    entry: dict[str, Any] = {"headers": {"Authorization": "Bearer ${secret:TOKEN}"}}
    async with HttpServer(Server()) as server:
        server.intercept = lambda request: (
            None if request.headers.get("authorization") == f"Bearer {valid}" else Reply(401)
        )
        async with running({"s": {"url": server.url, **entry}}, resolve_secret=resolve) as found:
            await found.call("echo")
            valid = "new"
            assert (await found.call("echo", {"text": "2"})).result == "2"


async def test_a_token_that_stays_refused_is_an_error_without_the_token():
    """BR-070: says 401 and where the token comes from."""
    entry = {"headers": {"Authorization": "Bearer tok-secret-1"}}
    async with HttpServer(Server()) as server:
        server.intercept = lambda _request: Reply(401, body=b"no: tok-secret-1")
        async with running({"s": {"url": server.url, **entry}}, wait=False) as found:
            await found.settled(state=ServerState.FAILED)
            assert "401" in found.status().reason
            assert "tok-secret-1" not in found.status().reason


async def test_credentials_do_not_follow_a_redirect_to_another_host():
    """BR-070: the request ends at the redirect."""
    async with HttpServer(Server()) as other, HttpServer(Server()) as server:
        server.intercept = lambda _request: Reply(307, {"location": other.url})
        entry = {"url": server.url, "headers": {"Authorization": "Bearer t"}}
        async with running({"s": entry}, wait=False) as found:
            await found.settled(state=ServerState.FAILED)
            assert "edirect" in found.status().reason
            assert other.requests == []


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (Reply(500), "HTTP 500"),
        (Reply(403), "HTTP 403"),
        (Reply(200, {"content-type": "text/html"}, b"<html>"), "content type"),
        (Reply(202), "202"),
    ],
)
async def test_an_answer_that_is_none_fails_the_call_with_what_came(reply: Reply, said: str):
    """BR-062: the job goes on in every case."""
    async with HttpServer(Server()) as server, running({"s": {"url": server.url}}) as found:
        server.intercept = lambda request: reply if _is_call(request) else None
        assert said in await _failure(found)
        server.intercept = lambda _request: None
        assert (await found.call("echo", {"text": "next"})).result == "next"


async def test_an_error_without_a_message_reaches_the_model_over_http():
    """BR-062: completed, not lost."""
    async with HttpServer(fakes.Refusing()) as server, running({"s": {"url": server.url}}) as found:
        output = await found.call("no_message")
        assert output.is_error
        assert output.result["message"] == "the server gave no message"


async def test_closing_ends_the_session_at_the_server():
    async with HttpServer(Server()) as server:
        async with running({"s": {"url": server.url}}):
            pass
        assert [each.method for each in server.requests if each.method == "DELETE"] == ["DELETE"]


async def test_a_stream_of_notices_that_is_closed_is_opened_again_with_the_same_session():
    """BR-070: an idle proxy does that; nobody calls it a problem of the token."""
    closed = Reply(200, {"content-type": "text/event-stream"}, b"retry: 10\n: idle\n\n")
    async with HttpServer(Server()) as server:
        server.intercept = lambda request: closed if request.method == "GET" else None
        async with running({"s": {"url": server.url}}) as found:
            await until(lambda: sum(each.method == "GET" for each in server.requests) >= 2)
            opened = [each for each in server.requests if each.method == "GET"]
            assert {each.headers["mcp-session-id"] for each in opened} == {"session-1"}
            assert (await found.call("echo", {"text": "on"})).result == "on"
            assert server.methods().count("initialize") == 1
            assert found.status().last_error == ""


async def test_a_call_whose_stream_is_cut_is_resumed_where_the_server_can():
    """BR-070: by the id of the last event; the call itself is not sent again."""
    first = Reply(200, {"content-type": "text/event-stream"}, b"id: e-1\nretry: 10\ndata:\n\n")
    async with HttpServer(Server()) as server:

        def intercept(request: Request) -> Reply | None:
            if _is_call(request):
                return first
            if request.headers.get("last-event-id") != "e-1":
                return None
            (call,) = [each.body for each in server.requests if _is_call(each)]
            answer = fakes.result(call, fakes.text("resumed"))
            event = f"id: e-2\ndata: {json.dumps(answer)}\n\n".encode()
            return Reply(200, {"content-type": "text/event-stream"}, event)

        server.intercept = intercept
        async with running({"s": {"url": server.url}}) as found:
            assert (await found.call("echo")).result == "resumed"
            assert server.methods().count("tools/call") == 1
