"""PD-70, PD-72: a job's way to allowed hosts: the worker's proxy, the job's socket, the orchestrator, squid."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from orchestrator.services.egress import EgressBounds
from tests.fakes.engine import FakeEngine
from tests.support.deadline import eventually, within
from tests.support.egress import CLOSED, HERE, OPENED, Site, site, squid_or_skip
from tests.support.orchestrator import Wired, WorkerHands, http_over, problem, wired
from worker.client import WorkerClient
from worker.clock import SystemClock
from worker.egress.line import EgressLine
from worker.egress.proxy import EgressProxy
from worker.token import Token

Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass
class Inside:
    """What a command of a job finds in its container, and the hands of its worker."""

    worker: WorkerHands
    proxy: EgressProxy
    site: Site
    open: list[asyncio.StreamWriter] = field(default_factory=list[asyncio.StreamWriter])

    async def connect(self, host: str) -> tuple[bytes, Ends]:
        """A CONNECT to the site's port: the first line of the answer, and the connection."""
        return await self.asked(f"CONNECT {host}:{self.site.port} HTTP/1.1\r\nHost: {host}\r\n\r\n")

    async def asked(self, head: str) -> tuple[bytes, Ends]:
        port = int(self.proxy.environment()["HTTP_PROXY"].rpartition(":")[2])
        ends = await asyncio.open_connection("127.0.0.1", port)
        self.open.append(ends[1])
        ends[1].write(head.encode())
        return await within(20, ends[0].readline()), ends

    async def close(self) -> None:
        for writer in self.open:
            writer.close()
        await self.proxy.close()

    async def echoes(self, ends: Ends, text: bytes) -> bool:
        ends[1].write(text)
        return await within(10, ends[0].readexactly(len(text))) == text


@pytest.fixture
async def there() -> AsyncIterator[Site]:
    squid_or_skip()
    async with site() as made:
        made.name("mirror.test", HERE)
        made.name("lures.test", CLOSED)
        yield made


def opened(there: Site) -> dict[str, Any]:
    return {"egress_allow_private": OPENED, "egress_nameservers": (there.names.address,)}


@pytest.fixture
async def running(home: Path, there: Site) -> AsyncIterator[Wired]:
    async with wired(home, **opened(there)) as made:
        yield made


@asynccontextmanager
async def inside(running: Wired, there: Site, *hosts: str) -> AsyncGenerator[Inside]:
    worker = await running.worker(allow_hosts=[f"{host}:{there.port}" for host in hosts])
    async with commands(worker, there) as made:
        yield made


@asynccontextmanager
async def commands(worker: WorkerHands, there: Site) -> AsyncGenerator[Inside]:
    token = Token(worker.token)
    async with http_over(socket=worker.socket) as http:
        client = WorkerClient(http, worker.job_id, token, clock=SystemClock())
        proxy = EgressProxy(EgressLine(worker.socket, token, renew=client.renew_token, clock=SystemClock()))
        await proxy.open()
        made = Inside(worker, proxy, there)
        try:
            yield made
        finally:
            await made.close()


async def told(running: Wired, job_id: str, count: int) -> list[dict[str, Any]]:
    """The job's first `count` connections, as its timeline has them."""
    async with asyncio.timeout(10):
        while len(found := await running.events(job_id, "egress")) < count:  # noqa: ASYNC110 - squid writes it
            await asyncio.sleep(0.01)
    return found


