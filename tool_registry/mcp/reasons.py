"""Why a connection could not be made or kept, in words for operators."""

from __future__ import annotations

import logging
from typing import cast

from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED

from tool_registry.mcp.faults import fault_in
from tool_registry.mcp.log import ServerLog
from tool_registry.mcp.transport import ServerUnreachable, Wire

logger = logging.getLogger("tool_registry.mcp")

START = "start"


def silence(stage: str, start_timeout_s: float, log: ServerLog) -> str:
    """A start that took too long; `stage` is the request that was not answered, or `START`."""
    wanted = "it was not ready" if stage == START else f"it did not answer `{stage}`"
    said = log.tail()
    return sentence(
        f"{wanted} within {start_timeout_s:g} s: check that it is an MCP server, or raise `start_timeout_s`",
        log.noise(),
        f"its last stderr lines: {said}" if said else "",
    )


async def broken(failure: BaseException, stage: str, wire: Wire | None, log: ServerLog) -> str:
    """An attempt that failed. What nobody foresaw is logged with its traceback."""
    error = first_leaf(failure)
    if isinstance(error, ServerUnreachable):
        return str(error)
    if isinstance(error, MCPError):
        fault = fault_in(error.data)
        if fault is not None:
            return fault.detail
        if error.code == CONNECTION_CLOSED:
            words = await wire.last_words() if wire is not None else ""
            return sentence(f"it ended before it answered `{stage}`", words, log.noise())
        return log.masked(f"it refused `{stage}`: {error.message[:300]} (code {error.code})")
    logger.error("MCP server %s: unexpected error", log.server, exc_info=error)
    return f"unexpected {type(error).__name__}; the log has the details"


def knows_no_such_way(failure: BaseException) -> bool:
    """The server's HTTP refused a first message in a way that one of the older kind does."""
    error = first_leaf(failure)
    fault = fault_in(error.data) if isinstance(error, MCPError) else None
    return fault is not None and fault.status in {400, 404, 405}


def first_leaf(error: BaseException) -> BaseException:
    """What started a group of failures: task groups wrap even a single one."""
    if not isinstance(error, BaseExceptionGroup):
        return error
    return first_leaf(cast("BaseExceptionGroup[BaseException]", error).exceptions[0])


def sentence(*parts: str) -> str:
    """The parts that say something, as one sentence."""
    return "; ".join(part for part in parts if part)
