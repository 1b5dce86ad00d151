"""DC-1: servers that others published, as their users start them, called by a running job.

`scripts/public-servers` installs them; the versions are pinned in `tests/public_servers/`.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
from collections.abc import AsyncIterator, Generator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from orchestrator.ports.models import ModelMessage
from tests.fakes.model import calls
from tests.support.mcp import CONTEXT, running, until
from tests.support.orchestrator import Wired, wired
from tests.support.public_servers import PublicServers
from tool_registry.mcp.status import ServerState

pytestmark = [pytest.mark.timeout(180), pytest.mark.xdist_group("public-servers")]

TOOLS = {
    "everything": {"everything_echo", "everything_get-sum", "everything_get-structured-content"},
    "fetch": {"fetch_fetch"},
    "files": {"files_read_text_file", "files_list_directory", "files_write_file"},
    "git": {"git_git_log", "git_git_status"},
    "memory": {"memory_create_entities", "memory_read_graph"},
    "thinking": {"thinking_sequentialthinking"},
    "time": {"time_convert_time", "time_get_current_time"},
}
NOON = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}


class Page(BaseHTTPRequestHandler):
    """One page for `fetch`."""

    def do_GET(self) -> None:
        found = self.path == "/page"
        self.send_response(200 if found else 404)
        self.send_header("content-type", "text/html")
        self.end_headers()
        if found:
            self.wfile.write(b"<html><body><h1>Harbour</h1><p>Boats leave at noon.</p></body></html>")

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet."""


@pytest.fixture
def page_url() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/page"
    server.shutdown()
    server.server_close()
    thread.join(10)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    folder.mkdir()
    (folder / "a.txt").write_text("one\n")
    who = ["-c", "user.name=N", "-c", "user.email=n@example.org"]
    for words in (["init", "-q"], ["add", "."], [*who, "commit", "-q", "-m", "the first commit"]):
        subprocess.run(["git", *words], cwd=folder, check=True)
    return folder


@pytest.fixture
async def service(
    home: Path, tmp_path: Path, repository: Path, public_servers: PublicServers
) -> AsyncIterator[Wired]:
    """An orchestrator with all of them in its `mcp.json`."""
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "note.txt").write_text("tide at six")
    entries = {
        "everything": public_servers.npm("everything"),
        "files": public_servers.npm("filesystem", str(tmp_path / "files")),
        "memory": public_servers.npm("memory", env={"MEMORY_FILE_PATH": str(tmp_path / "memory.jsonl")}),
        "thinking": public_servers.npm("sequential-thinking"),
        "fetch": public_servers.pypi("fetch", "--allow-private-ips"),
        "git": public_servers.pypi("git", "--repository", str(repository)),
        "time": public_servers.pypi("time", "--local-timezone", "Europe/Zurich"),
    }
    (home / "mcp.json").write_text(json.dumps({"mcpServers": entries}))
    async with wired(home, tools_wait_s=25) as running:
        yield running


