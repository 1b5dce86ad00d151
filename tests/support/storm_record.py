"""What two agents said and saw while their orchestrator was killed, and whether it was right."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from orchestrator.domain.network.task_states import TRANSITIONS, TaskState

_RECIPIENTS = {"ask": "helper", "reply": "boss"}


@dataclass(frozen=True)
class Fetch:
    """An answer of `network_inbox` that arrived.

    Attributes:
        life: in which run of the orchestrator.
    """

    member: str
    life: int
    items: list[dict[str, Any]]


@dataclass
class Record:
    """What was done and seen; a call whose answer did not arrive was tried and not acknowledged.

    Attributes:
        tried: each body, by kind, in order; "ask 7" is the seventh.
        known: the ids of acknowledged ones.
        fetches: in the order in which they arrived.
        tasks: all that there are in the end, with their histories.
    """

    tried: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    known: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    fetches: list[Fetch] = field(default_factory=list[Fetch])
    tasks: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    def tries(self, kind: str) -> str:
        """The next body of a kind, about to be sent."""
        sent = self.tried.setdefault(kind, [])
        sent.append(f"{kind} {len(sent)}")
        return sent[-1]

    def acknowledged(self, kind: str, body: str, given_id: str) -> None:
        """Its call was answered."""
        self.known.setdefault(kind, {})[body] = given_id

    def quiet(self, life: int) -> bool:
        """Each member's last two inboxes of this run were empty."""
        last = [self._own(member)[-2:] for member in _RECIPIENTS.values()]
        return all(len(two) == 2 and not any(one.items or one.life != life for one in two) for two in last)

    def summary(self) -> str:
        """In numbers."""
        sent = ", ".join(f"{len(bodies)} x {kind}" for kind, bodies in self.tried.items())
        lost = sum(len(bodies) - len(self.known.get(kind, ())) for kind, bodies in self.tried.items())
        again = sum(item["redelivered"] for fetch in self.fetches for item in fetch.items)
        return f"{sent}; {lost} calls cut off, {again} items handed out again"

    def faults(self) -> list[str]:
        """Everything that should not have happened."""
        checks = (self._lost(), self._repeated(), self._disordered(), self._tasks())
        return [fault for check in checks for fault in check]

    def _messages(self, member: str) -> Iterator[tuple[int, Fetch, dict[str, Any]]]:
        for number, fetch in enumerate(self._own(member)):
            yield from ((number, fetch, item) for item in fetch.items if "message_id" in item)

    def _own(self, member: str) -> list[Fetch]:
        return [fetch for fetch in self.fetches if fetch.member == member]

    def _said(self, kind: str) -> list[tuple[str, str]]:
        """Body and id of every message of a kind that its recipient saw, as often as it was seen."""
        items = [item for _, _, item in self._messages(_RECIPIENTS[kind])]
        return [(item["body"], item["message_id"]) for item in items if item["kind"] == kind]

    def _lost(self) -> Iterator[str]:
        for kind in _RECIPIENTS:
            seen, known = set(self._said(kind)), self.known.get(kind, {})
            bodies = [body for body, _ in seen]
            yield from (
                f"{body!r} was acknowledged and not seen" for body in known.items() if body not in seen
            )
            yield from (f"{body!r} was never sent" for body in bodies if body not in self.tried[kind])
            yield from (f"{body!r} came as two messages" for body in bodies if bodies.count(body) > 1)

    def _repeated(self) -> Iterator[str]:
        for member in _RECIPIENTS.values():
            before: dict[str, tuple[int, Fetch]] = {}
            for number, fetch, item in self._messages(member):
                name = f"{item['message_id']} ({item['body']!r})"
                if name in before:
                    if not item["redelivered"]:
                        yield f"{name} came again and did not say so"
                    if self._proven(member, *before[name]):
                        yield f"{name} came again after its receipt was proven"
                before[name] = number, fetch

    def _proven(self, member: str, at: int, fetch: Fetch) -> bool:
        """The member's next call of the same run was answered: it proved that this one had arrived."""
        own = self._own(member)
        return at + 1 < len(own) and own[at + 1].life == fetch.life

    def _disordered(self) -> Iterator[str]:
        for kind in _RECIPIENTS:
            order = [
                int(body.rpartition(" ")[2]) for body in dict.fromkeys(body for body, _ in self._said(kind))
            ]
            yield from (f"{kind} {b} came after {kind} {a}" for a, b in pairwise(order) if a > b)

    def _tasks(self) -> Iterator[str]:
        made = [one["objective"] for one in self.tasks]
        yield from (f"{one!r} was made twice" for one in sorted({one for one in made if made.count(one) > 1}))
        there = {one["task_id"] for one in self.tasks}
        for objective, task_id in self.known.get("task", {}).items():
            if task_id not in there:
                yield f"{objective!r} was acknowledged and is not there"
        for one in self.tasks:
            states = [TaskState(entry["state"]) for entry in one["history"]]
            if not states[-1].terminal:
                yield f"{one['objective']!r} is {states[-1]} in the end"
            for a, b in pairwise(states):
                if a is not b and b not in TRANSITIONS[a]:
                    yield f"{one['objective']!r} went from {a} to {b}"
