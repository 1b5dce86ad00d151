"""`<name>.capabilities.json`: what the owner of the installation says about a component beside it."""

from __future__ import annotations

import stat
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from tool_registry.arguments import strict_json
from wasm_tools.file_faults import first_fault
from wasm_tools.grants import Grants, HttpRate, Strict
from wasm_tools.limits import Limits

_MAX_BYTES = 512 * 1024


class BadSidecar(Exception):
    """The file can't be followed; the message says why."""


class SidecarLimits(Strict):
    """Lower bounds than the default ones; absent fields stay."""

    timeout_s: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    memory_bytes: int | None = Field(default=None, gt=0)
    memories: int | None = Field(default=None, gt=0)
    tables: int | None = Field(default=None, gt=0)
    table_elements: int | None = Field(default=None, gt=0)
    instances: int | None = Field(default=None, gt=0)
    result_bytes: int | None = Field(default=None, gt=0)
    log_lines: int | None = Field(default=None, ge=0)
    http_requests: int | None = Field(default=None, ge=0)
    http_bytes: int | None = Field(default=None, ge=0)


class SidecarExport(Strict):
    """What is said of one function of a component that is of another world than ours."""

    description: str


class Sidecar(Grants):
    """The file's content. `description` and `parameters` (the key `schema`) win over the guest's.

    Attributes:
        exports: by a function's full or short name.
    """

    version: Literal[1]
    description: str | None = None
    parameters: Any = Field(default=None, alias="schema")
    exports: dict[str, SidecarExport] = Field(default_factory=dict[str, SidecarExport])
    limits: SidecarLimits = SidecarLimits()
    approval: Literal["never", "always"] = "never"
    coerce: Literal["never", "safe"] = "never"
    read_only: bool = False
    idempotent: bool = False

    @property
    def overrides_schema(self) -> bool:
        """Whether the file gives a schema at all, be it null."""
        return "parameters" in self.model_fields_set

    def beyond(self, agreed: Sidecar) -> tuple[str, ...]:
        """What it asks for beyond one that was agreed to, a line for each thing.

        Limits are left out: none goes beyond the operator's own.
        """
        before = set(agreed.asks())
        lines = [line for line in self.asks() if line not in before]
        if agreed.approval == "always" and self.approval == "never":
            lines.append("be called without the approval that it needed")
        rate = agreed.http.rate_limit
        if rate is not None and not (self.http.rate_limit or HttpRate(calls=2**62, per_s=1)).within(rate):
            lines.append(f"send more than {rate.calls} requests in {rate.per_s:g} s")
        return tuple(lines)

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
        BadSidecar: not JSON, an unknown or repeated key, a wrong type, a grant that means nothing.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise BadSidecar("it is not a regular file")
        with path.open("rb") as file:
            data = file.read(_MAX_BYTES + 1)
    except FileNotFoundError:
        return Sidecar(version=1)
    except OSError as error:
        raise BadSidecar(f"it can't be read: {error.strerror}") from error
    return parse_sidecar(data)


def parse_sidecar(data: bytes) -> Sidecar:
    """As `read_sidecar`, of a file's bytes.

    Raises:
        BadSidecar: as there.
    """
    if len(data) > _MAX_BYTES:
        raise BadSidecar(f"it is over {_MAX_BYTES // 1024} KiB")
    try:
        content = strict_json(data.decode("utf-8-sig"))
    except ValueError as error:
        raise BadSidecar(f"it is not JSON: {error}") from error
    try:
        return Sidecar.model_validate(content)
    except ValidationError as error:
        raise BadSidecar(first_fault(error, Sidecar)) from error