async def test_commands_reach_an_allowed_host_and_the_timeline_has_each_connection(
    running: Wired, there: Site
) -> None:
    async with inside(running, there, "mirror.test") as box:
        first, tunnel = await box.connect("mirror.test")
        assert first == b"HTTP/1.1 200 Connection established\r\n"
        assert await tunnel[0].readline() == b"\r\n"
        assert await box.echoes(tunnel, b"z" * 300_000)
        tunnel[1].close()
        plain, page = await box.asked(
            f"GET http://mirror.test:{there.port}/a?b HTTP/1.1\r\nHost: mirror.test\r\nProxy-Connection: x\r\n\r\n"
        )
        assert plain == b"GET /a?b HTTP/1.1\r\n"
        assert await within(10, page[0].readuntil(b"\r\n\r\n")) == (
            b"Host: mirror.test\r\nConnection: close\r\n\r\n"
        )
        page[1].close()
        one, two = await told(running, box.worker.job_id, 2)
        assert one["outcome"] == two["outcome"] == "carried"
        assert (one["host"], one["port"], one["address"], one["cause"]) == (
            "mirror.test",
            there.port,
            HERE,
            None,
        )
        assert one["sent_bytes"] >= 300_000 <= one["received_bytes"]
        shown = (await running.operator.get(f"/api/v1/jobs/{box.worker.job_id}")).json()
        assert shown["allow_hosts"] == [f"mirror.test:{there.port}"]
        assert (await box.worker.get("job")).json()["allow_hosts"] == shown["allow_hosts"]


