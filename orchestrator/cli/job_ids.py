"""A job by a part of its id."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from orchestrator.cli.client import OperatorClient
from orchestrator.cli.failures import CommandFailed, UsageMistake

SHORT = 8
_WHOLE = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_LOOKED_AT = 1000


async def job_named(client: OperatorClient, asked: str) -> dict[str, Any]:
    """The job that an id, or a unique end or beginning of one, means.

    Raises:
        CommandFailed: none has it.
        UsageMistake: several have it.
    """
    if _WHOLE.fullmatch(asked):
        return await client.get(f"/api/v1/jobs/{asked}")
    jobs: list[dict[str, Any]] = await client.get("/api/v1/jobs", limit=_LOOKED_AT)
    job_id = resolve(asked, [job["id"] for job in jobs])
    return next(job for job in jobs if job["id"] == job_id)


def resolve(asked: str, ids: Sequence[str]) -> str:
    """The one id that is meant. Ends come first: ids of one hour begin alike.

    Raises:
        CommandFailed: there is none.
        UsageMistake: it is not an id's part, or means several.
    """
    part = asked.strip().lower()
    if not part or not set(part) <= set("0123456789abcdef-"):
        raise UsageMistake(f"{asked[:80]!r} is no job's id; portside jobs list shows them")
    if part in ids:
        return part
    for found in (
        [one for one in ids if one.endswith(part)],
        [one for one in ids if one.startswith(part)],
    ):
        if len(found) == 1:
            return found[0]
        if found:
            shown = ", ".join(one[-SHORT:] for one in found[:5])
            raise UsageMistake(f"{asked!r} means {len(found)} jobs; give one of their ends: {shown}")
    raise CommandFailed(f"there is no job {asked!r}; see portside jobs list")
