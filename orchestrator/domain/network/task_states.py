"""A task's states as one table: what may follow what, and by whose word."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class TaskState(StrEnum):
    """Where a task stands."""

    PENDING = "pending"
    OFFERED = "offered"
    ACCEPTED = "accepted"
    WORKING = "working"
    BLOCKED = "blocked"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def terminal(self) -> bool:
        """Nothing follows."""
        return not MOVES[self]


class Role(StrEnum):
    """What somebody is to a task.

    The network routes offers, lets them lapse, and takes work back from instances that ended.
    """

    CREATOR = "its creator"
    OFFERED = "an instance that it is offered to"
    ASSIGNEE = "its assignee"
    NETWORK = "the network"


_PENDING, _OFFERED = TaskState.PENDING, TaskState.OFFERED
_ACCEPTED, _WORKING, _BLOCKED = TaskState.ACCEPTED, TaskState.WORKING, TaskState.BLOCKED
_COMPLETED, _FAILED, _CANCELLED = TaskState.COMPLETED, TaskState.FAILED, TaskState.CANCELLED

_network = frozenset({Role.NETWORK})
_creator = frozenset({Role.CREATOR, Role.NETWORK})
_offered = frozenset({Role.OFFERED})
_assignee = frozenset({Role.ASSIGNEE})
_parties = frozenset({Role.CREATOR, Role.ASSIGNEE, Role.NETWORK})

# Back to pending: an offer was declined or lapsed, or the instance that held the task ended. Cancelled by the
# network: the work that it was for was cancelled.
MOVES: Mapping[TaskState, Mapping[TaskState, frozenset[Role]]] = {
    _PENDING: {_OFFERED: _network, _CANCELLED: _creator},
    _OFFERED: {_PENDING: _offered | _network, _ACCEPTED: _offered, _CANCELLED: _creator},
    _ACCEPTED: {
        _PENDING: _network,
        _WORKING: _assignee,
        _BLOCKED: _assignee,
        _FAILED: _assignee | _network,
        _CANCELLED: _parties,
    },
    _WORKING: {
        _PENDING: _network,
        _BLOCKED: _assignee,
        _COMPLETED: _assignee,
        _FAILED: _assignee | _network,
        _CANCELLED: _parties,
    },
    _BLOCKED: {
        _PENDING: _network,
        _WORKING: _assignee,
        _FAILED: _assignee | _network,
        _CANCELLED: _parties,
    },
    _COMPLETED: {},
    _FAILED: {},
    _CANCELLED: {},
}

TRANSITIONS: Mapping[TaskState, frozenset[TaskState]] = {
    state: frozenset(moves) for state, moves in MOVES.items()
}

# What an agent may ask for, and for which of them it has to say why.
UPDATES = (_ACCEPTED, _WORKING, _BLOCKED, _COMPLETED, _FAILED, _CANCELLED)
NEEDS_REASON: Mapping[TaskState, str] = {
    _BLOCKED: "what blocks it",
    _COMPLETED: "the evidence that it is done",
    _FAILED: "what failed",
}
