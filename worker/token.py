"""The job token: read once, kept in memory, renewed before it runs out."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, cast

from tool_registry.errors import PortsideError
from worker.errors import job_is_over
from worker.protocol.job import TokenAnswer

DEFAULT_LIFE_S = 3600.0
_RETRY_S = 5.0
_SHORTEST_WAIT_S = 1.0


class Token:
    """The present token. Its text appears in no representation."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return "Token(hidden)"

    @property
    def life_s(self) -> float:
        """How long the token lives from its issue, by its own claims; an hour when it does not say.

        Only the difference of two claims is used, so a clock that is off does no harm.
        """
        claims = _claims(self.text)
        try:
            return max(float(claims["exp"]) - float(claims["iat"]), 0.0)
        except (KeyError, TypeError, ValueError):
            return DEFAULT_LIFE_S


def read_token(path: Path) -> Token:
    """The token of the file. The orchestrator removes the file; the mount is read-only here.

    Raises:
        OSError: the file can't be read.
        ValueError: the file is empty.
    """
    text = path.read_text(encoding="ascii").strip()
    if not text:
        raise ValueError(f"the token file {path} is empty")
    return Token(text)


def _claims(token: str) -> dict[str, Any]:
    """A JWT's claims, unverified: they time the renewal and decide nothing else."""
    try:
        body = token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    except (IndexError, ValueError, binascii.Error):
        return {}
    return cast("dict[str, Any]", claims) if isinstance(claims, dict) else {}


async def keep_fresh(
    token: Token,
    renew: Callable[[], Awaitable[TokenAnswer]],
    sleep: Callable[[float], Awaitable[None]],
) -> PortsideError:
    """Renew at half of each token's life, until the job is over; goes on through outages.

    Returns:
        The refusal that ended it.
    """
    while True:
        await sleep(max(token.life_s / 2, _SHORTEST_WAIT_S))
        while True:
            try:
                await renew()
                break
            except PortsideError as error:
                if job_is_over(error):
                    return error
                # An outage: the orchestrator takes a just-expired token of a live job when it is back.
                await sleep(_RETRY_S)
