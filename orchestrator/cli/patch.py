"""A job's patch on the user's own checkout: fitted, or merged with what changed here; all or nothing."""

from __future__ import annotations

import tarfile
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestrator.cli.checkout import FOLDER, pack_present, refuse_obstacles
from orchestrator.cli.failures import CommandFailed, UsageMistake
from orchestrator.cli.merging_programs import RESULT, MergingPrograms, merging_programs
from orchestrator.cli.placing import Placing, placing
from orchestrator.cli.visible import one_line
from orchestrator.settings import Settings

_PATCH = "changes.patch"
_NAMED = 10


@dataclass(frozen=True, slots=True)
class Application:
    """What is applied where.

    Attributes:
        start: writes the job's starting workspace to a file; asked only when the patch does not fit as it is.
        check: only look whether it could be applied.
        say: told what a person should know.
    """

    job_id: str
    patch: bytes
    directory: Path
    start: Callable[[Path], Awaitable[None]]
    say: Callable[[str], None]
    check: bool = False


@dataclass(frozen=True, slots=True)
class Applied:
    """What was done, or would be.

    Attributes:
        merged: those that had changed here too.
    """

    written: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    merged: tuple[str, ...] = ()

    @property
    def files(self) -> int:
        """How many files are written or deleted."""
        return len(self.written) + len(self.deleted)


async def apply_patch(settings: Settings, asked: Application) -> Applied:
    """Apply a job's patch below a directory. Where it does not fit, it is merged with what was changed since.

    Raises:
        UsageMistake: the directory is none.
        CommandFailed: it can't be applied or merged; nothing was changed.
    """
    directory = asked.directory
    if not directory.is_dir():
        raise UsageMistake(f"{directory} is not a directory; name the workspace with --workspace")
    if asked.check:
        return await _merged(settings, asked, None) if asked.patch.strip() else Applied()
    if not asked.patch.strip() and not (directory / FOLDER).exists():
        return Applied()
    with placing(directory) as place:
        undone = place.undo()
        if undone is not None:
            asked.say(f"an apply of job {undone} was cut off in {directory}; it was taken back first")
        return await _merged(settings, asked, place) if asked.patch.strip() else Applied()


async def _merged(settings: Settings, asked: Application, place: Placing | None) -> Applied:
    parent = settings.cache_dir / "apply"
    parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=parent) as folder:
        merging = _Merging(await merging_programs(settings), Path(folder))
        names = await merging.names(asked.patch)
        stamps = pack_present(asked.directory, names, merging.given / "present.tar")
        found = await merging.merge(asked.start)
        if found["outcome"] in {"unfit", "conflict"}:
            raise CommandFailed(_refusal(found, asked.directory))
        refuse_obstacles(asked.directory, found["written"], found["deleted"])
        if place is not None and (found["written"] or found["deleted"]):
            place.place(asked.job_id, merging.result, found["deleted"], stamps)
    return Applied(tuple(found["written"]), tuple(found["deleted"]), tuple(found["merged"]))


class _Merging:
    """The runs of one apply; each has a directory to write to, all see one that is given."""

    def __init__(self, programs: MergingPrograms, folder: Path) -> None:
        self._programs = programs
        self._folder = folder
        self.given = self._made("given")
        self.result = Path()
        Path(folder).chmod(0o755)  # a container's user looks in; the folder around it is closed

    def _made(self, name: str) -> Path:
        made = self._folder / name
        made.mkdir(mode=0o755)
        return made

    async def names(self, patch: bytes) -> list[str]:
        (self.given / _PATCH).write_bytes(patch)
        return await self._programs.run("names", self.given, self._made("names"))

    async def merge(self, start: Callable[[Path], Awaitable[None]]) -> Any:
        """As it is; where it does not fit, with the start that both sides have in common."""
        found = await self._merge("fitted")
        if found["outcome"] != "unfit":
            return found
        archive = self.given / "start.tar"
        with tarfile.open(archive, "w"):
            pass  # a job that was given no workspace began with nothing
        await start(archive)
        return await self._merge("merged")

    async def _merge(self, name: str) -> Any:
        out = self._made(name)
        self.result = out / RESULT
        return await self._programs.run("merge", self.given, out)


def _refusal(found: Any, directory: Path) -> str:
    if found["outcome"] == "unfit":
        return f"the patch does not apply to {directory}; nothing was changed: {one_line(found['why'], 1000)}"
    names: list[str] = found["conflicts"]
    shown = ", ".join(one_line(name) for name in names[:_NAMED])
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return (
        f"{shown}{more}: changed here since the job began, and in the same places by the job; "
        "nothing was changed. Set your changes to them aside (git stash, or a copy) and apply again, "
        "or save the patch and take it by hand: portside jobs diff"
    )


def in_words(applied: Applied, asked: Application) -> str:
    """What was done, for a person."""
    if not asked.patch.strip():
        return "the job changed no files"
    if not applied.files:
        return f"{asked.directory} has all of the job's changes already"
    done = "can be applied to" if asked.check else "applied to"
    words = f"{done} {asked.directory}: {applied.files} file{'s' * (applied.files != 1)}"
    if applied.merged:
        shown = ", ".join(one_line(name) for name in applied.merged[:_NAMED])
        words += f"; merged with your changes to {shown}" + " and others" * (len(applied.merged) > _NAMED)
    return words
