"""PD-70, PD-71: the proxy of jobs' connections: names first, then the addresses that they have."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from orchestrator.adapters.egress.process import SquidProcess, find_squid
from orchestrator.adapters.egress.squid import SquidProxy, SquidSettings
from orchestrator.domain.egress.patterns import parse_patterns
from orchestrator.ports.egress import Carried, ConnectionDenied, Denial, ProxyFailed, Way
from tests.support.egress import CLOSED, HERE, OPENED, Site, site, squid_or_skip
from tests.support.mcp import alive
from tests.support.waiting import until

JOB = "0190-job-one"


@dataclass
class Proxied:
    """A proxy under test, its site, and what it told."""

    site: Site
    directory: Path
    told: list[Carried] = field(default_factory=list[Carried])

    def __post_init__(self) -> None:
        self.proxy = self.another()

    def another(self) -> SquidProxy:
        settings = SquidSettings(self.directory, OPENED, (self.site.names.address,))
        return SquidProxy(settings, self.tell)

    def pids(self) -> list[int]:
        return SquidProcess("", self.directory).running()

    async def tell(self, carried: Carried) -> None:
        self.told.append(carried)

    async def admit(self, *patterns: str, job: str = JOB) -> None:
        await self.proxy.admit(job, parse_patterns(f"{one}:{self.site.port}" for one in patterns))

    async def connect(self, host: str, *, job: str = JOB, port: int | None = None) -> Way:
        async with asyncio.timeout(20):
            return await self.proxy.connect(job, host, port or self.site.port)

    async def denied(self, host: str, *, job: str = JOB, port: int | None = None) -> Denial:
        with pytest.raises(ConnectionDenied) as caught:
            await self.connect(host, job=job, port=port)
        return caught.value.cause

    async def telling(self, count: int) -> Sequence[Carried]:
        async def there() -> bool:
            return len(self.told) >= count

        await until(there)
        return self.told


@pytest.fixture
async def proxied(tmp_path: Path) -> AsyncIterator[Proxied]:
    squid_or_skip()
    async with site() as there:
        made = Proxied(there, tmp_path / "egress with a space")
        try:
            yield made
        finally:
            await made.proxy.close()


async def echoed(way: Way, text: bytes) -> bool:
    way[1].write(text)
    async with asyncio.timeout(10):
        return await way[0].readexactly(len(text)) == text


async def test_an_allowed_name_is_reached_and_told_of_with_its_bytes(proxied: Proxied) -> None:
    await proxied.admit(proxied.site.name("mirror.test", HERE))
    way = await proxied.connect("mirror.test")
    assert await echoed(way, b"x" * 100_000)
    way[1].close()
    (told,) = await proxied.telling(1)
    assert (told.job_id, told.host, told.port, told.cause) == (JOB, "mirror.test", proxied.site.port, None)
    assert told.address == HERE
    assert told.sent_bytes >= 100_000
    assert told.received_bytes >= 100_000


async def test_a_pattern_opens_what_it_says_and_no_more(proxied: Proxied) -> None:
    port = proxied.site.port
    for name in ("exact.test", "sub.exact.test", "wild.test", "a.wild.test", "b.a.wild.test", "notwild.test"):
        proxied.site.name(name, HERE)
    await proxied.admit("exact.test", "*.wild.test")
    for name in ("exact.test", "EXACT.test", "a.wild.test", "b.a.wild.test"):
        (await proxied.connect(name))[1].close()
    for name in ("sub.exact.test", "wild.test", "notwild.test", "exact.test.evil.test", HERE):
        assert await proxied.denied(name) == "not_allowed", name
    assert await proxied.denied("exact.test", port=443 if port != 443 else 444) == "not_allowed"
    assert not {"sub.exact.test", "notwild.test"} & set(proxied.site.names.asked)
    assert {one.cause for one in (await proxied.telling(10))[4:]} == {"not_allowed"}


async def test_an_address_is_not_taken_for_the_name_that_its_own_name_server_gives_it(
    proxied: Proxied,
) -> None:
    proxied.site.name("exact.test", HERE)
    proxied.site.name("a.wild.test", HERE)
    await proxied.admit("exact.test", "*.wild.test")
    for claimed in ("exact.test", "a.wild.test"):
        proxied.site.name("2.0.0.127.in-addr.arpa", claimed)
        assert await proxied.denied(HERE) == "not_allowed", claimed
    assert "2.0.0.127.in-addr.arpa" not in proxied.site.names.asked


PRIVATE: Sequence[tuple[str, ...]] = (
    (CLOSED,),
    (HERE, CLOSED),
    ("169.254.169.254",),
    ("10.1.2.3",),
    ("172.16.0.1",),
    ("192.168.1.1",),
    ("100.64.0.1",),
    ("0.0.0.0",),
    ("224.0.0.1",),
    ("255.255.255.255",),
    ("::1",),
    ("::",),
    ("fe80::1",),
    ("fc00::1",),
    ("fd00:ec2::254",),
    ("ff02::1",),
    (f"::ffff:{CLOSED}",),
    (f"::{CLOSED}",),
    ("64:ff9b::7f00:1",),
    ("2002:7f00:1::1",),
)


async def test_an_allowed_name_that_leads_to_a_private_address_is_refused(proxied: Proxied) -> None:
    """PD-71: of either family, also dressed up as the other, and beside a public one."""
    await proxied.admit("*.lures.test")
    for number, addresses in enumerate(PRIVATE):
        name = proxied.site.name(f"n{number}.lures.test", *addresses)
        assert await proxied.denied(name) == "private_address", addresses
    assert proxied.site.reached == []
    told = await proxied.telling(len(PRIVATE))
    assert {(one.cause, one.address) for one in told} == {("private_address", "")}


async def test_an_allowed_private_address_is_refused_too(proxied: Proxied) -> None:
    """PD-71: an address in the list is held to the same rule."""
    await proxied.admit(CLOSED, HERE)
    assert await proxied.denied(CLOSED) == "private_address"
    (await proxied.connect(HERE))[1].close()


async def test_a_name_that_changes_its_address_after_it_was_looked_at_leads_nowhere_new(
    proxied: Proxied,
) -> None:
    """PD-71: answers live for a minute at least, whatever their server says."""
    await proxied.admit(proxied.site.name("turns.test", HERE))
    (await proxied.connect("turns.test"))[1].close()
    proxied.site.name("turns.test", CLOSED)
    for _ in range(5):
        (await proxied.connect("turns.test"))[1].close()
    assert set(proxied.site.reached) == {HERE}


async def test_a_name_without_an_address_is_said_to_have_none_and_gets_none_a_moment_later(
    proxied: Proxied,
) -> None:
    await proxied.admit("absent.test")
    assert await proxied.denied("absent.test") == "no_such_name"
    proxied.site.name("absent.test", CLOSED)
    assert await proxied.denied("absent.test") == "no_such_name"
    (first, _) = await proxied.telling(2)
    assert first.cause == "no_such_name"


async def test_a_host_on_which_nobody_listens_is_not_reached(proxied: Proxied) -> None:
    with socket.create_server((HERE, 0)) as closed:
        port = closed.getsockname()[1]
    proxied.site.name("silent.test", HERE)
    await proxied.proxy.admit(JOB, parse_patterns([f"silent.test:{port}"]))
    assert await proxied.denied("silent.test", port=port) == "not_reached"


async def test_a_job_s_hosts_are_its_own(proxied: Proxied) -> None:
    await proxied.admit(proxied.site.name("one.test", HERE), job="one")
    await proxied.admit(proxied.site.name("two.test", HERE), job="two")
    (await proxied.connect("one.test", job="one"))[1].close()
    assert await proxied.denied("two.test", job="one") == "not_allowed"
    assert await proxied.denied("one.test", job="two") == "not_allowed"


async def test_tunnels_survive_the_coming_and_going_of_other_jobs(proxied: Proxied) -> None:
    await proxied.admit(proxied.site.name("long.test", HERE), job="long")
    way = await proxied.connect("long.test", job="long")
    assert await echoed(way, b"before")
    for number in range(3):
        await proxied.admit(proxied.site.name("short.test", HERE), job=f"short{number}")
        (await proxied.connect("short.test", job=f"short{number}"))[1].close()
        await proxied.proxy.dismiss([f"short{number}"])
    assert await echoed(way, b"after")
    way[1].close()


async def test_a_dismissed_job_reaches_nothing(proxied: Proxied) -> None:
    await proxied.admit(proxied.site.name("gone.test", HERE))
    await proxied.proxy.dismiss([JOB])
    with pytest.raises(ProxyFailed):
        await proxied.connect("gone.test")


async def test_another_process_of_this_host_gets_nothing_from_its_port(proxied: Proxied) -> None:
    """PD-70: the port is open to all users of the host; the key is not."""
    await proxied.admit(proxied.site.name("mine.test", HERE))
    port = int(
        next(
            line.rpartition(":")[2]
            for line in (proxied.directory / "squid.conf").read_text().splitlines()
            if line.startswith("http_port")
        )
    )
    target = f"mine.test:{proxied.site.port}"
    for headers in ("", f"X-Portside-Job: {'0' * 64}\r\n", "X-Portside-Job: .*\r\n"):
        long = f"GET http://{target}/{'x' * 60_000}"
        for asked in (f"CONNECT {target}", f"GET http://{target}/", "GET /squid-internal-mgr/info", long):
            reader, writer = await asyncio.open_connection(CLOSED, port)
            writer.write(f"{asked} HTTP/1.1\r\nHost: {target}\r\n{headers}\r\n".encode())
            async with asyncio.timeout(10):
                first = await reader.readline()
            writer.close()
            assert b" 403 " in first or b" 400 " in first, (asked, first)
    assert proxied.site.reached == []
    (await proxied.connect("mine.test"))[1].close()
    assert [one.host for one in await proxied.telling(1)] == ["mine.test"]
    assert (proxied.directory / "squid.conf").stat().st_mode & 0o777 == 0o600


async def test_a_squid_that_dies_is_started_again_for_the_next_connection(proxied: Proxied) -> None:
    await proxied.admit(proxied.site.name("back.test", HERE))
    (pid,) = proxied.pids()
    os.kill(pid, signal.SIGKILL)

    async def up_again() -> bool:
        try:
            (await proxied.connect("back.test"))[1].close()
        except ProxyFailed:
            return False
        return True

    await until(up_again)
    assert proxied.pids() != [pid]


@pytest.mark.parametrize("needed", [True, False])
async def test_what_a_killed_orchestrator_left_is_ended(proxied: Proxied, needed: bool) -> None:
    """By the next one's start, whether it needs a squid or not."""
    await proxied.admit("left.test")
    (left,) = proxied.pids()
    second = proxied.another()
    try:
        await second.end_leftovers()
        if needed:
            await second.admit("other", parse_patterns(["left.test"]))

        async def gone() -> bool:
            return not alive(left)

        await until(gone)
        assert len(proxied.pids()) == needed
    finally:
        await second.close()


