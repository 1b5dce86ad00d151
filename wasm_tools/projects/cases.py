"""What a tool has to answer, as data: `cases.json`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Self

from pydantic import (
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from wasm_tools.file_faults import first_fault
from wasm_tools.projects.errors import BadProject

_EXPECTATIONS = ("output", "output_json", "output_contains", "error")


class Case(BaseModel):
    """One call, and what comes of it.

    Attributes:
        name: says what it is about.
        tool: which of a component's tools; its only one when empty.
        now: what the host's clock says; the real time when absent.
        workspace: files that the job began with, by path; the sidecar grants which are seen.
        secrets: values by name, likewise.
        output: the whole output.
        output_json: the output as JSON.
        output_contains: a part of the output.
        error: a part of the tool's own error, or of the reason why the call was refused or ended.
    """

    model_config = ConfigDict(extra="forbid")

    name: str = ""
    tool: str = ""
    params: dict[str, Any]
    now: AwareDatetime | None = None
    workspace: dict[str, str] = Field(default_factory=dict[str, str])
    secrets: dict[str, str] = Field(default_factory=dict[str, str])
    output: str | None = None
    output_json: Any = None
    output_contains: str | None = None
    error: str | None = None

    @model_validator(mode="after")
    def _expects_one_thing(self) -> Self:
        if len(self.model_fields_set & set(_EXPECTATIONS)) != 1:
            raise ValueError(f"a case expects exactly one of {', '.join(_EXPECTATIONS)}")
        return self

    @property
    def expectation(self) -> str:
        """The one field that says what is expected."""
        return next(name for name in _EXPECTATIONS if name in self.model_fields_set)


_CASES = TypeAdapter(list[Case])


def read_cases(path: Path) -> list[Case]:
    """The cases of a file.

    Raises:
        BadProject: it can't be followed, or has none.
    """
    try:
        # Python's own parser takes half of a surrogate pair too, as models write it.
        cases = _CASES.validate_python(json.loads(path.read_bytes()))
    except OSError as error:
        raise BadProject(f"{path} can't be read: {error.strerror}") from None
    except ValidationError as error:
        raise BadProject(f"{path}: {first_fault(error, Case)}") from None
    except (ValueError, RecursionError) as error:
        raise BadProject(f"{path} is not JSON: {error}") from None
    if not cases:
        raise BadProject(f"{path} has no case; write one: its params, and the output or error that they give")
    return cases
