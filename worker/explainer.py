"""Schema errors explained in a process that can be killed."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

import tool_registry
from tool_registry.errors import Violation

_LIMIT_S = 2.0
_AT_ONCE = 2


class SubprocessExplainer:
    """`tool_registry.explain.Explainer` in a child: a pattern that runs away ends with it.

    Two children at once, however many calls are refused: who finds no room in time goes without.
    """

    def __init__(self, *, limit_s: float = _LIMIT_S, at_once: int = _AT_ONCE) -> None:
        self._limit_s = limit_s
        self._room = asyncio.Semaphore(at_once)

    async def explain(self, schema_json: str, instance_json: str) -> tuple[Violation, ...] | None:
        """The violations; None when the child failed, or it took or would wait longer than the limit."""
        try:
            async with asyncio.timeout(self._limit_s):
                await self._room.acquire()
        except TimeoutError:
            return None
        try:
            return await self._explained(schema_json, instance_json)
        finally:
            self._room.release()

    async def _explained(self, schema_json: str, instance_json: str) -> tuple[Violation, ...] | None:
        question = f'{{"schema":{schema_json},"instance":{instance_json}}}'.encode()
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-sP",  # nothing of an agent's home or workspace is imported
            "-m",
            "tool_registry.explain",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            cwd="/",
            env=_environment(),
        )
        try:
            async with asyncio.timeout(self._limit_s):
                answer, _ = await process.communicate(question)
        except TimeoutError:
            return None
        finally:
            if process.returncode is None:
                process.kill()
            await process.communicate()  # a wait alone would leave its pipes open
        return _violations(answer) if process.returncode == 0 else None


def _environment() -> dict[str, str]:
    """The package is found where this process found it, and nothing in a workspace is imported."""
    root = Path(tool_registry.__file__).parent.parent
    return {"PYTHONPATH": os.pathsep.join([str(root), *filter(None, sys.path[1:])]), "PYTHONUTF8": "1"}


def _violations(answer: bytes) -> tuple[Violation, ...] | None:
    try:
        return tuple(Violation(**one) for one in json.loads(answer))
    except (ValueError, TypeError):
        return None  # the child died in the middle of its answer
