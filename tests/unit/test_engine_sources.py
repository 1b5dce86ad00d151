"""What goes into the worker image and its base (DC-3)."""

from __future__ import annotations

import re
from pathlib import Path

from container.adapters.docker.build_context import Sources
from container.adapters.docker.host_base import Package, closure

# --- the image's parts ---


def test_the_context_has_worker_and_core_and_not_the_mcp_adapter() -> None:
    names = {name for name, _path in Sources.here().files()}
    assert "Dockerfile" in names
    assert "site-packages/worker/__init__.py" in names
    assert "site-packages/tool_registry/definition.py" in names
    assert not any("/mcp/" in name or "__pycache__" in name or name.endswith(".pyc") for name in names)


def test_the_digest_changes_with_source_lock_and_base(tmp_path: Path) -> None:
    for name in ("container/Dockerfile", "worker/a.py", "tool_registry/b.py", "lock"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    sources = Sources(root=tmp_path, lock=tmp_path / "lock")
    digests = [sources.digest("base-1"), sources.digest("base-1"), sources.digest("base-2")]
    for name in ("container/Dockerfile", "worker/a.py", "tool_registry/b.py", "lock"):
        (tmp_path / name).write_text("changed")
        digests.append(sources.digest("base-1"))
    assert digests[0] == digests[1]
    assert len(set(digests)) == 6
    assert all(re.fullmatch("[0-9a-f]{16}", digest) for digest in digests)


def test_every_locked_library_carries_hashes() -> None:
    lock = Sources.here().lock.read_text()
    assert len(re.findall(r"^[a-z][\w.-]*==", lock, re.MULTILINE)) >= 10
    for entry in re.split(r"\n(?=[a-z])", lock)[1:]:
        assert "--hash=sha256:" in entry, entry


def test_a_package_brings_what_it_depends_on_through_alternatives_and_virtual_names() -> None:
    def package(name: str, depends: str = "", provides: str = "") -> Package:
        return Package(name, "1", depends, provides)

    installed = {
        p.name: p
        for p in (
            package("tool", "libone (>= 2), absent | mta, perl:any"),
            package("libone", "tool"),
            package("postbox", provides="mta (= 1)"),
            package("perl", "heavy"),
            package("heavy"),
            package("unrelated"),
        )
    }
    assert [p.name for p in closure(installed, ["tool"])] == ["libone", "postbox", "tool"]
