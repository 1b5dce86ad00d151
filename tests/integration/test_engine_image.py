"""The worker image, built through the engine's API (DC-3)."""

from __future__ import annotations

import asyncio
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from container.adapters.docker.build_context import Sources
from container.adapters.docker.connection import Connection
from container.adapters.docker.engine import DockerEngine
from container.adapters.docker.host_base import HOST_BASE
from container.adapters.docker.image import DEFAULT_BASE, WorkerImage
from container.engine.errors import EngineError, ImageMissing
from tests.support.sandboxes import Sandboxes

pytestmark = pytest.mark.docker


@pytest.fixture
def copied(tmp_path: Path) -> Sources:
    """The image's sources in a place of their own, to be changed."""
    here = Sources.here()
    for package in ("worker", "tool_registry", "container"):
        ignore = shutil.ignore_patterns("__pycache__")
        shutil.copytree(here.root / package, tmp_path / "src" / package, ignore=ignore)
    lock = shutil.copy(here.lock, tmp_path / "src" / here.lock.name)
    return Sources(root=tmp_path / "src", lock=Path(lock))


async def test_the_image_holds_worker_and_core_and_nothing_of_the_orchestrator(boxes: Sandboxes) -> None:
    code = (
        "import importlib.util as u, worker, tool_registry, httpx, pydantic, jsonschema_rs, sys\n"
        "names = ['worker', 'tool_registry', 'tool_registry.mcp', 'orchestrator', 'container', 'wasm_tools',"
        " 'docker', 'fastapi', 'openai', 'anthropic']\n"
        "print([name for name in names if u.find_spec(name)], worker.__cached__ is not None)\n"
        "import os; print(os.path.exists(worker.__cached__), os.path.exists(httpx.__cached__))\n"
    )
    status, printed = await boxes.run("python", "-c", code)
    assert status.exit_code == 0, printed
    assert printed.splitlines() == ["['worker', 'tool_registry'] True", "True True"]


async def test_an_image_that_is_there_is_not_built_again(boxes: Sandboxes, tmp_path: Path) -> None:
    image = WorkerImage(_connection(boxes), cache_dir=tmp_path)
    said: list[str] = []
    assert await image.ensure(said.append) == boxes.image
    assert said == []
    assert (await image.status()).present


async def test_other_sources_make_the_image_stale_and_another_tag(
    boxes: Sandboxes, copied: Sources, tmp_path: Path
) -> None:
    await asyncio.to_thread((copied.root / "worker" / "extra.py").write_text, "x = 1\n")
    status = await WorkerImage(_connection(boxes), cache_dir=tmp_path, sources=copied).status()
    assert not status.present
    assert boxes.image in status.stale
    assert "portside image build" in status.message


async def test_a_build_that_fails_says_why_with_its_last_lines(
    boxes: Sandboxes, copied: Sources, tmp_path: Path
) -> None:
    dockerfile = copied.root / "container" / "Dockerfile"
    text = "ARG BASE_IMAGE\nFROM ${BASE_IMAGE}\nRUN echo the reason && false\n"
    await asyncio.to_thread(dockerfile.write_text, text)
    empty = replace(copied, lock=tmp_path / "empty.lock")
    await asyncio.to_thread(empty.lock.write_text, "")
    image = WorkerImage(_connection(boxes), cache_dir=tmp_path, base=await _base(boxes), sources=empty)
    with pytest.raises(EngineError, match=r"could not be built(.|\n)*the reason"):
        await image.ensure()


async def test_a_base_that_was_asked_for_and_cannot_be_had_is_not_replaced(
    boxes: Sandboxes, tmp_path: Path
) -> None:
    image = WorkerImage(_connection(boxes), cache_dir=tmp_path, base="127.0.0.1:1/nothing:1")
    with pytest.raises(ImageMissing, match=r"127\.0\.0\.1:1/nothing:1"):
        await image.ensure()


async def test_a_library_whose_hash_differs_stops_the_build(
    boxes: Sandboxes, copied: Sources, tmp_path: Path
) -> None:
    wrong = "--hash=sha256:" + "0" * 64
    await asyncio.to_thread(copied.lock.write_text, f"h11==0.16.0 {wrong}\n")
    image = WorkerImage(_connection(boxes), cache_dir=tmp_path, base=await _base(boxes), sources=copied)
    with pytest.raises(EngineError, match=r"(?i)can't be fetched(.|\n)*hash"):
        await image.ensure()


async def _base(boxes: Sandboxes) -> str:
    """The base that the session's image was built on."""
    try:
        await boxes.engine.prepare(HOST_BASE)
    except ImageMissing:
        return DEFAULT_BASE
    return HOST_BASE


def _connection(boxes: Sandboxes) -> Connection:
    assert isinstance(boxes.engine, DockerEngine)
    return boxes.engine.connection
