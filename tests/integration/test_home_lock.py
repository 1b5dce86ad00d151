"""One state directory, one orchestrator."""

from __future__ import annotations

import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.errors import HomeTaken
from orchestrator.home import operator_token, own_home, prepare_home

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


def test_a_home_is_private_and_keeps_its_identity(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o755)
    assert prepare_home(home) == prepare_home(home)
    assert operator_token(home / "operator.token") == operator_token(home / "operator.token")
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert stat.S_IMODE((home / "operator.token").stat().st_mode) == 0o600
    assert {path.name for path in home.iterdir() if path.is_file()} == {"instance-id", "operator.token"}
