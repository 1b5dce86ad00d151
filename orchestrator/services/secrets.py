"""Stored secrets: set, listed, granted to jobs - and known to the redactor, so that none is ever shown."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

import structlog

from orchestrator.errors import BadRequest, Conflict, NotFound
from orchestrator.ports.secrets import SecretName, SecretStore, SecretUnreadable
from tool_registry.redaction import Redactor

_log = structlog.get_logger(__name__)
MAX_VALUE_CHARS = 65_536
# As `${secret:NAME}` in `mcp.json` can name it.
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_ENV_VAR = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")


class SecretService:
    """What is done with secrets. Every value that passes through is taken out of outputs from then on.

    Args:
        redactor: of outputs and timelines; it keeps what it knows until the process ends, since a job may
            still hold a value that was replaced or removed.
    """

    def __init__(self, store: SecretStore, redactor: Redactor) -> None:
        self._store = store
        self._redactor = redactor

    async def learn_stored(self) -> None:
        """Let the redactor know every stored value; one that can't be opened is logged by name."""
        for secret in await self._store.names():
            try:
                value = await self._store.get(secret.name)
            except SecretUnreadable as error:
                _log.warning("secret_unreadable", name=secret.name, reason=str(error))
                continue
            if value is not None:
                self._redactor.learn({secret.name: value})

    def learn_of_server(self, server: str, values: Collection[str]) -> None:
        """Let the redactor know what an MCP server was given."""
        for value in values:
            self._redactor.learn({f"mcp.{server}": value})

    async def set(self, name: str, value: str) -> SecretName:
        """Store a value, in place of an older one of this name.

        Raises:
            BadRequest: the name or the value can't be; neither is repeated.
        """
        if not _NAME.fullmatch(name):
            raise BadRequest(
                "this can't be a secret's name; use A-Z, a-z, 0-9, _, . and -, at most 128, no . or - first"
            )
        if not value:
            raise BadRequest("the value is empty; use secrets rm to remove a secret")
        if len(value) > MAX_VALUE_CHARS:
            raise BadRequest(f"the value has more than {MAX_VALUE_CHARS:,} characters")
        if "\0" in value:
            raise BadRequest("the value holds a NUL, which no environment variable can")
        self._redactor.learn({name: value})
        await self._store.set(name, value)
        return next(secret for secret in await self._store.names() if secret.name == name)

    async def names(self) -> list[SecretName]:
        """What there is, sorted by name, without values."""
        return await self._store.names()

    async def remove(self, name: str) -> None:
        """Forget a secret. Jobs that hold its value keep it until they end.

        Raises:
            NotFound: there is none of this name.
        """
        if not await self._store.delete(name):
            raise NotFound(f"there is no secret {name[:80]!r}")

    async def check(self, grants: Mapping[str, str]) -> None:
        """Refuse grants, secret name to environment variable, that could not be handed out.

        Raises:
            BadRequest: the message names the first that can't be.
        """
        taken: set[str] = set()
        for env_var in grants.values():
            if not _ENV_VAR.fullmatch(env_var):
                raise BadRequest(f"{env_var[:80]!r} can't be an environment variable; use A-Z, 0-9 and _")
            if env_var in taken:
                raise BadRequest(f"two secrets are granted as {env_var}; give each a variable of its own")
            taken.add(env_var)
        known = {secret.name for secret in await self._store.names()} if grants else set[str]()
        for name in grants:
            if name not in known:
                raise BadRequest(f"there is no secret {name[:80]!r}; set it with: portside secrets set NAME")

    async def granted(self, grants: Mapping[str, str]) -> list[tuple[str, str]]:
        """The granted secrets as (environment variable, value).

        Raises:
            Conflict: one is gone or can't be opened; the message names it.
        """
        found: list[tuple[str, str]] = []
        for name, env_var in sorted(grants.items()):
            try:
                value = await self._store.get(name)
            except SecretUnreadable as error:
                raise Conflict(f"the granted secret can't be opened: {error}") from error
            if value is None:
                raise Conflict(f"the granted secret {name!r} does not exist any more; set it again")
            self._redactor.learn({name: value})
            found.append((env_var, value))
        return found
