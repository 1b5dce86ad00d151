"""Hints from the kernel that files changed, through watchfiles."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from pathlib import Path

import structlog
from watchfiles import Change, awatch  # pyright: ignore[reportUnknownVariableType] - trio, named in its type, is absent

_log = structlog.get_logger(__name__)
_QUIET_MS = 100
_TOGETHER_MS = 1_000
LOOK_S = 5.0


class WatchedFolders:
    """Hints about files that lie directly in some folders.

    The kernel tells at once; besides, there is a hint every few seconds, for file systems that tell nothing
    (network mounts) and for folders that were taken away and made anew.

    Args:
        folders: what is watched, without what lies deeper.
        wanted: which files count; everything else in the folders is passed over.
        look_s: seconds between two hints when nothing happens.
    """

    def __init__(
        self, folders: Sequence[Path], wanted: Callable[[Path], bool], *, look_s: float = LOOK_S
    ) -> None:
        self._folders = tuple(folders)
        self._wanted = wanted
        self._look_s = look_s

    async def changes(self) -> AsyncGenerator[None]:
        """As the port says. Where nothing can be watched, a hint comes every few seconds all the same."""
        while True:
            watched = self._there()
            yield None  # whatever happened while nobody watched
            try:
                async with aclosing(self._hints(watched)) as hints:
                    async for changed in hints:
                        yield None
                        if self._there() != watched or any(
                            Path(name) in self._folders for _, name in changed
                        ):
                            break  # a folder was taken away or made anew: the watch was of the old one
            except (OSError, RuntimeError) as error:  # no watch left, or a folder that went meanwhile
                _log.warning("files_not_watched", reason=str(error), again_s=self._look_s)
                await asyncio.sleep(self._look_s)

    def _hints(self, watched: Sequence[Path]) -> AsyncGenerator[set[tuple[Change, str]]]:
        return awatch(
            *watched,
            watch_filter=self._counts,
            recursive=False,
            step=_QUIET_MS,
            debounce=_TOGETHER_MS,
            rust_timeout=round(self._look_s * 1_000),
            yield_on_timeout=True,
        )

    def _counts(self, _change: Change, name: str) -> bool:
        path = Path(name)
        return path in self._folders or self._wanted(path)

    def _there(self) -> list[Path]:
        return [folder for folder in self._folders if folder.is_dir()]