async def test_a_job_calls_a_tool_of_each_public_server(
    service: Wired, tmp_path: Path, repository: Path, page_url: str
):
    """HW-2, HW-5: listed, fit for every provider, and called with their own schemas."""
    thought = {"thought": "t", "nextThoughtNeeded": False, "thoughtNumber": 1, "totalThoughts": 1}
    entity = {"entities": [{"name": "Boat", "entityType": "thing", "observations": ["floats"]}]}
    made: list[tuple[str, dict[str, Any], str]] = [
        ("everything_echo", {"message": "ahoy"}, "ahoy"),
        ("everything_get-sum", {"a": 2, "b": 40}, "42"),
        ("everything_get-structured-content", {"location": "New York"}, "temperature"),
        ("everything_get-tiny-image", {}, "image/png"),
        ("files_read_text_file", {"path": str(tmp_path / "files" / "note.txt")}, "tide at six"),
        ("memory_create_entities", entity, "Boat"),
        ("memory_read_graph", {}, "floats"),
        ("thinking_sequentialthinking", thought, "thoughtNumber"),
        ("fetch_fetch", {"url": page_url}, "Boats leave at noon."),
        ("git_git_log", {"repo_path": str(repository)}, "the first commit"),
        ("time_convert_time", NOON, "21:00"),
    ]
    service.model.then(
        calls(*((str(number), name, json.dumps(params)) for number, (name, params, _) in enumerate(made)))
    )
    job = await service.ended(await service.new_job(mode="in-process"), within_s=90)
    assert job.state == "completed", job.reason
    first, second = service.model.requests[:2]
    shown = {tool.name for tool in first.tools or ()}
    grants_needed = {"files_write_file"}
    assert set[str]().union(*TOOLS.values()) - grants_needed <= shown
    assert not grants_needed & shown
    results = [message for message in second.messages if message.role == "tool"]
    for (name, _, wanted), result in zip(made, results, strict=True):
        assert not result.is_error, (name, text_of(result))
        assert wanted in text_of(result), (name, text_of(result))


async def test_every_tool_of_the_public_servers_can_be_shown_to_every_provider(service: Wired):
    """PD-12: shaped where a provider asks for it, refused by none."""
    await service.ended(await service.new_job(mode="in-process"), within_s=90)
    servers = (await service.operator.get("/api/v1/mcp")).json()
    assert {one["name"]: one["state"] for one in servers} == dict.fromkeys(TOOLS, "ready")
    assert [problem for one in servers for problem in one["problems"]] == []
    checked = (await service.operator.post("/api/v1/tools/check", json={})).json()
    refused = [
        (name, view["provider"], view["refusals"])
        for name, views in checked.items()
        for view in views
        if view["verdict"] == "refused"
    ]
    assert refused == []


def text_of(message: ModelMessage) -> str:
    return message.content if isinstance(message.content, str) else json.dumps(message.content, default=str)


async def test_the_reference_time_server_names_a_bad_timezone(public_servers: PublicServers):
    """BR-062: the server's own words reach the model."""
    entry = public_servers.pypi("time", "--local-timezone", "Europe/Zurich")
    async with running({"time": entry}, wait=False) as found:
        await found.servers.settled(60)
        output = await found.call("get_current_time", {"timezone": "Mars/Olympus"}, "time")
        assert output.is_error
        assert "Mars/Olympus" in output.text()
        now = await found.call("get_current_time", {"timezone": "UTC"}, "time")
        assert datetime.fromisoformat(now.raw["datetime"]).tzinfo is not None


@contextmanager
def _everything_over(public_servers: PublicServers, way: str) -> Generator[str]:
    """The reference server over HTTP; gives its origin."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    entry = public_servers.npm("everything", way)
    process = subprocess.Popen(
        [entry["command"], *entry["args"]],
        env={**os.environ, "PORT": str(port)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(20)


@pytest.mark.parametrize(("way", "path", "kind"), [("streamableHttp", "mcp", "http"), ("sse", "sse", "sse")])
async def test_the_reference_server_is_reached_over_both_ways_of_http(
    public_servers: PublicServers, way: str, path: str, kind: str
):
    """DC-1: a server that is not ours, found by its address alone."""
    with _everything_over(public_servers, way) as origin:
        async with running({"s": {"url": f"{origin}/{path}"}}, wait=False) as found:
            await until(lambda: found.status().state is ServerState.READY, within_s=60)
            assert found.status().transport == kind
            assert (await found.call("echo", {"message": "ahoy"})).result == "Echo: ahoy"
            progressed: list[float] = []

            def note(done: float, _total: float | None, _text: str | None) -> None:
                progressed.append(done)

            tool = found.tool("trigger-long-running-operation")
            output = await tool.execute({"duration": 1, "steps": 2}, replace(CONTEXT, progress=note))
            assert not output.is_error
            assert progressed
