"""The `write_file` tool."""

from __future__ import annotations

from typing import Any

from tool_registry.context import ToolContext
from tool_registry.definition import ToolDefinition
from tool_registry.output import ToolOutput
from worker.tools.atomic_write import write_atomically
from worker.tools.local_traits import local_traits, path_property
from worker.tools.refusal import Refused, answer
from worker.tools.workspace_paths import Workspace, existing_file

MAX_CONTENT_BYTES = 16 * 1024 * 1024

DEFINITION = ToolDefinition.of(
    "write_file",
    "Write a whole text file (UTF-8), exactly as given. Missing directories are made. The file is replaced "
    "in one step, so it is never half written; its mode stays. To change parts of a file use apply_patch.",
    {
        "type": "object",
        "properties": {
            "path": path_property("The file, relative to the workspace."),
            "content": {
                "type": "string",
                "maxLength": MAX_CONTENT_BYTES,
                "description": "The whole new content, at most 16 MiB. End it with a newline.",
            },
            "mode": {
                "type": "string",
                "enum": ["create", "overwrite"],
                "default": "overwrite",
                "description": "create refuses to replace an existing file.",
            },
        },
        "required": ["path", "content"],
        "additionalProperties": False,
    },
)


class WriteFile:
    """Writes one file atomically."""

    definition = DEFINITION
    traits = local_traits("write_file", idempotent=True, destructive=True)

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    async def execute(self, params: dict[str, Any], context: ToolContext) -> ToolOutput:
        """Write the file; the answer is `{path, bytes, action}`, action `created` or `replaced`."""
        create_only = params.get("mode", "overwrite") == "create"
        return await answer(lambda: self._write(params["path"], params["content"], create_only=create_only))

    def _write(self, text_path: str, content: str, *, create_only: bool) -> ToolOutput:
        path = self._workspace.resolve(text_path)
        if text_path.endswith("/") or path.real == self._workspace.root:
            raise Refused("is_a_directory", f"{path.shown} names a directory; give a file's path.")
        data = _encoded(content)
        before = existing_file(path)
        if create_only and before is not None:
            raise _exists(path.shown)
        try:
            write_atomically(path, data, keep=before, create=before is None)
        except FileExistsError as error:
            raise _exists(path.shown) from error
        except OSError as error:
            raise Refused.by_system(error, path.shown) from error
        action = "replaced" if before else "created"
        return ToolOutput({"path": path.shown, "bytes": len(data), "action": action})


def _encoded(content: str) -> bytes:
    try:
        data = content.encode()
    except UnicodeEncodeError as error:
        raise Refused(
            "bad_content",
            f"The content holds broken Unicode (a lone surrogate) at character {error.start + 1}.",
        ) from error
    if len(data) > MAX_CONTENT_BYTES:
        raise Refused(
            "too_large", f"The content has {len(data)} bytes; at most {MAX_CONTENT_BYTES} are written."
        )
    return data


def _exists(shown: str) -> Refused:
    return Refused(
        "already_exists",
        f"{shown} exists already. Use mode overwrite to replace it, or apply_patch.",
        path=shown,
    )
