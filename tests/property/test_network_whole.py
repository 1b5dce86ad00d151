"""A whole network, driven at random through its tools (WN-3, WN-4, WN-5)."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from itertools import combinations
from typing import Any, TypeVar

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from orchestrator.domain.network.claims import scopes_overlap
from orchestrator.domain.network.identities import NetworkName, TaskId
from orchestrator.domain.network.task_states import UPDATES, TaskState
from orchestrator.domain.network.tasks import MAX_ATTEMPTS
from orchestrator.ports.network import NetworkReader
from tests.fakes.network_store import MemoryNetworkStore
from tests.support.networks import Caller, Refusal, World

T = TypeVar("T")

HERE, THERE = "local", "other"
AGENTS = ("ann", "bob", "cat")
SCOPES = ("src", "src/*.py", "src/[ab].py", "src/a.go", "**/a.py", "docs/**", ".")

names = st.sampled_from(AGENTS)
networks = st.sampled_from([HERE, THERE])


class NetworkMachine(RuleBasedStateMachine):
    """Two networks with agents of the same names; every rule is one call of one instance."""

    live = Bundle("live")
    tasks = Bundle("tasks")

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.store = MemoryNetworkStore()
        self.world = World(self.store)
        self.sent: dict[str, list[tuple[str, str]]] = {HERE: [], THERE: []}
        # What is proven received, by agent.
        self.received: dict[str, list[str]] = {}
        self.winners: dict[tuple[str, int], str] = {}
        self.count = 0

    def teardown(self) -> None:
        try:
            self.everything_sent_arrives()
        finally:
            self.runner.close()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(work)

    def call(self, caller: Caller, name: str, **arguments: Any) -> dict[str, Any] | None:
        """The result; None when a rule said no."""
        try:
            return self.run(caller(name, **arguments))
        except Refusal:
            return None

    def number(self) -> int:
        self.count += 1
        return self.count

    # --- members -----------------------------------------------------------------------------------------

    @initialize()
    def make(self) -> None:
        for network in (HERE, THERE):
            for name in AGENTS:
                self.run(self.world.agent(name, network, groups=("all",)))

    @rule(target=live, agent=names, network=networks)
    def come(self, agent: str, network: str) -> Caller:
        return self.run(self.world.instance(f"{network}-{agent}-{self.number()}", agent, network))

    @rule(caller=consumes(live))
    def end(self, caller: Caller) -> None:
        self.run(self.world.service.leave(caller.instance_id, "killed"))

    @rule(caller=live)
    def start_again(self, caller: Caller) -> None:
        """The worker is killed before its model saw what it fetched last, and comes up again."""
        job = f"job-of-{caller.instance_id}"
        self.run(self.world.service.join(caller.network, caller.agent, caller.instance_id, job))

    @rule(caller=live)
    def speak(self, caller: Caller) -> None:
        self.run(self.world.service.heartbeat(caller.instance_id))

    @rule(seconds=st.sampled_from([1, 61, 301, 601]))
    def wait(self, seconds: int) -> None:
        self.world.clock.advance(seconds)
        self.run(self.world.service.sweep())

    # --- messages ----------------------------------------------------------------------------------------

    @rule(caller=live, to=names, repeated=st.booleans())
    def ask(self, caller: Caller, to: str, repeated: bool) -> None:
        body = str(self.number())
        for _ in range(1 + repeated):
            sent = self.call(caller, "ask", call_id=f"ask-{body}", body=body, toAgent=to)
            assert sent is not None
        self.sent[caller.network].append((to, body))

    @rule(caller=live, seen=st.booleans())
    def read(self, caller: Caller, seen: bool) -> None:
        call_id = f"inbox-{self.number()}"
        inbox = self.call(caller, "inbox", call_id=call_id)
        assert inbox is not None
        bodies = [item["body"] for item in inbox["items"] if item["kind"] == "ask"]
        assert bodies == sorted(bodies, key=int), "in the order in which they were sent"
        for item in inbox["items"]:
            if item["kind"] == "task_offer":
                assert caller.instance_id in item["task"]["offered_to"]
            else:
                assert item["from"]["instance_id"].startswith(caller.network)
        if seen:
            self.show(caller, call_id, bodies)

    def show(self, caller: Caller, call_id: str, bodies: list[str]) -> None:
        """The model is shown the result of an inbox call."""
        self.run(self.world.service.inbox.acknowledge(caller.instance_id, [call_id]))
        self.received.setdefault(f"{caller.network}/{caller.agent}", []).extend(bodies)

    # --- tasks -------------------------------------------------------------------------------------------

    @rule(target=tasks, caller=live, to=st.sampled_from([*AGENTS, "all"]))
    def delegate(self, caller: Caller, to: str) -> tuple[str, str]:
        made = self.call(caller, "delegate", objective="Do it.", toAgent=to)
        return (caller.network, made["task"]["task_id"] if made else "none")

    @rule(caller=live, task=tasks, status=st.sampled_from(UPDATES))
    def update(self, caller: Caller, task: tuple[str, str], status: TaskState) -> None:
        network, task_id = task
        arguments = {"taskId": task_id, "status": status.value, "reason": "because"}
        moved = self.call(caller, "task_update", **arguments)
        if caller.network != network:
            assert moved is None, "another network's task does not exist"
        if moved is not None and status is TaskState.ACCEPTED:
            attempt = (task_id, moved["task"]["attempt"])
            assert attempt not in self.winners, "an attempt is accepted once"
            self.winners[attempt] = caller.instance_id

    # --- claims ------------------------------------------------------------------------------------------

    @rule(caller=live, scope=st.sampled_from(SCOPES), ttl=st.sampled_from([1, 60, 3600]))
    def claim(self, caller: Caller, scope: str, ttl: int) -> None:
        self.call(caller, "claim", scope=scope, ttlSeconds=ttl)

    # --- what always holds -------------------------------------------------------------------------------

    @invariant()
    def tasks_are_sound(self) -> None:
        for network in (HERE, THERE):
            self.run(self.store.read(NetworkName(network), self._tasks_are_sound))

    def _tasks_are_sound(self, reader: NetworkReader) -> None:
        live = {one.id for one in reader.live_instances()}
        for task in reader.recent_tasks(1000):
            history = reader.history(task.id)
            assert history[-1].state is task.state
            assert task.attempt <= MAX_ATTEMPTS
            assert bool(task.offered_to) is (task.state is TaskState.OFFERED)
            assert set(task.offered_to) <= live
            assert task.state is not TaskState.PENDING or task.reason, "a pending task says why"
            if task.state in {TaskState.ACCEPTED, TaskState.WORKING, TaskState.BLOCKED}:
                assert task.assignee_instance in live
                assert task.assignee_instance == self.winners[task.id, task.attempt]
                assert task.assignee not in task.lineage.agents[:-1]
            for parent in task.lineage.parents:
                assert reader.task(TaskId(parent)) is not None

    @invariant()
    def claims_do_not_meet(self) -> None:
        for network in (HERE, THERE):
            self.run(self.store.read(NetworkName(network), self._claims_do_not_meet))

    def _claims_do_not_meet(self, reader: NetworkReader) -> None:
        claims = reader.active_claims(self.world.clock.now())
        live = {one.id for one in reader.live_instances()}
        assert {one.instance_id for one in claims} <= live
        for one, other in combinations(claims, 2):
            assert one.instance_id == other.instance_id or not scopes_overlap(one.scope, other.scope)

    def everything_sent_arrives(self) -> None:
        """Whoever comes last for a name finds all that was sent to it and never proven received."""
        for network, sent in self.sent.items():
            for name in AGENTS if sent else ():
                self._all_arrived(network, name, [body for to, body in sent if to == name])

    def _all_arrived(self, network: str, name: str, sent: list[str]) -> None:
        def instances(reader: NetworkReader) -> list[str]:
            return [one.id for one in reader.live_instances() if one.agent == name]

        for instance_id in self.run(self.store.read(NetworkName(network), instances)):
            self.run(self.world.service.leave(instance_id, "the end"))
        last = self.run(self.world.instance(f"{network}-{name}-last", name, network))
        rest: list[str] = []
        while (inbox := self.call(last, "inbox", call_id=f"{len(rest)}")) and inbox["items"]:
            bodies = [item["body"] for item in inbox["items"] if item["kind"] == "ask"]
            self.show(last, f"{len(rest)}", bodies)
            rest += bodies
        assert rest == sorted(rest, key=int)
        assert sorted(self.received.get(f"{network}/{name}", []), key=int) == sent, "each once, none lost"


def test_a_network_keeps_its_promises_whatever_its_members_do():
    """BR-123, BR-124, BR-126, BR-129, BR-131, BR-133: whatever order things happen in."""
    run_state_machine_as_test(
        NetworkMachine,
        settings=settings(
            max_examples=30,
            stateful_step_count=40,
            deadline=None,
            phases=(Phase.explicit, Phase.generate),
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
        ),
    )
