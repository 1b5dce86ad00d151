"""A project's directory: `tool.json` says what it is, and its recipe makes one component of its sources."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from tool_registry.names import may_hold, protected_for
from tool_registry.tool import ToolSource
from wasm_tools.file_faults import first_fault
from wasm_tools.projects.errors import BadProject
from wasm_tools.sidecar import sidecar_path

Language = Literal["python", "javascript", "rust", "c"]
LANGUAGES: tuple[Language, ...] = ("python", "javascript", "rust", "c")

FILE = "tool.json"
RECIPE = "build.sh"
CASES = "cases.json"
_OUTPUTS = frozenset({"build", "node_modules", "__pycache__"})
_NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9_-]{0,63}")


class ProjectFile(BaseModel):
    """The content of `tool.json`."""

    model_config = ConfigDict(extra="forbid", strict=True)

    version: Literal[1]
    name: str
    language: Language


@dataclass(frozen=True, slots=True)
class Project:
    """A project.

    Attributes:
        directory: absolute.
        name: of the component, and of its tool or the beginning of its tools' names.
    """

    directory: Path
    name: str
    language: Language

    @property
    def component(self) -> Path:
        """What a build that went well leaves, beside its sidecar."""
        return self.directory / f"{self.name}.wasm"

    @property
    def sidecar(self) -> Path:
        """The capabilities file; it may be absent."""
        return sidecar_path(self.component)

    @property
    def workbench(self) -> Path:
        """Where builds put what nobody needs to see."""
        return self.directory / "build"

    @property
    def recipe(self) -> Path:
        """The script that builds."""
        return self.directory / RECIPE

    def digest(self) -> str:
        """Of everything that a build may read.

        Raises:
            BadProject: a file can't be read.
        """
        found = hashlib.sha256()
        for path in sorted(self._sources(self.directory)):
            try:
                data = path.read_bytes()
            except OSError as error:
                raise BadProject(f"{path} can't be read: {error.strerror}") from None
            found.update(f"{path.relative_to(self.directory)}\0{len(data)}\0".encode("utf-8", "replace"))
            found.update(data)
        return found.hexdigest()

    def is_built(self) -> bool:
        """Whether the component is there and made of the sources as they are now.

        Raises:
            BadProject: a file can't be read.
        """
        stamp = self.workbench / "sources.sha256"
        if not (self.component.is_file() and stamp.is_file()):
            return False
        return stamp.read_text(encoding="utf-8").strip() == self.digest()

    def stamp(self, digest: str) -> None:
        """Note what the component was made of."""
        (self.workbench / "sources.sha256").write_text(f"{digest}\n", encoding="utf-8")

    def _sources(self, folder: Path) -> Iterator[Path]:
        for path in folder.iterdir():
            if path.name.startswith(".") or path.name in _OUTPUTS:
                continue
            if path.is_dir():
                if not path.is_symlink():  # it may lead back here
                    yield from self._sources(path)
            elif path not in {self.component, self.sidecar} and not _is_prose(path):
                yield path


def read_project(directory: Path) -> Project:
    """The project in a directory.

    Raises:
        BadProject: there is none, or its file can't be followed.
    """
    file = directory / FILE
    try:
        content = ProjectFile.model_validate_json(file.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        raise BadProject(
            f"{directory} is no tool's project: it has no {FILE}; make one with: portside tools new NAME"
        ) from None
    except OSError as error:
        raise BadProject(f"{file} can't be read: {error.strerror}") from None
    except ValidationError as error:
        raise BadProject(f"{file}: {first_fault(error, ProjectFile)}") from None
    check_name(content.name)
    return Project(directory.resolve(), content.name, content.language)


def check_name(name: str) -> None:
    """Refuse a name that no WASM tool can have.

    Raises:
        BadProject: the message says which names can be had.
    """
    if not _NAME.fullmatch(name):
        raise BadProject(
            f"{name[:80]!r} can't be a tool's name; use a letter, then letters, digits, _ and -, 64 at most"
        )
    if not may_hold(name, ToolSource.WASM):
        raise BadProject(f"{name} is reserved for {protected_for(name)} tools; choose another name")


def _is_prose(path: Path) -> bool:
    return path.suffix == ".md" or path.name == CASES
