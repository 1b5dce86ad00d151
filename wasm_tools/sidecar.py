"""`<name>.capabilities.json`: what the owner of the installation says about a component beside it."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from wasm_tools.limits import Limits

_MAX_BYTES = 512 * 1024
_NOT_YET = ("http", "secrets", "workspace", "tools")


class BadSidecar(Exception):
    """The file can't be followed; the message says why."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class SidecarLimits(_Strict):
    """Lower bounds than the default ones; absent fields stay."""

    timeout_s: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    memory_bytes: int | None = Field(default=None, gt=0)
    memories: int | None = Field(default=None, gt=0)
    tables: int | None = Field(default=None, gt=0)
    table_elements: int | None = Field(default=None, gt=0)
    instances: int | None = Field(default=None, gt=0)
    result_bytes: int | None = Field(default=None, gt=0)
    log_lines: int | None = Field(default=None, ge=0)


class Sidecar(_Strict):
    """The file's content. `description` and `parameters` (the key `schema`) win over the guest's."""

    version: Literal[1]
    description: str | None = None
    parameters: Any = Field(default=None, alias="schema")
    limits: SidecarLimits = SidecarLimits()
    approval: Literal["never", "always"] = "never"
    coerce: Literal["never", "safe"] = "never"
    read_only: bool = False
    idempotent: bool = False

    @property
    def overrides_schema(self) -> bool:
        """Whether the file gives a schema at all, be it null."""
        return "parameters" in self.model_fields_set

    def lowered(self, ceiling: Limits) -> Limits:
        """The limits of the tool's calls.

        Raises:
            BadSidecar: a limit is above the ceiling.
        """
        wanted = self.limits.model_dump(exclude_none=True)
        allowed = asdict(ceiling)
        for name, value in wanted.items():
            if value > allowed[name]:
                raise BadSidecar(
                    f"limits.{name} is {value:g}; a sidecar can only lower it from {allowed[name]:g}"
                )
        return replace(ceiling, **wanted)


def sidecar_path(component: Path) -> Path:
    """Where the sidecar of a component lies."""
    return component.with_name(f"{component.stem}.capabilities.json")


def read_sidecar(path: Path) -> Sidecar:
    """Read it strictly; an absent file grants and changes nothing.

    Raises:
        BadSidecar: not JSON, an unknown or repeated key, a wrong type, a capability we can't grant.
    """
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_BYTES + 1)
    except FileNotFoundError:
        return Sidecar(version=1)
    except OSError as error:
        raise BadSidecar(f"it can't be read: {error.strerror}") from error
    if len(data) > _MAX_BYTES:
        raise BadSidecar(f"it is over {_MAX_BYTES // 1024} KiB")
    try:
        content = json.loads(data, object_pairs_hook=_unique, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise BadSidecar(f"it is not JSON: {error}") from error
    if isinstance(content, dict):
        for name in _NOT_YET:
            if name in content:
                raise BadSidecar(f"'{name}' is a capability that this version does not grant yet; remove it")
    try:
        return Sidecar.model_validate(content)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "the file"
        raise BadSidecar(f"{where}: {first['msg']}") from error


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {key!r} stands twice")
        found[key] = value
    return found


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON number")
