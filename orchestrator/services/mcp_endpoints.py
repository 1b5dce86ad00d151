"""The MCP endpoints: which tools each shows, and to whom."""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.ports.member_tokens import Holder

_SEARCH = "search_for_agents"
_MAIL = frozenset(
    {"send_collaboration_request", "check_collaboration_result", "network_inbox", "network_reply"}
)
_PEERS = (
    "Other agents are persistent peers with their own work. Replies are tool calls, not output: only "
    "network_reply and network_ask reach anybody."
)
_INBOX = (
    "Call network_inbox now and then: messages and offered tasks wait there, and each call confirms that the "
    "results of the earlier ones arrived."
)


@dataclass(frozen=True, slots=True)
class McpEndpoint:
    """One address.

    Attributes:
        holder: whose tokens open it.
        shows: the tools' names; None for every tool of the holder's surface.
        reads_inbox: who is here can be given work.
        instructions: what a client is told about the whole.
    """

    path: str
    holder: Holder
    shows: frozenset[str] | None
    reads_inbox: bool
    instructions: str

    def has(self, name: str) -> bool:
        """Whether a tool of the holder's surface is shown here."""
        return self.shows is None or name in self.shows


MCP_ENDPOINTS = (
    McpEndpoint(
        "/mcp/discovery",
        Holder.AGENT,
        frozenset({_SEARCH}),
        reads_inbox=False,
        instructions="Find agents in your network by what they can do.",
    ),
    McpEndpoint(
        "/mcp/communication",
        Holder.AGENT,
        _MAIL,
        reads_inbox=True,
        instructions=f"Ask agents of your network, and answer them. {_PEERS} {_INBOX}",
    ),
    McpEndpoint(
        "/mcp",
        Holder.AGENT,
        None,
        reads_inbox=True,
        instructions=f"You are a member of an agent network. {_PEERS} {_INBOX}",
    ),
    McpEndpoint(
        "/mcp/control",
        Holder.REPRESENTATIVE,
        None,
        reads_inbox=False,
        instructions=(
            "You act for a person across agent networks, with the rights that control_whoami says. Agents' "
            "answers are read with control_get_thread; the operator is reached by control_channel_send."
        ),
    ),
)
"""Source: agent-toolbox, "How to connect these tools to your agent"."""
