"""The `list_dir` tool."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tool_registry.context import ToolContext
from tool_registry.definition import ToolDefinition
from tool_registry.output import ToolOutput
from worker.tools.file_kind import FileKind
from worker.tools.ignore_rules import IgnoreRules
from worker.tools.local_traits import local_traits, path_property
from worker.tools.refusal import Refused, answer
from worker.tools.workspace_paths import Workspace, existing, printable_name

DEFAULT_DEPTH = 2
MAX_DEPTH = 8
DEFAULT_LIMIT = 500
MAX_LIMIT = 5000

DEFINITION = ToolDefinition.of(
    "list_dir",
    "List a directory as a tree, one level after the other, directories first. Every entry has path (as seen "
    "from the workspace; give it to the other tools as it is), type and size in bytes. Links are shown, not "
    "followed. What .gitignore names, and .git, is left out unless include_ignored is true. truncated says "
    "whether there is more than was listed.",
    {
        "type": "object",
        "properties": {
            "path": path_property("The directory, relative to the workspace.", default="."),
            "depth": {
                "type": "integer",
                "minimum": 1,
                "maximum": MAX_DEPTH,
                "default": DEFAULT_DEPTH,
                "description": "How many levels; 1 is the directory alone.",
            },
            "limit": {
                "type": "integer",
                "minimum": 1,
                "maximum": MAX_LIMIT,
                "default": DEFAULT_LIMIT,
                "description": "How many entries at most.",
            },
            "include_ignored": {
                "type": "boolean",
                "default": False,
                "description": "List ignored entries too.",
            },
        },
        "additionalProperties": False,
    },
)


class ListDir:
    """Lists directories, bounded in depth, entries and time."""

    definition = DEFINITION
    traits = local_traits("list_dir", read_only=True, idempotent=True)

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    async def execute(self, params: dict[str, Any], context: ToolContext) -> ToolOutput:
        """List a directory.

        The answer is `{path, entries: [{path, type, size?, target?, unreadable?}], total, ignored, truncated,
        note?}`; `total` counts the entries of all directories that were looked at.
        """
        return await answer(lambda: self._list(params))

    def _list(self, params: dict[str, Any]) -> ToolOutput:
        path = self._workspace.resolve(params.get("path", "."))
        found = existing(path)
        if found is None:
            raise Refused("not_found", f"{path.shown} does not exist.", path=path.shown)
        kind = FileKind.of_mode(found.st_mode)
        if kind is not FileKind.DIRECTORY:
            raise Refused("not_a_directory", f"{path.shown} is a {kind}, not a directory.", path=path.shown)
        rules = None if params.get("include_ignored", False) else self._rules(path.real)
        limit = int(params.get("limit", DEFAULT_LIMIT))
        listing = _Listing(self._workspace, limit, int(params.get("depth", DEFAULT_DEPTH)))
        try:
            listing.read(path.real, rules, 1)
        except OSError as error:
            raise Refused.by_system(error, path.shown) from error
        listing.descend()
        return ToolOutput({"path": path.shown, **listing.as_json()})

    def _rules(self, directory: Path) -> IgnoreRules | None:
        """The rules for a directory; none inside an ignored one, since it was asked for by name."""
        rules = IgnoreRules.of(self._workspace.root, None)
        for part in directory.relative_to(self._workspace.root).parts:
            if rules.ignores(part, is_directory=True):
                return None
            rules = IgnoreRules.of(rules.directory / part, rules)
        return rules


@dataclass(slots=True)
class _Listing:
    workspace: Workspace
    limit: int
    depth: int
    entries: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    total: int = 0
    ignored: int = 0
    unvisited: bool = False
    _queue: deque[tuple[dict[str, Any], Path, IgnoreRules | None, int]] = field(
        default_factory=deque[tuple[dict[str, Any], Path, IgnoreRules | None, int]]
    )

    def descend(self) -> None:
        while self._queue:
            if len(self.entries) >= self.limit:
                self.unvisited = True
                return
            entry, directory, rules, level = self._queue.popleft()
            try:
                self.read(directory, rules and IgnoreRules.of(directory, rules), level)
            except OSError as error:
                entry["unreadable"] = error.strerror

    def read(self, directory: Path, rules: IgnoreRules | None, level: int) -> None:
        with os.scandir(directory) as scan:
            waiting = iter(sorted(scan, key=_order))
        for found in self._kept(waiting, rules):
            self.total += 1
            if len(self.entries) == self.limit:
                # What comes after the last place is counted, not looked at: matching rules takes time.
                self.total += sum(1 for _ in waiting)
                return
            entry = self._entry(found)
            self.entries.append(entry)
            if level < self.depth and entry["type"] == FileKind.DIRECTORY:
                self._queue.append((entry, Path(found.path), rules, level + 1))

    def as_json(self) -> dict[str, Any]:
        truncated = self.unvisited or len(self.entries) < self.total
        result: dict[str, Any] = {
            "entries": self.entries,
            "total": self.total,
            "ignored": self.ignored,
            "truncated": truncated,
        }
        if truncated:
            more = "at least " if self.unvisited else ""
            result["note"] = (
                f"{more}{self.total} entries, showing the first {len(self.entries)}. List a directory below, "
                f"raise limit (at most {MAX_LIMIT}), or filter with shell."
            )
        return result

    def _kept(
        self, waiting: Iterator[os.DirEntry[str]], rules: IgnoreRules | None
    ) -> Iterator[os.DirEntry[str]]:
        for found in waiting:
            if rules is not None and rules.ignores(
                found.name, is_directory=found.is_dir(follow_symlinks=False)
            ):
                self.ignored += 1
            else:
                yield found

    def _entry(self, found: os.DirEntry[str]) -> dict[str, Any]:
        entry: dict[str, Any] = {"path": self.workspace.show(Path(found.path))}
        try:
            state = found.stat(follow_symlinks=False)
            kind = FileKind.of_mode(state.st_mode)
            entry["type"] = kind
            if kind is FileKind.FILE:
                entry["size"] = state.st_size
            elif kind is FileKind.LINK:
                entry["target"] = printable_name(str(Path(found.path).readlink()))
        except OSError as error:
            entry |= {"type": "unknown", "unreadable": error.strerror}
        return entry


def _order(entry: os.DirEntry[str]) -> tuple[bool, bytes]:
    return not entry.is_dir(follow_symlinks=False), os.fsencode(entry.name)
