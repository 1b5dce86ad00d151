"""`portside image`: the worker image."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from container.engine.errors import EngineError
from orchestrator.cli.failures import CommandFailed
from orchestrator.cli.invocation import AsJson, finish, settings_from_environment
from orchestrator.cli.output import Output
from orchestrator.cli.summary import table
from orchestrator.settings import Settings

if TYPE_CHECKING:
    from orchestrator.wiring.engines import DockerEngine, WorkerImage

app = typer.Typer(name="image", help="The worker image.", no_args_is_help=True)


@app.command()
def build(
    force: Annotated[bool, typer.Option("--force", help="Also when it is there.")] = False,
    as_json: AsJson = False,
) -> None:
    """Build the image that fits this Portside, unless it is there."""
    settings, output = settings_from_environment(), Output(as_json)

    async def work() -> None:
        async with _worker_image(settings) as image:
            tag = await image.ensure(output.say, force=force)
        output.show({"tag": tag}, f"{tag} is ready")

    finish(work())


@app.command("list")
def list_images(as_json: AsJson = False) -> None:
    """List the worker images on the engine; stale ones are of other sources than this Portside."""
    settings, output = settings_from_environment(), Output(as_json)

    async def work() -> None:
        async with _worker_image(settings) as image:
            found = [
                {"tag": one.tag, "size_bytes": one.size_bytes, "stale": one.stale}
                for one in await image.list()
            ]
        rows = [
            (str(one["tag"]), f"{int(one['size_bytes']) / 1e6:.0f} MB", "stale" if one["stale"] else "")
            for one in found
        ]
        output.show(found, table(("tag", "size", ""), rows))

    finish(work())


@app.command()
def prune(as_json: AsJson = False) -> None:
    """Remove stale worker images and the workers that were taken from them; what a job uses stays."""
    settings, output = settings_from_environment(), Output(as_json)

    async def work() -> None:
        from orchestrator.wiring import engines

        async with _engine(settings) as engine:
            image = engines.worker_image(settings, engine)
            kits = await engines.worker_kit(engine).remove_stale((await image.status()).tag)
            removed = [*kits, *await image.remove_stale()]
        output.show(removed, "\n".join(f"removed {name}" for name in removed) or "nothing was stale")

    finish(work())


@asynccontextmanager
async def _worker_image(settings: Settings) -> AsyncGenerator[WorkerImage]:
    from orchestrator.wiring import engines  # takes a second

    async with _engine(settings) as engine:
        yield engines.worker_image(settings, engine)


@asynccontextmanager
async def _engine(settings: Settings) -> AsyncGenerator[DockerEngine]:
    from orchestrator.wiring import engines

    try:
        engine = await engines.open_engine(settings)
        try:
            yield engine
        finally:
            await engine.close()
    except EngineError as error:
        raise CommandFailed(error.message) from error
