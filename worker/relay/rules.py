"""What the relay lets through. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

MAX_BODY_BYTES = 16 * 1024 * 1024

# Of what an agent's SDK sends, and of what comes back; all else stops here, credentials above all.
_SENT = frozenset({"accept", "content-type", "anthropic-version", "anthropic-beta", "openai-beta"})
_RETURNED = frozenset({"content-type", "cache-control", "retry-after", "retry-after-ms", "x-should-retry"})
_PATH = re.compile(r"/(llm/(?:openai|anthropic)/v1/[A-Za-z0-9_.-]+(?:/[A-Za-z0-9_.:-]+)*)")
_QUERY = re.compile(r"[A-Za-z0-9_=&.%-]{0,500}")
_MAX_VALUE = 4_096

Header = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Refused:
    """Why a request goes no further."""

    status: int
    code: str
    detail: str


@dataclass(frozen=True, slots=True)
class Target:
    """Where a request goes: a path below the job's own, and the query."""

    name: str
    query: str


def target_of(method: str, raw: str) -> Target | Refused:
    """The orchestrator's route for a request target, or why there is none."""
    path, _, query = raw.partition("?")
    found = _PATH.fullmatch(path)
    if found is None or ".." in path.split("/") or "." in path.split("/"):
        return Refused(404, "not_found", "only /llm/openai/v1/... and /llm/anthropic/v1/... are served here")
    if method not in {"GET", "POST"}:
        return Refused(405, "invalid_request", f"this path does not take {method[:20]}")
    if not _QUERY.fullmatch(query):
        return Refused(400, "invalid_request", "the query holds characters that no provider's API uses")
    return Target(found[1], query)


def sent(headers: Iterable[Header]) -> list[Header]:
    """The request's headers that go on; each name once, the first value."""
    return _kept(headers, _SENT)


def returned(headers: Iterable[Header]) -> list[Header]:
    """The answer's headers that go back."""
    return _kept(headers, _RETURNED)


def _kept(headers: Iterable[Header], names: frozenset[str]) -> list[Header]:
    kept: dict[str, str] = {}
    for name, value in headers:
        if name.lower() in names and len(value) <= _MAX_VALUE:
            kept.setdefault(name.lower(), value)
    return list(kept.items())