async def test_a_refusal_says_in_its_first_line_what_is_allowed_and_whom_to_ask(
    running: Wired, there: Site
) -> None:
    """PD-72."""
    async with inside(running, there, "mirror.test", "*.lures.test") as box:
        first, ends = await box.connect("other.test")
        port = there.port
        said = (
            f"other.test:{port} is not allowed for this job; allowed: mirror.test:{port}, *.lures.test:{port};"
            f" ask the operator for --allow-host other.test:{port}"
        )
        assert first.decode() == f"HTTP/1.1 403 {said}\r\n"
        assert (await within(10, ends[0].read())).decode().endswith(f"\r\n\r\n{said}\n")
        assert box.proxy.refusals() == [said]
        assert box.proxy.refusals() == []
        plain, _ = await box.asked(f"GET http://other.test:{port}/ HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b"403 other.test" in plain
        refused = await told(running, box.worker.job_id, 2)
        assert {(one["host"], one["outcome"], one["cause"]) for one in refused} == {
            ("other.test", "refused", "not_allowed")
        }


async def test_private_addresses_dead_names_and_silent_ports_are_told_apart(
    running: Wired, there: Site
) -> None:
    """PD-71, PD-72."""
    there.name("a.lures.test", CLOSED)
    async with inside(running, there, "*.lures.test") as box:
        first, _ = await box.connect("a.lures.test")
        assert b"403 a.lures.test leads to an address that is not public" in first
        first, _ = await box.connect("nowhere.lures.test")
        assert b"502 nowhere.lures.test has no address" in first
        outcomes = [(one["outcome"], one["cause"]) for one in await told(running, box.worker.job_id, 2)]
        assert outcomes == [("refused", "private_address"), ("failed", "no_such_name")]
    assert there.reached == []


async def over_socket(worker: WorkerHands, head: str) -> tuple[int, Any]:
    """What the job's socket answers to a head: the status, and the problem."""
    reader, writer = await asyncio.open_unix_connection(str(worker.socket))
    first, rest = head.encode()[:5], head.encode()[5:]
    writer.write(first)
    await writer.drain()
    writer.write(rest)
    status = int((await within(10, reader.readline())).split()[1])
    await reader.readuntil(b"\r\n\r\n")
    body = await within(10, reader.read())
    writer.close()
    return status, json.loads(body)


async def test_the_socket_and_the_token_must_agree(running: Wired, there: Site) -> None:
    one = await running.worker(allow_hosts=["mirror.test"])
    two = await running.worker(allow_hosts=["mirror.test"])
    target = "CONNECT mirror.test:80 HTTP/1.1\r\nHost: mirror.test\r\n"
    for headers, code in (
        ("", "token_missing"),
        ("Authorization: Bearer nonsense\r\n", "token_invalid"),
        (f"Authorization: Bearer {two.token}\r\n", "job_mismatch"),
    ):
        status, body = await over_socket(one, f"{target}{headers}\r\n")
        assert (status, body["code"]) == (body["status"], code)
    assert there.names.asked == []


async def test_a_job_that_was_allowed_nothing_has_no_tunnel(running: Wired, there: Site) -> None:
    worker = await running.worker()
    status, body = await over_socket(
        worker, f"CONNECT mirror.test:443 HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {worker.token}\r\n\r\n"
    )
    assert (status, body["code"], body["cause"]) == (403, "egress_refused", "not_allowed")
    assert body["detail"].endswith("ask the operator for --allow-host mirror.test")


async def test_a_strange_target_goes_no_further(running: Wired, there: Site) -> None:
    worker = await running.worker(allow_hosts=["mirror.test"])
    for target, code in (
        ("mirror.test", "egress_refused"),
        ("mirror.test:0", "egress_refused"),
        ("mirror.test:x", "egress_refused"),
        ("[::1]:80", "egress_refused"),
        ("0x7f.1:80", "egress_refused"),
        ("a@mirror.test:80", "egress_refused"),
        ("mirror.test:80 HTTP/1.1\r\nX", "invalid_request"),
        (f"{'a' * 70_000}.test:80", "invalid_request"),
    ):
        head = f"CONNECT {target} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {worker.token}\r\n\r\n"
        _, body = await over_socket(worker, head)
        assert body["code"] == code, target
    assert await running.events(worker.job_id, "egress") == []


async def test_a_cancelled_job_s_tunnels_end_and_no_new_one_begins(running: Wired, there: Site) -> None:
    async with inside(running, there, "mirror.test") as box:
        _, tunnel = await box.connect("mirror.test")
        await tunnel[0].readline()
        assert await box.echoes(tunnel, b"still here")
        assert (await running.operator.post(f"/api/v1/jobs/{box.worker.job_id}/cancel")).status_code == 202
        assert await within(10, tunnel[0].read()) == b""
        first, _ = await box.connect("mirror.test")
        assert first.startswith((b"HTTP/1.1 403", b"HTTP/1.1 401", b"HTTP/1.1 409", b"HTTP/1.1 502"))
        assert len(there.reached) == 1


async def test_a_finished_job_s_tunnels_end(running: Wired, there: Site) -> None:
    async with inside(running, there, "mirror.test") as box:
        _, tunnel = await box.connect("mirror.test")
        await tunnel[0].readline()
        await box.worker.finish()
        assert await within(10, tunnel[0].read()) == b""


async def test_a_job_has_a_bounded_number_of_tunnels(running: Wired, there: Site) -> None:
    bound = EgressBounds().tunnels
    async with inside(running, there, "mirror.test") as box:
        tunnels = [await box.connect("mirror.test") for _ in range(bound)]
        assert {first for first, _ in tunnels} == {b"HTTP/1.1 200 Connection established\r\n"}
        first, _ = await box.connect("mirror.test")
        assert f"403 this job has {bound} connections open".encode() in first
        tunnels[0][1][1].close()
        await told(running, box.worker.job_id, 1)
        first, _ = await box.connect("mirror.test")
        assert b" 200 " in first


async def test_after_a_restart_of_the_orchestrator_the_way_out_is_there_again(
    home: Path, there: Site
) -> None:
    """The container lives on, with its token and its proxy; nothing of the first run's squid is left."""
    engine = FakeEngine()
    async with wired(home, engine=engine, **opened(there)) as first_run:
        worker = await first_run.worker(allow_hosts=[f"mirror.test:{there.port}"])
    async with commands(worker, there) as box:
        waiting = asyncio.create_task(box.connect("mirror.test"))
        async with wired(home, engine=engine, **opened(there)) as second_run:
            first, tunnel = await within(20, waiting)
            assert first == b"HTTP/1.1 200 Connection established\r\n"
            await tunnel[0].readline()
            assert await box.echoes(tunnel, b"again")
            tunnel[1].close()
            assert [one["host"] for one in await told(second_run, worker.job_id, 1)] == ["mirror.test"]


async def test_an_agent_s_hosts_are_those_of_its_jobs_unless_a_job_names_its_own(running: Wired) -> None:
    agent = "/api/v1/networks/local/agents/coder"
    hosts = {"launch": {"allow_hosts": ["Agent.Test"]}}
    assert (await running.operator.patch(agent, json=hosts)).status_code == 200
    for asked, kept in (({}, ["agent.test"]), ({"allow_hosts": ["job.test"]}, ["job.test"])):
        job_id = await running.new_job(**asked)
        shown = (await running.operator.get(f"/api/v1/jobs/{job_id}")).json()
        assert shown["allow_hosts"] == kept
    job_id = await running.new_job(mode="in-process")
    assert (await running.operator.get(f"/api/v1/jobs/{job_id}")).json()["allow_hosts"] == []


async def test_hosts_are_refused_before_anything_starts_where_they_can_t_be_had(
    home: Path, tmp_path: Path
) -> None:
    async with wired(home, egress_squid=str(tmp_path / "none")) as running:
        ask: dict[str, Any] = {"task": "x", "model": "scripted:model", "allow_hosts": ["a.org"]}
        said = problem(await running.operator.post("/api/v1/jobs", json=ask))
        assert (said["code"], said["status"]) == ("egress_unavailable", 503)
        assert "squid" in said["detail"]
        assert (await running.operator.get("/api/v1/jobs")).json() == []


async def test_a_wrong_pattern_is_told_at_once(orchestrator: Wired) -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"allow_hosts": ["http://a.org"]}, "'http://a.org' has no port after the colon"),
        ({"allow_hosts": ["*"]}, "'*' is not a host"),
        ({"allow_hosts": ["a.org"], "mode": "in-process"}, "an in-process job"),
    ]
    for changes, said in wrong:
        ask = {"task": "x", "model": "scripted:model", **changes}
        answer = problem(await orchestrator.operator.post("/api/v1/jobs", json=ask))
        assert (answer["code"], answer["status"]) == ("invalid_request", 400)
        assert said in answer["detail"]


