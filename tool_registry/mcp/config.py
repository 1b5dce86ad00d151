"""The common `mcpServers` JSON, read strictly."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, Literal, Self, cast
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictStr, ValidationError, model_validator

from tool_registry.errors import PortsideError
from tool_registry.mcp.placeholders import stray_placeholder

ApprovalChoice = Literal["never", "always"]
Seconds = Annotated[float, Field(strict=True, gt=0, le=3600, allow_inf_nan=False)]


class McpConfigError(PortsideError):
    """The configuration can't be used; the message lists every problem with its place."""

    code = "mcp_config_invalid"


class OAuthClient(BaseModel):
    """A client that was registered by hand at an authorisation server which registers none by itself.

    Attributes:
        client_secret: may be `${secret:NAME}`; None for a public client.
        callback_port: the local port of the redirect URI, where a fixed one was registered.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    client_id: StrictStr = Field(min_length=1)
    client_secret: StrictStr | None = None
    callback_port: int | None = Field(default=None, strict=True, ge=1, le=65_535)


class ServerConfig(BaseModel):
    """One MCP server: `command` (stdio) or `url` (HTTP), and how its tools are used.

    Attributes:
        type: follows from `command` or `url`. `sse` is the older way over HTTP; it is tried by itself where
            the other one is refused and no type is given.
        env: the server's whole environment beside PATH, HOME, LANG and TMPDIR. Values may hold
            `${secret:NAME}`, as those of `headers` may.
        oauth: the client for `portside mcp login`, where the server's authorisation server registers none.
        include: only these of the server's tools, by its own names; `*` and `?` match. None is all.
        exclude: none of these; wins over `include`.
        timeout_s: how long one call may take; progress does not extend it.
        start_timeout_s: how long it may take until the tools are listed.
        approval: for all its tools, or by tool name; overrides what the server's annotations ask for.
        coerce: `safe` reads text where a tool's schema allows none as the value that it spells.
        instructions: pass the server's instructions on to the model.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: Literal["stdio", "http", "streamable-http", "streamableHttp", "sse"] | None = None
    command: StrictStr | None = Field(default=None, min_length=1)
    args: tuple[StrictStr, ...] = ()
    env: dict[str, StrictStr] = Field(default_factory=dict[str, str])
    cwd: StrictStr | None = None
    url: StrictStr | None = None
    headers: dict[str, StrictStr] = Field(default_factory=dict[str, str])
    oauth: OAuthClient | None = None
    enabled: StrictBool = True
    include: tuple[StrictStr, ...] | None = None
    exclude: tuple[StrictStr, ...] = ()
    timeout_s: Seconds = 60.0
    start_timeout_s: Seconds = 60.0
    approval: ApprovalChoice | dict[str, ApprovalChoice] | None = None
    coerce: Literal["never", "safe"] = "never"
    instructions: StrictBool = True

    @model_validator(mode="after")
    def _one_transport(self) -> Self:
        if (self.command is None) == (self.url is None):
            raise ValueError("give either `command` (a program to start) or `url` (a server to reach)")
        if self.url is not None and (self.args or self.env or self.cwd or self.type == "stdio"):
            raise ValueError("`args`, `env`, `cwd` and type `stdio` belong to `command`, not to `url`")
        if self.command is not None and (self.headers or self.oauth or self.type not in {None, "stdio"}):
            raise ValueError("`headers`, `oauth` and type `http` or `sse` belong to `url`, not to `command`")
        return self

    @model_validator(mode="after")
    def _usable_values(self) -> Self:
        if self.url is not None:
            _check_url(self.url)
        for name, value in {**self.env, **self.headers}.items():
            if not name or "=" in name or any(ord(character) < 32 for character in name + value):
                raise ValueError(f"{name!r} has a name or value that can't be handed on (line breaks, `=`)")
            if stray := stray_placeholder(value):
                raise ValueError(f"{name}: {stray} is not replaced by anything; write ${{secret:NAME}}")
        for text in (self.command or "", *self.args, self.url or ""):
            if "${" in text:
                raise ValueError("placeholders work in `env` and `headers` only: other places are visible")
        return self

    def wants(self, tool: str) -> bool:
        """Whether `include` and `exclude` let this tool in."""
        if any(fnmatchcase(tool, pattern) for pattern in self.exclude):
            return False
        return self.include is None or any(fnmatchcase(tool, pattern) for pattern in self.include)

    def approval_for(self, tool: str) -> ApprovalChoice | None:
        """What the configuration says about this tool; None when nothing."""
        if isinstance(self.approval, dict):
            return self.approval.get(tool)
        return self.approval


