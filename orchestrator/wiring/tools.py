"""The registry, what fills it, and what runs its tools."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from orchestrator.adapters.db.network_store import SqlNetworkStore
from orchestrator.adapters.db.profile_vectors import SqlProfileVectorStore
from orchestrator.adapters.embedding.minilm import MiniLmEmbedder
from orchestrator.adapters.files.watch import WatchedFolders
from orchestrator.ports.network import NetworkStore
from orchestrator.services.agent_file import AgentFile
from orchestrator.services.agent_search import AgentSearch
from orchestrator.services.agreements import Agreements
from orchestrator.services.audit_log import AuditLog
from orchestrator.services.collaboration_tools import collaboration_tools
from orchestrator.services.membership import NetworkMembership
from orchestrator.services.message_keys import MessageKeys
from orchestrator.services.network import NetworkService
from orchestrator.services.network_sweep import Arrivals
from orchestrator.services.network_tools import OWNER as NETWORK_OWNER
from orchestrator.services.network_tools import NetworkTool, network_tools
from orchestrator.services.outputs import Outputs
from orchestrator.services.starting_files import StartingFiles
from orchestrator.services.tool_desk import ToolDesk
from orchestrator.services.wasm_folder import WasmFolder
from orchestrator.settings import Settings
from orchestrator.wiring.agents import open_agents
from orchestrator.wiring.base import Base, open_wasm
from tool_registry.execution import Surroundings, ToolExecutor
from tool_registry.mcp.config import load_config
from tool_registry.mcp.control import McpServerFile
from tool_registry.mcp.grants import Grants
from tool_registry.mcp.login import Logins
from tool_registry.mcp.servers import McpServers
from tool_registry.registry import Offer, ToolRegistry
from wasm_tools.granted_host import Outside as GuestsOutside
from wasm_tools.granted_host import look_up
from wasm_tools.loading import WasmFiles
from worker.explainer import SubprocessExplainer

_WHOLE_BYTES = 16 * 1024 * 1024
_LOOKUPS = 8


@dataclass(frozen=True, slots=True)
class Tools:
    """The registry, what fills it, and what runs its tools."""

    registry: ToolRegistry
    executor: ToolExecutor
    for_agents: ToolExecutor
    folder: WasmFolder
    desk: ToolDesk
    mcp: McpServers
    mcp_file: McpServerFile
    membership: NetworkMembership
    outputs: Outputs
    audit: AuditLog
    network: NetworkService
    network_store: NetworkStore
    message_keys: MessageKeys
    agent_file: AgentFile
    arrivals: Arrivals


async def open_tools(base: Base) -> Tools:
    """Put together the registry and its sources; no tool is loaded yet."""
    clock, stores = base.clock, base.stores
    audit = AuditLog(stores.audit)
    base.stack.push_async_callback(audit.close)
    outputs = Outputs(base.blobs, stores.artifacts, clock, base.ids)
    message_keys = MessageKeys(stores.message_keys, clock, base.ids)
    await message_keys.load()
    network_store = SqlNetworkStore(stores.database, message_keys)
    network = NetworkService(network_store, clock, base.ids)
    registry = ToolRegistry(await stores.switches.disabled())
    arrivals = Arrivals()
    registry.replace(NETWORK_OWNER, [Offer(tool) for tool in _members_tools(base, network, arrivals)])
    around = Surroundings(
        clock=clock,
        audit=audit,
        redactor=base.redactor,
        keeper=outputs,
        explainer=SubprocessExplainer(),
        hosted=True,
    )
    # No job keeps what a person or an agent from outside asked for: it is answered whole, within reason.
    whole = replace(around, keeper=None, max_output_bytes=_WHOLE_BYTES)
    executor = ToolExecutor(registry, around)
    by_hand = ToolExecutor(registry, replace(whole, hosted=False))
    folder, desk = await _open_desk(base, registry, executor, by_hand)
    mcp, mcp_file = await _open_mcp(base, registry)
    return Tools(
        registry=registry,
        executor=executor,
        for_agents=ToolExecutor(registry, whole),
        folder=folder,
        desk=desk,
        mcp=mcp,
        mcp_file=mcp_file,
        membership=NetworkMembership(network),
        outputs=outputs,
        audit=audit,
        network=network,
        network_store=network_store,
        message_keys=message_keys,
        arrivals=arrivals,
        agent_file=await open_agents(base, network),
    )


async def _open_desk(
    base: Base, registry: ToolRegistry, executor: ToolExecutor, by_hand: ToolExecutor
) -> tuple[WasmFolder, ToolDesk]:
    """The tools directory, and what guests may reach through `executor`."""
    settings, stores = base.settings, base.stores
    # A name may take a resolver half a minute: guests that ask for such names wait for one another alone.
    lookups = ThreadPoolExecutor(_LOOKUPS, thread_name_prefix="wasm-lookup")
    base.stack.callback(lookups.shutdown, wait=False, cancel_futures=True)
    wasm = await open_wasm(settings, base.clock)
    base.stack.push_async_callback(wasm.close)
    outside = GuestsOutside(
        secret=stores.secrets.get,
        file=StartingFiles(stores.jobs, base.blobs).read,
        invoke=executor.execute,
        resolve=partial(look_up, threads=lookups),
    )
    folder = WasmFolder(
        registry,
        WasmFiles(wasm, outside),
        tools_dir=settings.tools_dir,
        agreements=Agreements(settings.home / "agreed"),
    )
    return folder, ToolDesk(registry, by_hand, folder, base.ids, switches=stores.switches)


async def _open_mcp(base: Base, registry: ToolRegistry) -> tuple[McpServers, McpServerFile]:
    """The MCP servers, and the file that names them."""
    file, secret, grants = base.settings.mcp_file, base.stores.secrets.get, Grants(base.stores.secrets)
    servers = McpServers(
        await asyncio.to_thread(load_config, file),
        on_tools=lambda owner, offers, instructions: registry.replace(
            owner, offers, instructions=instructions
        ),
        resolve_secret=secret,
        grants=grants,
        on_secrets=base.secrets.learn_of_server,
    )
    base.stack.push_async_callback(servers.close)
    logins = Logins(grants, secret)
    base.stack.push_async_callback(logins.close)
    return servers, McpServerFile(servers, file, logins=logins, resolve_secret=secret)


def _members_tools(base: Base, network: NetworkService, arrivals: Arrivals) -> list[NetworkTool]:
    """What a member of a network can do in it."""
    database = base.stores.database
    embedder = MiniLmEmbedder(base.settings.embedder_path)
    search = AgentSearch(base.stores.network, embedder, SqlProfileVectorStore(database), base.clock)
    base.stack.push_async_callback(search.close)
    return [
        *network_tools(network, arrivals.announce),
        *collaboration_tools(search, network.collaboration, arrivals.announce),
    ]


async def fill(tools: Tools) -> None:
    """Load the WASM tools and begin to connect the MCP servers."""
    await tools.folder.refresh()
    tools.mcp.start()


def watch(settings: Settings) -> WatchedFolders:
    """Hints about tools and the files of MCP servers and agents; the database beside them says nothing."""

    def wanted(path: Path) -> bool:
        return path.parent == settings.tools_dir or path in {settings.mcp_file, settings.agents_file}

    return WatchedFolders([settings.home, settings.tools_dir], wanted)
