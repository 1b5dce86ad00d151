"""Settings: `PORTSIDE_<FIELD>` in the environment."""

from __future__ import annotations

import os
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Field, SecretStr
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from orchestrator.domain.egress.addresses import Network, parse_networks


def _default_home() -> Path:
    state = os.environ.get("XDG_STATE_HOME")
    return (Path(state) if state else Path.home() / ".local" / "state") / "portside"


def _absolute(value: object) -> object:
    return Path(value).expanduser().absolute() if isinstance(value, str | Path) else value


def _networks(value: object) -> object:
    return parse_networks(value) if isinstance(value, str) else value


def _addresses(value: object) -> object:
    return (
        tuple(str(ip_address(one.strip())) for one in value.split(",")) if isinstance(value, str) else value
    )


AbsolutePath = Annotated[Path, NoDecode, BeforeValidator(_absolute)]
Networks = Annotated[tuple[Network, ...], NoDecode, BeforeValidator(_networks)]
Addresses = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_addresses)]


class Settings(BaseSettings):
    """Everything that can be set from outside.

    Attributes:
        home: database, keys, blobs, tools and sockets; only its owner can read it.
        database_url: SQLite in `home` unless set.
        master_key: seals secrets; a file in `home` unless set.
        engine_url: of the container engine; found by itself unless set.
        image: of sandboxes; the worker image that fits this code unless set.
        embedder_path: the model that searches for agents; the installed package's unless set.
        sandbox_runtime: what sandboxes run in, such as runsc; the engine's default unless set.
        disk_bytes: of a job's workspace, and of the worker's own state, each; 0 for no bound.
        disk_files: how many files each of them may hold.
        model: for jobs that name none.
        model_base_url: of an OpenAI-compatible server.
        egress_allow_private: networks that jobs may reach although they are not public, with commas between.
        egress_squid: the squid that carries jobs' connections; found by itself unless set.
        egress_nameservers: addresses of name servers for allowed hosts; the system's unless set.
        listen: HOST:PORT of this machine where agents from outside reach the MCP endpoints.
        session_idle_s: how long a session of such an agent lasts when nothing is heard of it.
        tools_wait_s: how long a job's first catalogue waits for an MCP server, from the server's start.
    """

    model_config = SettingsConfigDict(env_prefix="PORTSIDE_", extra="ignore", frozen=True)

    home: AbsolutePath = Field(default_factory=_default_home)
    database_url: str = ""
    master_key: SecretStr | None = None
    engine_url: str = ""
    image: str = ""
    base_image: str = ""
    embedder_path: AbsolutePath | None = None
    sandbox_runtime: str = ""
    disk_bytes: int = Field(default=8 * 1024**3, ge=0)
    disk_files: int = Field(default=1_000_000, ge=1000)
    model: str = ""
    model_base_url: str = ""
    network: str = "local"
    agent: str = "coder"
    max_running_jobs: int = Field(default=20, ge=1)
    max_running_jobs_per_network: int | None = Field(default=None, ge=1)
    register_timeout_s: float = Field(default=60.0, gt=0)
    token_lifetime_s: float = Field(default=3600.0, ge=10)
    stop_grace_s: float = Field(default=20.0, ge=0)
    egress_allow_private: Networks = ()
    egress_squid: str = ""
    egress_nameservers: Addresses = ()
    listen: str = ""
    session_idle_s: float = Field(default=600.0, ge=1, le=86_400)
    tools_wait_s: float = Field(default=10.0, ge=0, le=25)
    openai_api_key: SecretStr | None = Field(default=None, validation_alias="OPENAI_API_KEY")
    anthropic_api_key: SecretStr | None = Field(default=None, validation_alias="ANTHROPIC_API_KEY")

    @property
    def database(self) -> str:
        """Where state is kept."""
        return self.database_url or f"sqlite:///{self.home / 'portside.db'}"

    @property
    def api_socket(self) -> Path:
        """Where operators reach the orchestrator."""
        return self.home / "api.sock"

    @property
    def operator_token_file(self) -> Path:
        """What operators prove themselves with."""
        return self.home / "operator.token"

    @property
    def tools_dir(self) -> Path:
        """WASM tools and their sidecars."""
        return self.home / "tools"

    @property
    def mcp_file(self) -> Path:
        """MCP servers."""
        return self.home / "mcp.json"

    @property
    def agents_file(self) -> Path:
        """Agents that a file defines."""
        return self.home / "agents.yaml"

    @property
    def cache_dir(self) -> Path:
        """What can be made again."""
        return self.home / "cache"

    @property
    def egress_dir(self) -> Path:
        """Squid's configuration, pid and messages."""
        return self.home / "egress"

    @property
    def engine_dir(self) -> Path:
        """A private container engine's socket, data and pid."""
        return self.home / "engine"
