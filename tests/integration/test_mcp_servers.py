"""All servers of a configuration: adding, removing, testing, filtering, ending (DC-1)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.fakes import mcp_servers as fakes
from tests.support.mcp import no_secret, running, until
from tool_registry.errors import ToolFailed
from tool_registry.mcp.config import McpConfig, parse_server
from tool_registry.mcp.servers import DuplicateServer, McpServers, UnknownServer
from tool_registry.mcp.status import ServerState
from tool_registry.registry import Offer, Replaced

ENTRY = fakes.command(fakes.Paged, "absent")


async def test_a_server_can_be_added_and_removed_while_the_others_run():
    async with running({"s": fakes.command(fakes.Server)}) as found:
        found.servers.add("more", parse_server(fakes.command(fakes.Server), name="more"))
        await found.settled("more")
        assert (await found.call("echo", {"text": "new"}, "more")).result == "new"
        with pytest.raises(DuplicateServer, match="remove it first"):
            found.servers.add("more", parse_server(ENTRY, name="more"))
        await found.servers.remove("more")
        assert [status.name for status in found.servers.status()] == ["s"]
        with pytest.raises(UnknownServer, match="known: s"):
            await found.servers.remove("more")
        found.servers.add("more", parse_server(fakes.command(fakes.Server), name="more"))
        await found.settled("more")


async def test_a_server_that_works_is_tested_without_being_configured():
    async with running({}) as found:
        status = (await found.servers.test("s", parse_server(ENTRY, name="s"))).status
        assert (status.state, status.reason, status.tool_count) == (ServerState.READY, "", 150)
        assert status.protocol_version == "2025-11-25"
        assert found.pushes == []


async def test_a_disabled_server_is_not_started_and_says_so():
    async with running({"s": {**ENTRY, "enabled": False}}, wait=False) as found:
        assert found.status().state is ServerState.DISABLED
        assert found.pushes == []


async def test_only_the_wanted_tools_are_offered():
    entry = {**ENTRY, "include": ["t0_1*", "t1_2"], "exclude": ["t0_1"]}
    async with running({"s": entry}) as found:
        assert found.names() == [*(f"t0_1{digit}" for digit in range(10)), "t1_2"]
        assert found.status().tool_count == 11


async def test_a_reconnection_with_the_same_tools_changes_nothing_for_the_registry():
    async with running({"s": fakes.command(fakes.Dying)}) as found:
        with pytest.raises(ToolFailed):
            await found.call("die")
        assert (await found.call("echo", {"text": "again"})).result == "again"
        assert [owner for owner, _names in found.pushes] == ["mcp:s"]


@pytest.mark.parametrize(("wanted", "shown"), [(True, "ask me first"), (False, "")])
async def test_a_servers_instructions_are_passed_on_unless_the_configuration_says_no(
    wanted: bool, shown: str
):
    entry = {**fakes.command(fakes.Instructing), "instructions": wanted}
    async with running({"s": entry}) as found:
        assert found.instructions["mcp:s"].endswith(shown)
        assert bool(found.instructions["mcp:s"]) is wanted


async def test_a_listener_that_fails_does_not_keep_a_server_from_being_ended():
    seen: list[str] = []

    def on_tools(owner: str, offers: Sequence[Offer], instructions: str) -> Replaced:
        seen.append(owner)
        raise LookupError(owner)

    config = McpConfig.model_validate({"mcpServers": {"s": fakes.command(fakes.Server)}})
    servers = McpServers(config, on_tools=on_tools, resolve_secret=no_secret)
    async with servers:
        await until(lambda: servers.status()[0].state is ServerState.READY)
    assert seen == ["mcp:s", "mcp:s"]
    assert servers.status()[0].state is ServerState.CLOSED