class McpConfig(BaseModel):
    """All configured servers, by name."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    servers: dict[str, ServerConfig] = Field(default_factory=dict[str, ServerConfig], alias="mcpServers")

    @model_validator(mode="after")
    def _names(self) -> Self:
        for name in self.servers:
            if not name.strip() or len(name) > 64 or not name.isprintable():
                raise ValueError(f"{name[:80]!r} is no server name: 1 to 64 printable characters")
        return self


def load_config(path: Path) -> McpConfig:
    """Read a file; a missing one is an empty configuration.

    Raises:
        McpConfigError: it can't be read or used.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return McpConfig()
    except OSError as error:
        raise McpConfigError(f"{path} can't be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise McpConfigError(f"{path} can't be read: it is not UTF-8 text") from None
    return parse_config(text, source=str(path))


def parse_config(text: str, *, source: str = "mcp.json") -> McpConfig:
    """Read a configuration from JSON text.

    Raises:
        McpConfigError: the message names `source` and lists every problem.
    """
    try:
        value = json.loads(text, object_pairs_hook=no_duplicates)
    except (ValueError, RecursionError) as error:
        raise McpConfigError(f"{source} is not usable JSON: {error}") from None
    try:
        return McpConfig.model_validate(value)
    except ValidationError as error:
        raise McpConfigError(f"{source}: {_problems(error)}") from None


def parse_server(value: Mapping[str, Any], *, name: str) -> ServerConfig:
    """Read one server's entry.

    Raises:
        McpConfigError: as `parse_config`.
    """
    return parse_config(json.dumps({"mcpServers": {name: value}}), source=f"server {name!r}").servers[name]


def no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """For `json.loads`: an object whose keys are all different.

    Raises:
        ValueError: one is given twice.
    """
    result: dict[str, Any] = {}
    for key, value in pairs:
        if key in result:
            raise ValueError(f"{key!r} is given twice; remove one of them")
        result[key] = value
    return result


def _check_url(url: str) -> None:
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError("`url` must start with http:// or https:// and name a host")
    if parts.username is not None or parts.password is not None:
        raise ValueError("put credentials into `headers` as ${secret:NAME}, not into `url`")


def _problems(error: ValidationError) -> str:
    return "; ".join(_problem(cast("dict[str, Any]", problem)) for problem in error.errors(include_url=False))


def _problem(problem: dict[str, Any]) -> str:
    place = [str(part) for part in problem["loc"] if "literal" not in str(part)]
    where = ".".join(place) or "the document"
    given = problem.get("input")
    if problem["type"] == "extra_forbidden":
        known = [*ServerConfig.model_fields] if len(place) > 1 else ["mcpServers"]
        known = [*OAuthClient.model_fields] if place[-2:-1] == ["oauth"] else known
        near = difflib.get_close_matches(place[-1], known, 1)
        return f"{where} is not a known setting" + (
            f"; did you mean {near[0]!r}?" if near else f"; known: {', '.join(known)}"
        )
    if problem["type"] == "string_type":
        return f"{where} must be text in double quotes, not {_named(given)}"
    return f"{where}: {problem['msg'].removeprefix('Value error, ')}"


def _named(value: Any) -> str:
    if value is None or isinstance(value, bool | int | float):
        return f"{json.dumps(value)} (write {json.dumps(json.dumps(value))})"
    return "a list" if isinstance(value, list) else "an object"
