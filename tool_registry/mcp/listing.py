"""The tools a server lists, read page by page under bounds and checked one by one."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, cast

from tool_registry.definition import schema_text
from tool_registry.mcp.session import Session, next_cursor, tools_of

MAX_PAGES = 50
MAX_TOOLS = 1_024
MAX_DESCRIPTION_CHARS = 8_192
MAX_OUTPUT_SCHEMA_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class Hints:
    """A tool's annotations, where they are booleans. They are claims, not facts."""

    read_only: bool | None = None
    destructive: bool | None = None
    idempotent: bool | None = None


@dataclass(frozen=True, slots=True)
class ServerTool:
    """A tool as its server describes it.

    Attributes:
        name: the server's own name; calls use it.
        input_schema: as given, serialised once.
        output_schema: as given; None when the server promises nothing.
    """

    name: str
    description: str
    input_schema: str
    output_schema: str | None
    hints: Hints


@dataclass(frozen=True, slots=True)
class Listing:
    """All usable tools of a server, in its order, and why others are not among them."""

    tools: tuple[ServerTool, ...]
    problems: tuple[str, ...]


class NotATool(Exception):
    """An entry of the list can't be used; the text says why."""


async def read_listing(session: Session) -> Listing:
    """Walk `tools/list`.

    The walk ends at the first absent, empty or repeated cursor, after 50 pages or 1,024 tools. Of two tools
    with one name the first is kept. An entry that is no tool costs only itself.

    Raises:
        MCPError: the server refused, or is gone.
    """
    tools: dict[str, ServerTool] = {}
    problems: list[str] = []
    seen: set[str] = set()
    cursor: str | None = None
    for _ in range(MAX_PAGES):
        page = await session.tool_page(cursor)
        for raw in tools_of(page):
            _take(raw, tools, problems, session)
        cursor = next_cursor(page)
        if cursor is None:
            break
        if len(tools) >= MAX_TOOLS:
            break
        if cursor in seen:
            problems.append("the server repeats a page cursor of its tool list; reading stopped there")
            break
        seen.add(cursor)
    else:
        problems.append(f"the list goes on after {MAX_PAGES} pages; the rest was not read")
    if (cursor is not None and len(tools) >= MAX_TOOLS) or len(tools) > MAX_TOOLS:
        problems.insert(0, f"the server lists more than {MAX_TOOLS:,} tools; the rest is left out")
    return Listing(tuple(tools.values())[:MAX_TOOLS], tuple(problems[:100]))


def _take(raw: Any, tools: dict[str, ServerTool], problems: list[str], session: Session) -> None:
    try:
        tool = parse_tool(raw)
        if tool.name in tools:
            if tools[tool.name] != tool:
                raise NotATool(f"{tool.name!r} is listed twice; the first one is kept")
            return
        problem = session.learn_headers(tool.name, json.loads(tool.input_schema))
        if problem is not None:
            raise NotATool(f"{tool.name!r} has an unusable x-mcp-header: {problem[:200]}")
    except NotATool as error:
        problems.append(str(error))
        return
    tools[tool.name] = tool


def parse_tool(raw: Any) -> ServerTool:
    """One entry of a tool list.

    Raises:
        NotATool: it has no name, or no schema that is an object.
    """
    if not isinstance(raw, dict):
        raise NotATool(f"an entry of the tool list is {type(raw).__name__}, not an object")
    entry = cast("dict[str, Any]", raw)
    name = entry.get("name")
    if not isinstance(name, str) or not name.strip():
        raise NotATool("a tool without a name is left out")
    schema = entry.get("inputSchema")
    if not isinstance(schema, dict):
        raise NotATool(f"{name[:200]!r} has no inputSchema that is an object; the server must give one")
    try:
        text = schema_text(cast("dict[str, Any]", schema))
        output = entry.get("outputSchema")
        promised = schema_text(cast("dict[str, Any]", output)) if isinstance(output, dict) else None
    except (ValueError, RecursionError) as error:
        raise NotATool(f"{name[:200]!r} has a schema that is not JSON: {error}") from None
    return ServerTool(name, _description(entry), text, promised, _hints(entry.get("annotations")))


def _description(entry: dict[str, Any]) -> str:
    """The description; the title stands in for a missing one, since a model needs some text."""
    annotations = entry.get("annotations")
    title = cast("dict[str, Any]", annotations).get("title") if isinstance(annotations, dict) else None
    for text in (entry.get("description"), entry.get("title"), title):
        if isinstance(text, str) and text.strip():
            if len(text) <= MAX_DESCRIPTION_CHARS:
                return text
            return text[:MAX_DESCRIPTION_CHARS] + f" [cut: {len(text):,} characters in all]"
    return ""


def _hints(annotations: Any) -> Hints:
    given = cast("dict[str, Any]", annotations) if isinstance(annotations, dict) else {}

    def flag(name: str) -> bool | None:
        value = given.get(name)
        return value if isinstance(value, bool) else None

    return Hints(flag("readOnlyHint"), flag("destructiveHint"), flag("idempotentHint"))
