"""The `apply_patch` tool."""

from __future__ import annotations

from typing import Any

from tool_registry.context import ToolContext
from tool_registry.definition import ToolDefinition
from tool_registry.output import ToolOutput
from worker.tools.local_traits import local_traits
from worker.tools.patch_commit import commit
from worker.tools.patch_format import BEGIN, parse_patch
from worker.tools.patch_model import FileEdit
from worker.tools.patch_plan import PatchPlan
from worker.tools.patch_text import patch_lines
from worker.tools.refusal import Refused, answer
from worker.tools.unified_format import looks_unified, parse_unified
from worker.tools.workspace_paths import Workspace

MAX_PATCH_CHARACTERS = 8 * 1024 * 1024

DEFINITION = ToolDefinition.of(
    "apply_patch",
    """Change, add, delete or move text files, all or nothing. The patch is either a unified or git diff, or:

*** Begin Patch
*** Update File: path/file.py
*** Move to: path/new_name.py
@@ def function_it_is_in():
 context line
-old line
+new line
*** Add File: path/new.py
+every line begins with a plus
*** Delete File: path/old.py
*** End Patch

Move to and the text after @@ are optional. Give about three lines of context, copied from the file: \
the old lines must be found in exactly one place. "*** End of File" after a hunk ties it to the end of the \
file. Line endings, encoding and modes stay.""",
    {
        "type": "object",
        "properties": {
            "patch": {
                "type": "string",
                "minLength": 1,
                "maxLength": MAX_PATCH_CHARACTERS,
                "description": "The whole patch. Paths are relative to the workspace.",
            }
        },
        "required": ["patch"],
        "additionalProperties": False,
    },
)


class ApplyPatch:
    """Applies patches in both formats."""

    definition = DEFINITION
    traits = local_traits("apply_patch", destructive=True)

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    async def execute(self, params: dict[str, Any], context: ToolContext) -> ToolOutput:
        """Apply a patch.

        The answer is `{files: [{path, action, from?, lines_added, lines_removed, matched?}]}`, action one of
        added, updated, deleted, moved, copied; `matched` says which tolerance the place took. On refusal no
        file differs.
        """
        return await answer(lambda: self.apply(params["patch"]))

    def apply(self, patch: str) -> ToolOutput:
        """Apply a patch in this thread.

        Raises:
            Refused: it does not fit; nothing was changed.
        """
        plan = PatchPlan(self._workspace)
        for edit in _parsed(patch):
            plan.take(edit)
        commit(list(plan.files.values()))
        return ToolOutput({"files": plan.report})


def _parsed(patch: str) -> list[FileEdit]:
    lines = patch_lines(patch)
    if any(line.rstrip() == BEGIN for line in lines):
        return parse_patch(lines)
    if looks_unified(lines):
        return parse_unified(lines)
    raise Refused(
        "bad_patch", f"This is no patch: begin with '{BEGIN}', or send a unified diff with '---' and '+++'."
    )
