"""A small MCP server: the notes of a project, to be searched, read and added to by agents.

    python examples/mcp-notes/server.py                    # over stdin and stdout
    python examples/mcp-notes/server.py --http 8765        # streamable HTTP at http://127.0.0.1:8765/mcp
    python examples/mcp-notes/server.py --file notes.json  # keeps the notes in a file

It uses the SDK's low-level server, which sends the schemas below exactly as they stand.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from pathlib import Path
from typing import Any

import jsonschema
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

STARTING_NOTES = [
    {
        "title": "How we name tests",
        "kind": "decision",
        "body": "A test's name is a sentence about the outcome: test_a_late_reply_is_kept.",
        "tags": ["style", "tests"],
    },
    {
        "title": "Errors name the fix",
        "kind": "decision",
        "body": "An error message says what is wrong and what to do about it, in one or two sentences.",
        "tags": ["style", "errors"],
    },
]

NOTE = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "title": {"type": "string"},
        "kind": {"type": "string"},
        "body": {"type": "string"},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["id", "title", "kind", "body", "tags"],
}

TOOLS = [
    types.Tool(
        name="search",
        description="Find notes whose title, body or tags hold all of the given words.",
        input_schema={
            "type": "object",
            "properties": {
                "query": {"type": "string", "minLength": 1, "description": "Words, in any order."},
                "kind": {"$ref": "#/$defs/kind"},
            },
            "required": ["query"],
            "additionalProperties": False,
            "$defs": {"kind": {"enum": ["decision", "question", "risk", "todo"]}},
        },
        output_schema={
            "type": "object",
            "properties": {"notes": {"type": "array", "items": NOTE}},
            "required": ["notes"],
        },
        annotations=types.ToolAnnotations(read_only_hint=True),
    ),
    types.Tool(
        name="read",
        description="Read one note in full.",
        input_schema={
            "type": "object",
            "properties": {"id": {"type": "integer", "minimum": 1}},
            "required": ["id"],
            "additionalProperties": False,
        },
        output_schema=NOTE,
        annotations=types.ToolAnnotations(read_only_hint=True),
    ),
    types.Tool(
        name="add",
        description="Write down a decision, question, risk or todo, so that the next agent finds it.",
        input_schema={
            "type": "object",
            "properties": {
                "title": {"type": "string", "minLength": 3, "maxLength": 80},
                "kind": {"enum": ["decision", "question", "risk", "todo"]},
                "body": {"type": "string", "minLength": 1, "maxLength": 4000},
                "tags": {
                    "type": "array",
                    "items": {"type": "string", "pattern": "^[a-z0-9-]{1,20}$"},
                    "maxItems": 5,
                    "uniqueItems": True,
                },
            },
            "required": ["title", "kind", "body"],
            "additionalProperties": False,
        },
        output_schema=NOTE,
        annotations=types.ToolAnnotations(
            read_only_hint=False, destructive_hint=False, idempotent_hint=False
        ),
    ),
]


class Notes:
    """The notes, in memory and, where a file is given, on disk."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        kept = json.loads(path.read_text()) if path is not None and path.exists() else STARTING_NOTES
        self._notes = [{"id": number, **note} for number, note in enumerate(kept, start=1)]

    def search(self, query: str, kind: str | None = None) -> dict[str, Any]:
        words = query.lower().split()
        found = [note for note in self._notes if kind in {None, note["kind"]} and _holds(note, words)]
        return {"notes": found}

    def read(self, id: int) -> dict[str, Any]:
        if id > len(self._notes):
            raise LookupError(f"there is no note {id}; the last one is {len(self._notes)}")
        return self._notes[id - 1]

    def add(self, title: str, kind: str, body: str, tags: list[str] | None = None) -> dict[str, Any]:
        note = {"title": title, "kind": kind, "body": body, "tags": tags or []}
        self._notes.append({"id": len(self._notes) + 1, **note})
        if self._path is not None:
            kept = [{key: value for key, value in each.items() if key != "id"} for each in self._notes]
            self._path.write_text(json.dumps(kept, indent=2) + "\n")
        return self._notes[-1]


def _holds(note: dict[str, Any], words: list[str]) -> bool:
    text = " ".join([note["title"], note["body"], *note["tags"]]).lower()
    return all(word in text for word in words)


def build_server(notes: Notes) -> Server[Any]:
    """The MCP server over these notes."""
    schemas = {tool.name: tool.input_schema for tool in TOOLS}
    actions = {"search": notes.search, "read": notes.read, "add": notes.add}

    async def list_tools(_context: Any, _params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=TOOLS)

    async def call_tool(_context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        if params.name not in actions:
            return _failed(f"there is no tool {params.name!r}")
        arguments = params.arguments or {}
        try:
            jsonschema.validate(arguments, schemas[params.name])
            answer = actions[params.name](**arguments)
        except jsonschema.ValidationError as error:
            return _failed(f"{error.json_path}: {error.message}")
        except LookupError as error:
            return _failed(str(error))
        text = types.TextContent(type="text", text=json.dumps(answer, ensure_ascii=False))
        return types.CallToolResult(content=[text], structured_content=answer)

    return Server(
        "notes",
        version="1.0.0",
        instructions="Search the notes before you decide something; add what the next agent should know.",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def _failed(reason: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=reason)], is_error=True)


async def serve_stdio(server: Server[Any]) -> None:
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def main() -> None:
    parser = argparse.ArgumentParser(description="The notes of a project as an MCP server.")
    parser.add_argument("--http", type=int, metavar="PORT", help="serve streamable HTTP on this local port")
    parser.add_argument("--file", type=Path, help="keep the notes in this JSON file")
    options = parser.parse_args()
    server = build_server(Notes(options.file))
    if options.http is None:
        asyncio.run(serve_stdio(server))
    else:
        import uvicorn  # only this way of serving needs it, and it takes a while to load

        uvicorn.run(server.streamable_http_app(), host="127.0.0.1", port=options.http, log_level="warning")


if __name__ == "__main__":
    main()
