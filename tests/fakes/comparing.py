"""What the comparison's container does, in a sandbox in memory: the worker's own program on this machine."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from tests.fakes.engine import FakeSandbox
from worker.recovery import recover


async def compares(sandbox: FakeSandbox) -> int:
    """Compare what the sandbox was given, and leave the patch where it is collected."""
    given = sandbox.spec.socket_dir
    assert given is not None
    with tempfile.TemporaryDirectory() as folder:
        patch = await recover(given, Path(folder))
        sandbox.files["/workspace/changes.patch"] = (Path(folder) / "changes.patch").read_bytes()
    said = {"files": patch.files, "ignored": patch.ignored, "unreadable": patch.unreadable}
    sandbox.write(json.dumps(said) + "\n")
    return 0
