"""All stores over one database."""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.adapters.db.artifacts import SqlArtifactStore
from orchestrator.adapters.db.audit import SqlAuditStore
from orchestrator.adapters.db.channel import SqlChannelStore
from orchestrator.adapters.db.confirmations import SqlConfirmationStore
from orchestrator.adapters.db.database import Database
from orchestrator.adapters.db.deliveries import SqlDeliveryStore
from orchestrator.adapters.db.events import SqlEventStore
from orchestrator.adapters.db.executions import SqlExecutionStore
from orchestrator.adapters.db.jobs import SqlJobStore
from orchestrator.adapters.db.member_tokens import SqlMemberTokenStore
from orchestrator.adapters.db.network_store import SqlNetworkStore
from orchestrator.adapters.db.representatives import SqlRepresentativeStore
from orchestrator.adapters.db.secrets import SqlSecretStore
from orchestrator.adapters.db.signing_keys import SqlSigningKeyStore
from orchestrator.adapters.db.tool_switches import SqlToolSwitches
from orchestrator.ports.artifacts import ArtifactStore
from orchestrator.ports.audit import AuditStore
from orchestrator.ports.deliveries import DeliveryStore
from orchestrator.ports.events import EventStore
from orchestrator.ports.executions import ExecutionStore
from orchestrator.ports.jobs import JobStore
from orchestrator.ports.member_tokens import MemberTokenStore
from orchestrator.ports.network import NetworkStore
from orchestrator.ports.representatives import ChannelStore, ConfirmationStore, RepresentativeStore
from orchestrator.ports.sealer import Sealer
from orchestrator.ports.secrets import SecretStore
from orchestrator.ports.signing_keys import SigningKeyStore
from orchestrator.ports.tool_switches import ToolSwitches
from tool_registry.clock import Clock


@dataclass(frozen=True, slots=True)
class Stores:
    """Every store, and the database under them for `migrate` and `check`."""

    database: Database
    jobs: JobStore
    events: EventStore
    executions: ExecutionStore
    audit: AuditStore
    deliveries: DeliveryStore
    artifacts: ArtifactStore
    secrets: SecretStore
    signing_keys: SigningKeyStore
    message_keys: SigningKeyStore
    network: NetworkStore
    switches: ToolSwitches
    member_tokens: MemberTokenStore
    representatives: RepresentativeStore
    confirmations: ConfirmationStore
    channel: ChannelStore

    async def close(self) -> None:
        """Let go of the database."""
        await self.database.close()


async def open_stores(url: str, *, sealer: Sealer, clock: Clock) -> Stores:
    """The stores in the database at `url`, whose schema is left as it is.

    Raises:
        StoreError: the URL can't be used, or the SQLite file can't be opened.
    """
    database = await Database.open(url)
    return Stores(
        database=database,
        jobs=SqlJobStore(database),
        events=SqlEventStore(database),
        executions=SqlExecutionStore(database),
        audit=SqlAuditStore(database),
        deliveries=SqlDeliveryStore(database),
        artifacts=SqlArtifactStore(database),
        secrets=SqlSecretStore(database, sealer, clock),
        signing_keys=SqlSigningKeyStore(database, sealer),
        message_keys=SqlSigningKeyStore(database, sealer, purpose="messages"),
        network=SqlNetworkStore(database),
        switches=SqlToolSwitches(database),
        member_tokens=SqlMemberTokenStore(database),
        representatives=SqlRepresentativeStore(database),
        confirmations=SqlConfirmationStore(database),
        channel=SqlChannelStore(database),
    )
