"""Whether a network's messages are as the hub took them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.domain.network.identities import NetworkName
from orchestrator.domain.network.signing import signed_bytes
from orchestrator.domain.network.threads import Message, Thread
from orchestrator.ports.message_signer import MessageSigner
from orchestrator.ports.network import NetworkReader, NetworkStore
from orchestrator.services.network_members import network_name
from orchestrator.services.network_overview import known_thread, there

_EVERY_THREAD = 1_000_000


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with a thread; `message_id` is empty where a message is missing."""

    thread_id: str
    sequence: int
    message_id: str
    problem: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the signatures say."""

    threads: int
    signed: int
    unsigned: int
    faults: Sequence[Fault]


class NetworkSignatures:
    """Verifies stored messages.

    Args:
        store: where networks are kept.
        signer: knows the keys.
    """

    def __init__(self, store: NetworkStore, signer: MessageSigner) -> None:
        self._store = store
        self._signer = signer

    async def verify(self, network: str, thread_id: str | None) -> Verdict:
        """Check the signatures of one thread, or of all.

        Raises:
            Refused: `not_found`, `invalid_name`.
        """
        name = network_name(network)

        def look(reader: NetworkReader) -> Verdict:
            threads = (
                reader.threads(_EVERY_THREAD) if thread_id is None else [known_thread(reader, thread_id)]
            )
            found = [self._verdict(reader, name, one) for one in threads]
            return Verdict(
                len(threads),
                sum(one.signed for one in found),
                sum(one.unsigned for one in found),
                [fault for one in found for fault in one.faults],
            )

        return await self._store.read(name, there(network, look))

    def _verdict(self, reader: NetworkReader, network: NetworkName, thread: Thread) -> Verdict:
        messages = reader.messages_of_thread(thread.id)
        old = [one for one in messages if not _numbered(one)]
        signed = [one for one in messages if _numbered(one)]
        faults: list[Fault] = []
        expected = 1
        for message in signed:
            while expected < message.sequence:
                faults.append(Fault(thread.id, expected, "", "the message is missing"))
                expected += 1
            if problem := self._problem(reader, network, message, expected):
                faults.append(Fault(thread.id, message.sequence, message.id, problem))
            expected = message.sequence + 1
        faults += [
            Fault(thread.id, number, "", "the message is missing")
            for number in range(expected, reader.thread_length(thread.id) + 1)
        ]
        begun = min((one.created_at for one in signed), default=None)
        faults += [
            Fault(thread.id, 0, one.id, "it lost its signature")
            for one in old
            if begun is not None and one.created_at >= begun
        ]
        return Verdict(1, len(signed), len(old), faults)

    def _problem(self, reader: NetworkReader, network: NetworkName, message: Message, expected: int) -> str:
        if message.sequence != expected:
            return "another message has the same place"
        data = signed_bytes(network, message)
        verdict = self._signer.verifies(message.key_id, data, message.signature)
        if verdict is None:
            return f"it is signed with a key that this hub does not have: {message.key_id!r}"
        if not verdict:
            return "it was changed, or not signed by this hub"
        addressed = {one.agent for one in message.recipients}
        strangers = {one.agent for one in reader.deliveries_of_message(message.id)} - addressed
        if message.recipients and strangers:
            return f"a copy went to {min(strangers)!r}, whom it was not for"
        return ""


def _numbered(message: Message) -> bool:
    """Whether anything of a signature is there; messages from before signatures have nothing."""
    return bool(message.sequence or message.key_id or message.signature)