async def test_the_loopback_proxy_says_what_it_is_and_serves_what_is_well_formed(
    running: Wired, there: Site
) -> None:
    async with inside(running, there, "mirror.test") as box:
        for head in ("GET / HTTP/1.1\r\nHost: x\r\n\r\n", "hello\r\n\r\n", "X" * 70_000 + "\r\n\r\n"):
            first, _ = await box.asked(head)
            assert first.startswith(b"HTTP/1.1 400 "), head[:40]
        environment = box.proxy.environment()
        assert environment["https_proxy"] == environment["HTTP_PROXY"]
        assert "127.0.0.1" in environment["NO_PROXY"]
        assert there.reached == []


async def test_an_expired_token_is_renewed_and_the_connection_asked_for_again(tmp_path: Path) -> None:
    """PD-70."""
    heard: list[bytes] = []
    expired = b'{"title": "t", "status": 401, "code": "token_expired", "detail": "d"}'

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.readuntil(b"\r\n\r\n"))
        new = b"Bearer new\r\n" in heard[-1]
        writer.write(b"HTTP/1.1 200 ok\r\n\r\n" if new else b"HTTP/1.1 401 no\r\n\r\n" + expired)
        writer.close()

    token = Token("old")

    async def renew() -> None:
        token.text = "new"

    server = await asyncio.start_unix_server(answer, tmp_path / "s")
    async with server:
        line = EgressLine(tmp_path / "s", token, renew=renew, clock=SystemClock())
        _, writer = await within(10, line.open("a.org:443"))
        writer.close()
    await eventually(lambda: len(heard) == 2)
    assert heard[0].startswith(b"CONNECT a.org:443 HTTP/1.1\r\n")
