"""The cheapest MCP server there is, over stdio; what a call costs beyond it is its client's."""

from __future__ import annotations

import json
import sys
from typing import Any

SCHEMA = {
    "type": "object",
    "properties": {"text": {"type": "string", "minLength": 1, "maxLength": 200}},
    "required": ["text"],
    "additionalProperties": False,
}
TOOL = {"name": "echo", "description": "Answers its argument.", "inputSchema": SCHEMA}


def answer(message: dict[str, Any]) -> dict[str, Any] | None:
    """The result for a request; None for a notice."""
    match message.get("method"):
        case "initialize":
            return {
                "protocolVersion": message["params"]["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "echo", "version": "1"},
            }
        case "tools/list":
            return {"tools": [{**TOOL, "annotations": {"readOnlyHint": True}}]}
        case "tools/call":
            return {"content": [{"type": "text", "text": message["params"]["arguments"]["text"]}]}
        case _:
            return None


def main() -> None:
    out = sys.stdout.buffer
    for line in sys.stdin.buffer:
        message = json.loads(line)
        result = answer(message)
        if result is not None:
            out.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode() + b"\n")
            out.flush()


if __name__ == "__main__":
    main()
