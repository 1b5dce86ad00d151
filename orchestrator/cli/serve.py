"""`portside serve`: the orchestrator as a service."""

from __future__ import annotations

import asyncio
import signal
import sys

from orchestrator.cli.failures import CommandFailed
from orchestrator.cli.invocation import AsJson, settings_from_environment
from orchestrator.cli.output import Output
from orchestrator.cli.session import Needs, embedded, running
from orchestrator.errors import HomeTaken
from orchestrator.settings import Settings


def serve(as_json: AsJson = False) -> None:
    """Run the orchestrator until SIGTERM or SIGINT; its log goes to standard error, as JSON."""
    import uvloop  # only a service needs it

    settings = settings_from_environment()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(settings, Output(as_json)))


async def _serve(settings: Settings, output: Output) -> None:
    if await running(settings):
        raise CommandFailed(
            f"an orchestrator answers on {settings.api_socket} already; end it, or use another PORTSIDE_HOME"
        )
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for one in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(one, ended.set)
    try:
        async with embedded(settings, output.say, Needs(), log=sys.stderr) as orchestrator:
            where, mcp_url = str(settings.api_socket), orchestrator.mcp_url
            if output.as_json:
                output.json_line({"listening": where, **({"mcp": mcp_url} if mcp_url else {})})
            else:
                if mcp_url:
                    output.say(f"agents from outside: {mcp_url}/mcp")
                output.say(f"listening on {where}; end it with Ctrl-C or SIGTERM")
            await ended.wait()
    except HomeTaken as error:
        raise CommandFailed(f"{error.message}; end it, or use another PORTSIDE_HOME") from None
