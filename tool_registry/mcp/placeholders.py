"""`${secret:NAME}` in the configuration: found, checked, resolved."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from tool_registry.mcp.transport import ServerUnreachable

SecretResolver = Callable[[str], Awaitable[str | None]]
"""Answers a secret's value, or None when there is no such secret."""

PLACEHOLDER = re.compile(r"\$\{secret:([A-Za-z0-9_][A-Za-z0-9_.-]{0,127})\}")
_SECRET_NAME = re.compile(r"key|token|secret|passw|credential|auth|cookie", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Resolved:
    """Values with their placeholders replaced.

    Attributes:
        values: what to hand to the server.
        secrets: the parts that must never be shown: every resolved secret, and every literal value whose
            name says that it is one.
    """

    values: dict[str, str]
    secrets: frozenset[str]


def stray_placeholder(text: str) -> str | None:
    """A `${...}` that nothing would replace; None when there is none."""
    found = re.search(r"\$\{[^}]*\}?", PLACEHOLDER.sub("", text))
    return found.group() if found else None


async def resolve_all(values: Mapping[str, str], resolve: SecretResolver) -> Resolved:
    """Replace all placeholders.

    Raises:
        ServerUnreachable: a secret is not set, or its value can't stand there.
    """
    done: dict[str, str] = {}
    secrets: set[str] = set()
    for name, text in values.items():
        found = {secret: await _value(secret, name, resolve) for secret in PLACEHOLDER.findall(text)}
        secrets.update(found.values())
        done[name] = PLACEHOLDER.sub(lambda match, found=found: found[match.group(1)], text)
        if _SECRET_NAME.search(name):
            secrets.update({done[name], done[name].rpartition(" ")[2]})
    return Resolved(done, frozenset(secrets))


async def _value(secret: str, wanted_by: str, resolve: SecretResolver) -> str:
    value = await resolve(secret)
    if value is None:
        raise ServerUnreachable(
            f"{wanted_by} needs the secret {secret!r}, which the secret store does not hold;"
            f" store it with: portside secrets set {secret}"
        )
    if any(character in value for character in "\r\n\0"):
        raise ServerUnreachable(
            f"the secret {secret!r} holds a line break, which {wanted_by} can't carry: store it without"
        )
    return value
