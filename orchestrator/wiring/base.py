"""Time, names and storage: what everything else stands on."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass

from orchestrator.adapters.blobs.files import FileBlobStore
from orchestrator.adapters.db.stores import Stores, open_stores
from orchestrator.adapters.ids.uuid7 import Uuid7Ids
from orchestrator.adapters.secrets.master_key import MasterKey
from orchestrator.adapters.secrets.sealing import AesGcmSealer
from orchestrator.home import prepare_home
from orchestrator.services.secrets import SecretService
from orchestrator.services.signing import TokenSigner
from orchestrator.settings import Settings
from orchestrator.wiring.models import secret_text
from tool_registry.clock import Clock
from tool_registry.redaction import Redactor
from wasm_tools.cache import load_or_create_key
from wasm_tools.runtime import WasmRuntime
from worker.clock import SystemClock


@dataclass(frozen=True, slots=True)
class Base:
    """Time, names and storage."""

    settings: Settings
    clock: SystemClock
    ids: Uuid7Ids
    instance: str
    stores: Stores
    blobs: FileBlobStore
    redactor: Redactor
    secrets: SecretService
    signer: TokenSigner
    stack: AsyncExitStack


async def open_base(settings: Settings, stack: AsyncExitStack) -> Base:
    """Make the home ready and open what is kept in it; its schema is brought up to date."""
    clock, ids = SystemClock(), Uuid7Ids()
    instance = await asyncio.to_thread(prepare_home, settings.home)
    stores = await open_state(settings, clock)
    stack.push_async_callback(stores.close)
    await stores.database.migrate()
    redactor = Redactor(_known_secrets(settings))
    secrets = SecretService(stores.secrets, redactor)
    await secrets.learn_stored()
    signer = TokenSigner(stores.signing_keys, clock, ids)
    await signer.load()
    return Base(
        settings=settings,
        clock=clock,
        ids=ids,
        instance=instance,
        stores=stores,
        blobs=FileBlobStore(settings.home / "blobs"),
        redactor=redactor,
        secrets=secrets,
        signer=signer,
        stack=stack,
    )


async def open_state(settings: Settings, clock: SystemClock) -> Stores:
    """The stores of a home, whose schema is left as it is.

    Raises:
        PortsideError, StoreError, OSError: the master key or the database can't be used.
    """
    master = await asyncio.to_thread(MasterKey.load, settings.home, secret_text(settings.master_key))
    return await open_stores(settings.database, sealer=AesGcmSealer(master), clock=clock)


async def open_wasm(settings: Settings, clock: Clock) -> WasmRuntime:
    """What compiles and runs WASM tools."""
    key = await asyncio.to_thread(load_or_create_key, settings.home / "keys" / "wasm-cache.key")
    return WasmRuntime(cache_dir=settings.cache_dir / "wasm", cache_key=key, clock=clock)


def _known_secrets(settings: Settings) -> dict[str, str]:
    keys = {"OPENAI_API_KEY": settings.openai_api_key, "ANTHROPIC_API_KEY": settings.anthropic_api_key}
    return {name: key.get_secret_value() for name, key in keys.items() if key is not None}
