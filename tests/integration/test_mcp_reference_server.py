"""The reference server `mcp-server-time` from PyPI, as its users start it."""

from __future__ import annotations

import sys
from datetime import datetime

from tests.support.mcp import running
from tool_registry.registry import ToolRegistry

TIME = {"command": sys.executable, "args": ["-m", "mcp_server_time", "--local-timezone", "Europe/Zurich"]}


async def test_the_reference_time_server_lists_and_converts():
    async with running({"time": {**TIME, "start_timeout_s": 60}}, wait=False) as found:
        await found.settled("time")
        registry = ToolRegistry()
        assert registry.replace("mcp:time", found.offers["mcp:time"]).registered == (
            "time_convert_time",
            "time_get_current_time",
        )
        output = await found.call(
            "convert_time",
            {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"},
            "time",
        )
        assert not output.is_error
        assert datetime.fromisoformat(output.raw["target"]["datetime"]).hour == 21


async def test_the_reference_time_server_names_a_bad_timezone():
    """BR-062: the server's own words reach the model."""
    async with running({"time": TIME}, wait=False) as found:
        await found.settled("time")
        output = await found.call("get_current_time", {"timezone": "Mars/Olympus"}, "time")
        assert output.is_error
        assert "Mars/Olympus" in output.text()
