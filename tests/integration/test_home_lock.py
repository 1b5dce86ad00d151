"""One state directory, one orchestrator."""

from __future__ import annotations

import shutil
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.errors import HomeTaken, HomeUnusable
from orchestrator.home import operator_token, own_home, prepare_home
from tests.support.homes import remove_sockets

_OWNING = """
import sys
from pathlib import Path
from orchestrator.home import own_home
with own_home(Path(sys.argv[1])):
    print("mine", flush=True)
    sys.stdin.read()
"""


def test_a_second_orchestrator_on_a_home_is_refused_until_the_first_is_gone(tmp_path: Path) -> None:
    """BR-135: a second orchestrator on the same state directory refuses, even after kill -9 of the first."""
    home = tmp_path / "home"
    command = [sys.executable, "-c", _OWNING, str(home)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "mine\n"
        with pytest.raises(HomeTaken, match=f"process {first.pid}"), own_home(home):
            pass
        first.send_signal(signal.SIGKILL)
        first.wait()
    with own_home(home):
        pass
    with own_home(home):
        pass
    remove_sockets(home)


def test_a_home_is_private_and_keeps_its_identity(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o755)
    assert prepare_home(home) == prepare_home(home)
    assert operator_token(home / "operator.token") == operator_token(home / "operator.token")
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert stat.S_IMODE((home / "operator.token").stat().st_mode) == 0o600
    assert {path.name for path in home.iterdir() if path.is_file()} == {"instance-id", "operator.token"}


def test_a_copy_of_a_home_is_refused_while_the_first_is_in_use(tmp_path: Path) -> None:
    """BR-135: both have one id, and each would take the other's sockets and sandboxes for its own."""
    first, copy = tmp_path / "home", tmp_path / "copy"
    with own_home(first):
        shutil.copytree(first, copy)
        with pytest.raises(HomeUnusable, match=rf"is a copy of.*remove {copy}/instance-id"), own_home(copy):
            pass
    with own_home(copy):  # a copy that is all there is goes on
        pass
    remove_sockets(copy)
    (copy / "instance-id").unlink()
    with own_home(first), own_home(copy):
        pass
    for home in (first, copy):
        remove_sockets(home)


@pytest.mark.parametrize("content", ["", "\n", "../../x", "0" * 31, "0" * 33, "F" * 32, "\ufeff" + "0" * 32])
def test_a_damaged_id_is_nobody_s(tmp_path: Path, content: str) -> None:
    """BR-135: with an empty one the sockets of every orchestrator of the machine would be its own."""
    prepare_home(tmp_path)
    (tmp_path / "instance-id").write_text(content)
    with pytest.raises(HomeUnusable, match=f"{tmp_path}/instance-id is damaged; restore it, or remove it"):
        prepare_home(tmp_path)


@pytest.mark.parametrize("content", ["", "short", "with a blank" * 9])
def test_a_damaged_operator_token_opens_nothing(tmp_path: Path, content: str) -> None:
    """BR-135."""
    (tmp_path / "operator.token").write_text(content)
    with pytest.raises(HomeUnusable, match=r"operator\.token is damaged"):
        operator_token(tmp_path / "operator.token")
