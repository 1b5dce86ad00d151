"""What keeps a project from being made, built or tried; each says what to do.

PortsideError (tool_registry.errors)
└── ProjectError           the author of a tool has something to repair
    ├── BadProject         the directory, its name or one of its files is not as it has to be
    ├── ToolchainMissing   a program that builds is not here; the message names the command that installs it
    ├── BuildFailed        the recipe failed; `output` is what it wrote
    └── UnfitTool          what was built can't be a tool
"""

from __future__ import annotations

from tool_registry.errors import PortsideError


class ProjectError(PortsideError):
    """The author of a tool has something to repair."""

    code = "tool_project"


class BadProject(ProjectError):
    """The directory, its name or one of its files is not as it has to be."""


class ToolchainMissing(ProjectError):
    """A program that builds is not here.

    Attributes:
        command: installs it.
    """

    def __init__(self, message: str, command: str) -> None:
        super().__init__(message)
        self.command = command


class BuildFailed(ProjectError):
    """The recipe failed.

    Attributes:
        output: the end of what it wrote.
    """

    def __init__(self, message: str, output: str) -> None:
        super().__init__(message)
        self.output = output


class UnfitTool(ProjectError):
    """What was built can't be a tool."""
