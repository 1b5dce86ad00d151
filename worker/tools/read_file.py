"""The `read_file` tool."""

from __future__ import annotations

import os
from typing import Any

from tool_registry.context import ToolContext
from tool_registry.definition import ToolDefinition
from tool_registry.output import ToolOutput
from worker.tools.line_reader import MAX_LINE_CHARACTERS, LineScanner, Window
from worker.tools.local_traits import local_traits, path_property
from worker.tools.refusal import Refused, answer
from worker.tools.text_encoding import TextEncoding, binary_type
from worker.tools.workspace_paths import Workspace

DEFAULT_LINES = 2000
BUDGET_BYTES = 48 * 1024
MAX_SCANNED_BYTES = 4 * 1024 * 1024 * 1024
_HEAD_BYTES = 8192

DEFINITION = ToolDefinition.of(
    "read_file",
    "Read a text file. Each line comes as its number, a tab and its text. At most 48 KiB at once: go on at "
    "next_offset. A line over 2,000 characters is cut; read the rest of it with offset and column_offset. "
    "Paths are relative to the workspace; the output files that shell names can be read too.",
    {
        "type": "object",
        "properties": {
            "path": path_property("The file."),
            "offset": {
                "type": "integer",
                "minimum": 1,
                "default": 1,
                "description": "First line; 1 is the first of the file.",
            },
            "limit": {
                "type": "integer",
                "minimum": 1,
                "maximum": 100_000,
                "default": DEFAULT_LINES,
                "description": "How many lines.",
            },
            "column_offset": {
                "type": "integer",
                "minimum": 1,
                "description": "Read this one line only, from this character (1-based), as much as fits.",
            },
        },
        "required": ["path"],
        "additionalProperties": False,
    },
)


class ReadFile:
    """Reads windows of text files."""

    definition = DEFINITION
    traits = local_traits("read_file", read_only=True, idempotent=True)

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    async def execute(self, params: dict[str, Any], context: ToolContext) -> ToolOutput:
        """Read lines.

        The answer is `{path, content, total_lines, size_bytes, encoding}` with, where they apply,
        `next_offset`, `cut_lines: [{line, characters, next_column_offset}]`, `line_endings` and `note`.
        """
        return await answer(lambda: self._read(params))

    def _read(self, params: dict[str, Any]) -> ToolOutput:
        path = self._workspace.resolve_readable(params["path"])
        offset, column = int(params.get("offset", 1)), params.get("column_offset")
        scanner = LineScanner(
            first=offset,
            limit=int(params.get("limit", DEFAULT_LINES)) if column is None else 1,
            column=int(column or 1),
            line_characters=MAX_LINE_CHARACTERS if column is None else BUDGET_BYTES,
            budget_bytes=BUDGET_BYTES,
        )
        with self._workspace.open_file(path) as stream:
            size = os.fstat(stream.fileno()).st_size
            if size > MAX_SCANNED_BYTES:
                raise Refused("too_large", f"{path.shown} has {size} bytes; read parts of it with shell.")
            try:
                head = os.pread(stream.fileno(), _HEAD_BYTES, 0)
                kind = binary_type(head)
                if kind is not None:
                    raise Refused(
                        "binary_file",
                        f"{path.shown} is no text ({kind}, {size} bytes). Look at it with shell.",
                        path=path.shown,
                        size_bytes=size,
                        type=kind,
                    )
                encoding = TextEncoding.of_head(head)
                stream.seek(len(encoding.mark))
                window = scanner.scan(stream, encoding)
            except OSError as error:
                raise Refused.by_system(error, path.shown) from error
        return ToolOutput(_answer(path.shown, size, encoding, window, offset))


def _answer(shown: str, size: int, encoding: TextEncoding, window: Window, offset: int) -> dict[str, Any]:
    result: dict[str, Any] = {
        "path": shown,
        "content": "".join(f"{line.number}\t{line.text}\n" for line in window.lines),
        "total_lines": window.total_lines,
        "size_bytes": size,
        "encoding": _encoding_name(encoding, window),
    }
    if window.next_line is not None:
        result["next_offset"] = window.next_line
    cut = [
        {"line": line.number, "characters": line.characters, "next_column_offset": line.next_column}
        for line in window.lines
        if line.next_column is not None
    ]
    if cut:
        result["cut_lines"] = cut
    if window.crlf or window.separator == "\r":
        result["line_endings"] = "crlf" if window.crlf else "cr"
    if not window.total_lines:
        result["note"] = "The file is empty."
    elif not window.lines:
        result["note"] = f"Line {offset} is past the end: the file has {window.total_lines} lines."
    return result


def _encoding_name(encoding: TextEncoding, window: Window) -> str:
    name = f"{encoding.codec} with byte-order mark" if encoding.mark else encoding.codec
    if window.invalid:
        return f"not valid {encoding.codec}, perhaps latin-1; such bytes are shown as \\xNN"
    return name
