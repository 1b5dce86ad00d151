"""The worker's memory and environment are closed to what runs beside it (BR-035)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

_SCRIPT = """
import ctypes, os, resource, subprocess, sys
from worker.hardening import harden

def denied():
    probe = f"cat /proc/{os.getpid()}/environ > /dev/null; head -c 0 /proc/{os.getpid()}/mem"
    return subprocess.run(["sh", "-c", probe], capture_output=True, text=True).stderr.count("denied")

if os.geteuid() == 0:  # root may read everything; the container's user is not root
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
    ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)  # what the change of user has switched off
print(denied())
harden()
print(denied())
print(resource.getrlimit(resource.RLIMIT_CORE))
# A grandchild whose parent ends is reparented to this process.
inner = subprocess.run(
    ["sh", "-c", "sleep 30 >/dev/null 2>&1 & echo $!"], capture_output=True, text=True, check=True
)
orphan = int(inner.stdout)
stat = open(f"/proc/{orphan}/stat").read().rsplit(")", 1)[1].split()
os.kill(orphan, 9)
print(int(stat[1]) == os.getpid())
"""


def test_a_child_of_the_same_user_reads_neither_environment_nor_memory() -> None:
    """The token lives in this memory. No core is written either, and orphans come back here."""
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT],
        env={"PYTHONPATH": str(root), "SECRET": "x", "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=True,
        cwd="/",
        timeout=60,
    )
    open_before, closed_after, core, orphan = done.stdout.split("\n")[:4]
    assert (open_before, closed_after) == ("0", "2")
    assert core == "(0, 0)"
    assert orphan == "True"
