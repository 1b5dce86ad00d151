"""Configurations written for other MCP clients, read as ours.

    {"mcpServers": {...}}            Claude Desktop, Cursor, Windsurf, Cline, Gemini, and Portside itself
    {"servers": {...}}               VS Code's mcp.json, where `inputs` beside it ask for secrets
    {"mcp": {"servers": {...}}}      VS Code's settings.json

All of them may hold comments and trailing commas where an editor allows them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from tool_registry.mcp.config import McpConfigError, ServerConfig, no_duplicates, parse_server

_URL_KEYS = ("url", "serverUrl", "httpUrl")
_PASSED_OVER = {
    "alwaysAllow": "what needs approval follows the tools' annotations, or `approval`",
    "autoApprove": "what needs approval follows the tools' annotations, or `approval`",
    "description": "",
    "dev": "",
    "gallery": "",
    "note": "",
    "timeout": "clients count it differently; set `timeout_s` if a call needs more than 60 s",
    "trust": "what needs approval follows the tools' annotations, or `approval`",
    "version": "",
}
_ASKED_FOR = re.compile(r"\$\{(?:env|input):([A-Za-z0-9_][A-Za-z0-9_.-]{0,127})\}|\$\{([A-Z][A-Z0-9_]*)\}")


@dataclass(frozen=True, slots=True)
class ForeignConfig:
    """What a file gives.

    Attributes:
        entries: each server as our own file would hold it.
        secrets: names that entries refer to as `${secret:NAME}`, because the file had them from an
            environment variable or asked for them.
        notes: what was passed over, and why.
    """

    entries: Mapping[str, dict[str, Any]]
    configs: Mapping[str, ServerConfig]
    secrets: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def read_foreign(text: str, *, source: str) -> ForeignConfig:
    """Read a client's configuration.

    Raises:
        McpConfigError: it can't be read, holds no servers, or has some that can't be used; every problem is
            listed with its place.
    """
    servers = _servers(_document(text, source), source)
    entries: dict[str, dict[str, Any]] = {}
    configs: dict[str, ServerConfig] = {}
    notes: list[str] = []
    problems: list[str] = []
    secrets: set[str] = set()
    for name, given in servers.items():
        try:
            entries[name] = _entry(name, given, notes, secrets)
            configs[name] = parse_server(entries[name], name=name)
        except McpConfigError as error:
            problems.append(error.message)
    if problems:
        raise McpConfigError(f"{source}: nothing was taken in; {'; '.join(problems)}")
    return ForeignConfig(entries, configs, tuple(sorted(secrets)), tuple(notes))


def _document(text: str, source: str) -> dict[str, Any]:
    try:
        value = json.loads(without_comments(text.removeprefix("\ufeff")), object_pairs_hook=no_duplicates)
    except (ValueError, RecursionError) as error:
        raise McpConfigError(f"{source} is not usable JSON: {error}") from None
    if not isinstance(value, dict):
        raise McpConfigError(f"{source} is no object; it should hold `mcpServers` or `servers`")
    return cast("dict[str, Any]", value)


def _servers(document: dict[str, Any], source: str) -> dict[str, Any]:
    inner = document.get("mcp")
    settings = cast("dict[str, Any]", inner) if isinstance(inner, dict) else {}
    found = [
        (place, value)
        for place, value in (
            ("mcpServers", document.get("mcpServers")),
            ("servers", document.get("servers")),
            ("mcp.servers", settings.get("servers")),
        )
        if value is not None
    ]
    if len(found) != 1:
        have = " and ".join(place for place, _ in found) or ", ".join(sorted(document)[:10]) or "nothing"
        raise McpConfigError(
            f"{source} should hold its servers in one of `mcpServers`, `servers` or `mcp.servers`;"
            f" it has {have}"
        )
    place, value = found[0]
    if not isinstance(value, dict) or not value:
        raise McpConfigError(f"{source}: `{place}` holds no servers; it should be an object of them by name")
    return cast("dict[str, Any]", value)


def _entry(name: str, given: Any, notes: list[str], secrets: set[str]) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise McpConfigError(f"server {name!r} is not an object")
    entry = dict(cast("dict[str, Any]", given))
    for key in _PASSED_OVER.keys() & entry.keys():
        why = f": {_PASSED_OVER[key]}" if _PASSED_OVER[key] else ""
        notes.append(f"{name}: `{key}` is passed over{why}")
        del entry[key]
    if "envFile" in entry:
        raise McpConfigError(f"server {name!r}: `envFile` is not read; put what it needs into `env`")
    _one_url(name, entry)
    if entry.pop("disabled", False) is True:
        entry["enabled"] = False
    transport = entry.pop("transport", None)
    if transport is not None:
        entry.setdefault("type", transport)
    for place in ("env", "headers"):
        if isinstance(entry.get(place), dict):
            entry[place] = _with_secrets(entry[place], secrets)
    return entry


def _one_url(name: str, entry: dict[str, Any]) -> None:
    given = [key for key in _URL_KEYS if key in entry]
    if len(given) > 1:
        raise McpConfigError(f"server {name!r} has {' and '.join(given)}; keep one")
    if given:
        entry["url"] = entry.pop(given[0])


def _with_secrets(values: dict[str, Any], secrets: set[str]) -> dict[str, Any]:
    """`${env:X}`, `${input:X}` and `${X}` become `${secret:X}`: values that the file does not hold itself."""

    def named(match: re.Match[str]) -> str:
        name = match.group(1) or match.group(2)
        secrets.add(name)
        return f"${{secret:{name}}}"

    return {
        key: _ASKED_FOR.sub(named, value) if isinstance(value, str) else value
        for key, value in values.items()
    }


_STRING_OR_COMMENT = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
_STRING_OR_COMMA = re.compile(r'"(?:[^"\\]|\\.)*"|,(?=\s*[}\]])', re.DOTALL)


def without_comments(text: str) -> str:
    """JSON as editors allow it, as JSON: without comments and trailing commas; strings stay as they are."""

    def plain(match: re.Match[str]) -> str:
        found = match.group()
        return found if found.startswith('"') else " "

    return _STRING_OR_COMMA.sub(plain, _STRING_OR_COMMENT.sub(plain, text))
