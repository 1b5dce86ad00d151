"""What the hub's signature on a message is over.

Messages of a thread count up from one, and the number is signed: one that is missing in the middle, that
changed its place or that was put in shows. A cut end shows by the thread's own count, which is not signed.
"""

from __future__ import annotations

import json

from orchestrator.domain.network.identities import NetworkName
from orchestrator.domain.network.threads import Message

VERSION = 1
_PREFIX = f"portside message {VERSION}\n".encode()


def signed_bytes(network: NetworkName, message: Message) -> bytes:
    """The bytes under the signature: ASCII JSON with sorted keys, behind a line that says what it is."""
    content = {
        "v": VERSION,
        "key_id": message.key_id,
        "network": network,
        "thread_id": message.thread_id,
        "sequence": message.sequence,
        "message_id": message.id,
        "kind": message.kind.value,
        "sender": message.sender,
        "sender_instance": message.sender_instance,
        "recipients": [[one.agent, one.instance_id] for one in message.recipients],
        "subject": message.subject,
        "body": message.body,
        "task_id": message.task_id,
        "resource": message.resource,
        "sent_at": message.created_at.isoformat(timespec="microseconds"),
    }
    return _PREFIX + json.dumps(content, sort_keys=True, separators=(",", ":")).encode()