async def test_squid_knows_none_of_the_orchestrator_s_environment_and_is_not_root(
    proxied: Proxied, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-for-squid")
    await proxied.admit("any.test")
    process = Path("/proc") / str(proxied.pids()[0])
    assert b"sk-not-for-squid" not in (process / "environ").read_bytes()
    uids = next(line for line in (process / "status").read_text().splitlines() if line.startswith("Uid:"))
    assert uids.split()[2] != "0"


async def test_without_squid_it_says_the_command_that_installs_it(tmp_path: Path) -> None:
    async def tell(_carried: Carried) -> None: ...

    proxy = SquidProxy(
        SquidSettings(tmp_path, how_to_install="Type this.", binary=str(tmp_path / "no")), tell
    )
    assert proxy.missing() == "allowed hosts are reached through squid, which is not there. Type this."
    with pytest.raises(ProxyFailed, match="Type this"):
        await proxy.admit(JOB, parse_patterns(["a.test"]))


async def test_a_squid_that_can_t_run_is_told_of_with_its_last_words(tmp_path: Path) -> None:
    async def tell(_carried: Carried) -> None: ...

    broken = tmp_path / "squid"
    broken.write_text("#!/bin/sh\necho no such option >&2\nexit 1\n")
    broken.chmod(0o755)
    proxy = SquidProxy(SquidSettings(tmp_path / "d", binary=str(broken)), tell)
    with pytest.raises(ProxyFailed, match="squid ended at once: no such option"):
        await proxy.admit(JOB, parse_patterns(["a.test"]))
    await proxy.close()


async def test_it_leaves_nothing_in_shared_memory_and_no_other_squid_is_in_its_way(proxied: Proxied) -> None:
    def mine() -> list[str]:
        name = SquidProcess("squid", proxied.directory).service
        return [one.name for one in Path("/dev/shm").glob(f"{name}*")]

    await proxied.admit("a.test")
    assert mine()
    await proxied.proxy.close()
    assert mine() == []


async def test_its_configuration_is_taken_as_a_whole(proxied: Proxied) -> None:
    """Of networks that overlap squid leaves one out, with a warning and no error."""
    await proxied.admit("a.test", "*.b.test", CLOSED)
    assert find_squid()
    words = (proxied.directory / "squid.log").read_text()
    assert "WARNING" not in words
    assert "ERROR" not in words
