"""PD-51: new files take the place of old ones together, or not at all, also when the power goes."""

from __future__ import annotations

import errno
import io
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from orchestrator.cli.checkout import FOLDER, pack_present
from orchestrator.cli.failures import CommandFailed
from orchestrator.cli.placing import placing
from tests.support.applying import files, write

BEFORE = {"a": b"one\n", "deep/b": b"\0\1\2", "gone/x": b"x\n", "d/x": b"x\n"}
AFTER = {"a": b"ONE\n", "deep/b": b"\0\1\3", "new/e/latin": b"caf\xe9\n", "d": b"a file now\n"}
GONE = ["gone/x", "d/x"]


def result_in(folder: Path) -> Path:
    """The archive of what is to be written."""
    result = folder / "result.tar"
    with tarfile.open(result, "w") as tar:
        for name, content in AFTER.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return result


def place(result: Path, target: Path) -> str | None:
    """Undo what was cut off, then place; answers the job whose apply was undone."""
    with placing(target) as making:
        undone = making.undo()
        present = pack_present(target, [*BEFORE, *AFTER], result.with_name(f"{target.name}.tar"))
        making.place("the-job", result, GONE, present)
    return undone


def without_folder(target: Path) -> dict[str, bytes]:
    return {name: data for name, data in files(target).items() if not name.startswith(FOLDER)}


def test_everything_is_in_its_place_and_nothing_else_is_left(tmp_path: Path) -> None:
    target = write(tmp_path / "target", BEFORE)
    assert place(result_in(tmp_path), target) is None
    assert files(target) == AFTER
    assert not (target / FOLDER).exists()
    assert not (target / "gone").exists()


def test_what_the_kernel_refuses_at_any_step_leaves_all_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that fills up, say."""
    result, refused = result_in(tmp_path), 0
    for step in range(200):
        target = write(tmp_path / f"target-{step}", BEFORE)
        with monkeypatch.context() as patched:
            left = refuse_at(patched, step)
            said = failure_of(result, target)
        if said is not None:
            assert "No space left" in said
            assert "nothing was changed" in said
            assert files(target) == BEFORE
            assert not (target / FOLDER).exists()
            refused += 1
        else:  # not refused any more, or only when it tidied up
            assert without_folder(target) == AFTER
            if left:
                break
    assert refused >= 15


def failure_of(result: Path, target: Path) -> str | None:
    try:
        place(result, target)
    except CommandFailed as error:
        return error.message
    return None


def refuse_at(patched: pytest.MonkeyPatch, step: int) -> list[None]:
    """Let one rename, folder or file be refused, at the given step; answers what is left until then."""
    left: list[None] = [None] * (step + 1)

    def counting(name: str) -> None:
        real = getattr(os, name)

        def refusing(*arguments: object, **options: object) -> object:
            if FOLDER in repr(arguments) and left:
                left.pop()
                if not left:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "somewhere")
            return real(*arguments, **options)

        patched.setattr(os, name, refusing)

    for name in ("rename", "mkdir", "open", "fsync"):
        counting(name)
    return left


KILLED = """
import os, sys
from pathlib import Path
from tests.unit.test_cli_placing import place

left = int(sys.argv[1])
def at(name):
    real = getattr(os, name)
    def counted(*arguments, **options):
        global left
        done = real(*arguments, **options)
        if ".portside-apply" in repr(arguments):
            left -= 1
            if left == 0:
                os.kill(os.getpid(), 9)
        return done
    setattr(os, name, counted)
for name in ("rename", "unlink"):
    at(name)
place(Path(sys.argv[2]), Path(sys.argv[3]))
"""


def place_and_kill(step: int, result: Path, target: Path) -> bool:
    """Whether it was killed before it was through."""
    command = [sys.executable, "-c", KILLED, str(step), str(result), str(target)]
    environment = {"PYTHONPATH": str(Path.cwd()), "PATH": os.environ["PATH"]}
    done = subprocess.run(command, check=False, env=environment)
    assert done.returncode in {0, -9}
    return done.returncode == -9


def test_a_killed_apply_is_taken_back_by_the_next(tmp_path: Path) -> None:
    """SIGKILL after every rename: what is half done is undone, whole, and then done."""
    result, halves, step, killed = result_in(tmp_path), 0, 0, True
    while killed:
        step += 1
        target = write(tmp_path / f"target-{step}", BEFORE)
        killed = place_and_kill(step, result, target)
        half = (target / FOLDER / "journal.json").exists()
        halves += half
        assert half or without_folder(target) in (BEFORE, AFTER)
        if without_folder(target) != AFTER or half:
            assert place(result, target) == ("the-job" if half else None)
        assert without_folder(target) == AFTER
    assert halves >= 8


def test_what_was_written_after_a_killed_apply_is_not_thrown_away(tmp_path: Path) -> None:
    result, target = result_in(tmp_path), write(tmp_path / "target", BEFORE)
    assert place_and_kill(6, result, target)
    assert files(target)["a"] == AFTER["a"]
    (target / "a").write_bytes(b"written since\n")
    with pytest.raises(CommandFailed, match=r"'a' was written to since; all others were put back"):
        place(result, target)
    assert without_folder(target) == BEFORE | {"a": b"written since\n"}
    assert [path.read_bytes() for path in (target / FOLDER / "old").iterdir()] == [BEFORE["a"]]


def test_what_changes_between_look_and_rename_is_not_overwritten(tmp_path: Path) -> None:
    result, target = result_in(tmp_path), write(tmp_path / "target", BEFORE)
    with placing(target) as making:
        present = pack_present(target, [*BEFORE, *AFTER], tmp_path / "present.tar")
        (target / "a").write_bytes(b"mine\n")
        with pytest.raises(CommandFailed, match="'a' was changed meanwhile; nothing was changed"):
            making.place("the-job", result, GONE, present)
    assert files(target) == BEFORE | {"a": b"mine\n"}
