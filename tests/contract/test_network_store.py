"""What every `NetworkStore` does, and what the service relies on it for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from orchestrator.adapters.db.network_store import SqlNetworkStore
from orchestrator.domain.network.agents import (
    AgentDefinition,
    AgentKind,
    Instance,
    InstanceState,
    LaunchSettings,
    Responsibility,
    Skill,
)
from orchestrator.domain.network.artifacts import NetworkArtifact
from orchestrator.domain.network.capabilities import Capability
from orchestrator.domain.network.chains import Lineage
from orchestrator.domain.network.claims import Claim, Scope, ScopeType
from orchestrator.domain.network.collaboration import CollaborationRequest
from orchestrator.domain.network.identities import (
    Actor,
    AgentName,
    ArtifactId,
    ClaimId,
    DeliveryId,
    InstanceId,
    MessageId,
    NetworkName,
    RequestId,
    TaskId,
    ThreadId,
)
from orchestrator.domain.network.launches import AgentLaunch
from orchestrator.domain.network.task_states import TaskState
from orchestrator.domain.network.tasks import HistoryEntry, Target, Task, TaskChange
from orchestrator.domain.network.threads import (
    Delivery,
    DeliveryState,
    Message,
    MessageKind,
    Participant,
    Thread,
)
from orchestrator.ports.errors import AlreadyExists
from orchestrator.ports.network import NetworkReader, NetworkStore, NetworkTransaction
from tests.fakes.network_store import MemoryNetworkStore
from tests.support.networks import START, Refusal, World

HERE, THERE = NetworkName("local"), NetworkName("other")
A, B = AgentName("a"), AgentName("b")
A1, B1 = InstanceId("a1"), InstanceId("b1")


@pytest.fixture(params=["memory", "sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def store(request: pytest.FixtureRequest) -> NetworkStore:
    if request.param == "memory":
        return MemoryNetworkStore()
    return SqlNetworkStore(request.getfixturevalue(f"{request.param}_database"))


def definition(name: AgentName = A) -> AgentDefinition:
    return AgentDefinition(
        name=name,
        created_at=START,
        kind=AgentKind.REPRESENTATIVE,
        summary="S \x00 \ud800",
        payment_address="p",
        capabilities=(Capability("c", "C", "d"),),
        skills=(Skill("x"), Skill("y", "well")),
        groups=("team",),
        responsibilities=(Responsibility("h.org/o/r", ("review",)), Responsibility(None)),
        launch=LaunchSettings("image", "model", "mission", autostart=True, allow_hosts=("*.example.org",)),
    )


def instance(instance_id: InstanceId = A1, agent: AgentName = A, **changes: Any) -> Instance:
    return replace(Instance(instance_id, agent, "job", InstanceState.ACTIVE, START), **changes)


def task(task_id: str = "t1", **changes: Any) -> TaskChange:
    made = Task(
        TaskId(task_id), "title", "objective", ("one", "two"), A, A1, f"call-{task_id}",
        Target(agent=B, instance_id=B1), "h.org/o/r", TaskState.OFFERED, START, START, offered_to=(B1,),
        lineage=Lineage((A, B), 2, (TaskId("t0"),)),
    )  # fmt: skip
    changed = replace(made, **changes)
    return TaskChange(changed, HistoryEntry(changed.updated_at, changed.state, "why", A, A1, "call"))


def claim(claim_id: str = "c1", owner: InstanceId = A1, **changes: Any) -> Claim:
    scope = Scope(ScopeType.PATH, "src", "h.org/o/r")
    made = Claim(ClaimId(claim_id), A, owner, scope, TaskId("t1"), START, START + timedelta(seconds=60))
    return replace(made, **changes)


def request(request_id: str = "r1", **changes: Any) -> CollaborationRequest:
    made = CollaborationRequest(
        RequestId(request_id), A, A1, f"call-{request_id}", B, ThreadId(f"th-{request_id}"), MessageId("m1"),
        Lineage((A,), 1), START, START + timedelta(seconds=60),
    )  # fmt: skip
    return replace(made, **changes)


def delivery(delivery_id: str = "d1", **changes: Any) -> Delivery:
    made = Delivery(DeliveryId(delivery_id), B, None, A1, MessageId("m1"), None, START)
    return replace(made, **changes)


async def put(store: NetworkStore, *work: Callable[[NetworkTransaction], None], network: NetworkName = HERE):
    for one in work:
        await store.change(network, one)


async def test_a_network_is_there_once_it_was_made(store: NetworkStore):
    assert await store.read(HERE, lambda reader: reader.exists()) is False
    for _ in range(2):
        await put(store, lambda tx: tx.create(START))
    assert await store.read(HERE, lambda reader: reader.exists()) is True
    assert await store.read(THERE, lambda reader: reader.exists()) is False
    assert await store.networks() == [HERE]
    await put(store, lambda tx: tx.create(START), network=NetworkName("a"))
    assert await store.networks() == ["a", HERE]


async def test_what_was_put_is_read_back_the_same(store: NetworkStore):
    artifact = NetworkArtifact(ArtifactId("x1"), "u", "wheel", "l", TaskId("t1"), A, A1, "call", START)
    thread = Thread(ThreadId("th1"), "s", (Participant(A, A1), Participant(B)), START)
    message = Message(
        MessageId("m1"), thread.id, MessageKind.ASK, A, A1, "call", "body \x00", "s", TaskId("t1"), "r", START
    )
    seen = instance(last_seen_at=START, capabilities=(Capability("c", "C"),))

    def write(tx: NetworkTransaction) -> None:
        tx.put_definition(definition())
        tx.put_instance(seen)
        tx.put_task(task())
        tx.put_claim(claim())
        tx.add_artifact(artifact)
        tx.put_thread(thread)
        tx.add_message(message)
        tx.put_deliveries([delivery()])
        tx.put_request(request())

    def read(reader: NetworkReader) -> list[Any]:
        return [
            reader.definition(A), reader.instance(A1), reader.task(TaskId("t1")), reader.claim(ClaimId("c1")),
            reader.artifacts_of_task(TaskId("t1")), reader.artifact_of_call(A1, "call"),
            reader.thread(thread.id), reader.message(message.id), reader.message_of_call(A1, "call"),
            reader.deliveries_of_message(message.id), reader.task_of_call(A1, "call-t1"),
            reader.history(TaskId("t1")), reader.request(RequestId("r1")),
            reader.request_of_call(A1, "call-r1"), reader.request_of_thread(ThreadId("th-r1")),
        ]  # fmt: skip

    await put(store, write)
    expected = [
        definition(), seen, task().task, claim(), [artifact], artifact, thread, message, message,
        [delivery()], task().task, [task().entry], request(), request(), request(),
    ]  # fmt: skip
    assert await store.read(HERE, read) == expected
    assert await store.read(THERE, read) == [None] * 4 + [[]] + [None] * 4 + [[], None, []] + [None] * 3
    assert await store.network_of(A1) == HERE
    assert await store.network_of(InstanceId("nobody")) is None


async def test_what_raises_changes_nothing(store: NetworkStore):
    def fail(tx: NetworkTransaction) -> None:
        tx.create(START)
        tx.put_instance(instance())
        tx.put_task(task())
        raise KeyError("no")

    with pytest.raises(KeyError):
        await store.change(HERE, fail)
    assert await store.read(HERE, lambda reader: (reader.exists(), reader.instance(A1))) == (False, None)
    assert await store.read(HERE, lambda reader: reader.history(TaskId("t1"))) == []
    assert await store.network_of(A1) is None


async def test_an_instance_belongs_to_one_network(store: NetworkStore):
    await put(store, lambda tx: tx.put_instance(instance()))
    with pytest.raises(AlreadyExists):
        await put(store, lambda tx: tx.put_instance(instance()), network=THERE)
    assert await store.network_of(A1) == HERE
    assert await store.read(THERE, lambda reader: reader.live_instances()) == []


async def test_lists_are_in_their_order_and_hold_what_they_say(store: NetworkStore):
    later = START + timedelta(microseconds=1)

    def write(tx: NetworkTransaction) -> None:
        for name in (B, A):
            tx.put_definition(definition(name))
        tx.put_instance(instance(B1, joined_at=later))
        tx.put_instance(instance(A1))
        tx.put_instance(instance(InstanceId("gone"), state=InstanceState.ENDED))
        tx.put_task(task("t1"))
        tx.put_task(task("t2", resource=None, updated_at=later))
        tx.put_task(task("t3", state=TaskState.COMPLETED))
        tx.put_task(task("t1", state=TaskState.ACCEPTED))

    def read(reader: NetworkReader) -> list[list[str]]:
        return [
            [one.name for one in reader.definitions()],
            [one.id for one in reader.live_instances()],
            [one.id for one in reader.recent_tasks(2)],
            [one.id for one in reader.recent_tasks(9, resource="h.org/o/r")],
            [one.id for one in reader.open_tasks()],
            [one.state for one in reader.history(TaskId("t1"))],
        ]

    await put(store, write)
    assert await store.read(HERE, read) == [
        ["a", "b"],
        ["a1", "b1"],
        ["t2", "t3"],
        ["t3", "t1"],
        ["t1", "t2"],
        ["offered", "accepted"],
    ]


async def test_the_revision_of_the_profiles_grows_with_each_stored_agent(store: NetworkStore):
    """AT-8: a search reads profiles again when it is another one."""

    def revision(reader: NetworkReader) -> int:
        return reader.profiles_revision()

    assert await store.read(HERE, revision) == 0
    await put(store, lambda tx: tx.create(START), lambda tx: tx.put_definition(definition()))
    first = await store.read(HERE, revision)
    await put(store, lambda tx: tx.put_instance(instance()))
    assert await store.read(HERE, revision) == first > 0
    await put(store, lambda tx: tx.put_definition(definition()))
    second = await store.read(HERE, revision)
    await put(store, lambda tx: tx.delete_definition(A))
    assert await store.read(HERE, revision) > second > first
    assert await store.read(THERE, revision) == 0


async def test_agents_are_found_by_when_they_were_stored(store: NetworkStore):
    """AT-8: what a search has read before it need not read again."""

    def since(revision: int) -> Callable[[NetworkReader], tuple[list[str], list[str]]]:
        return lambda reader: (
            [one.name for one in reader.definitions_since(revision)],
            list(reader.agent_names()),
        )

    await put(store, lambda tx: tx.create(START), lambda tx: tx.put_definition(definition(B)))
    await put(store, lambda tx: tx.put_definition(definition(A)))
    first = await store.read(HERE, lambda reader: reader.profiles_revision())
    assert await store.read(HERE, since(-1)) == ([A, B], [A, B])
    assert await store.read(HERE, since(first)) == ([], [A, B])
    await put(store, lambda tx: tx.put_definition(definition(B)))
    assert await store.read(HERE, since(first)) == ([B], [A, B])
    await put(store, lambda tx: tx.delete_definition(B))
    assert await store.read(HERE, since(first)) == ([], [A])
    assert await store.read(THERE, since(-1)) == ([], [])


async def test_who_serves_and_who_declares_is_told_of_live_instances(store: NetworkStore):
    able, later = (Capability("c", "C"),), START + timedelta(seconds=1)

    def write(tx: NetworkTransaction) -> None:
        tx.put_instance(instance(B1, B, last_seen_at=START, joined_at=later, capabilities=able))
        tx.put_instance(instance(A1, last_seen_at=later, capabilities=able))
        tx.put_instance(instance(InstanceId("a2"), last_seen_at=later))
        tx.put_instance(instance(InstanceId("n"), AgentName("never")))
        tx.put_instance(instance(InstanceId("p"), AgentName("person"), person=True))
        for state in (InstanceState.STARTING, InstanceState.DRAINING):
            tx.put_instance(instance(InstanceId(state), AgentName(state), state=state, last_seen_at=later))
        gone = {"state": InstanceState.ENDED, "last_seen_at": later, "capabilities": able}
        tx.put_instance(instance(InstanceId("g"), AgentName("gone"), **gone))

    def read(reader: NetworkReader) -> list[list[str]]:
        return [
            [*reader.serving_agents(START)],
            [*reader.serving_agents(later)],
            [one.id for one in reader.declaring_instances()],
        ]

    await put(store, write)
    assert await store.read(HERE, read) == [["a", "b", "person"], ["a", "person"], ["a1", "b1"]]
    assert await store.read(THERE, read) == [[], [], []]


async def test_unanswered_requests_are_those_of_either_side_that_end_later(store: NetworkStore):
    """AT-7: a request is answered once, and keeps what it was answered with."""
    done = request("done").answered(MessageId("m2"), START)
    rows = [
        request("r2", created_at=START + timedelta(seconds=1)),
        request("r1", requester=B, target=A),
        request("others", requester=B, target=AgentName("c")),
        done,
    ]

    def write(tx: NetworkTransaction) -> None:
        for one in rows:
            tx.put_request(one)

    def unanswered(since: Any) -> Callable[[NetworkReader], list[str]]:
        return lambda reader: [one.id for one in reader.unanswered_requests(A, since)]

    await put(store, write)
    end = START + timedelta(seconds=60)
    assert await store.read(HERE, unanswered(end - timedelta(microseconds=1))) == ["r1", "r2"]
    assert await store.read(HERE, unanswered(end)) == []
    assert await store.read(THERE, unanswered(START)) == []
    taken = done.consumed(Actor(HERE, A, A1, "x"))
    await put(store, lambda tx: tx.put_request(taken))
    assert await store.read(HERE, lambda reader: reader.request(RequestId("done"))) == taken


async def test_an_agent_is_forgotten_and_what_waits_for_it_is_found(store: NetworkStore):
    states = (DeliveryState.WAITING, DeliveryState.HELD, DeliveryState.DELIVERED, DeliveryState.WITHDRAWN)

    def write(tx: NetworkTransaction) -> None:
        tx.put_definition(definition(A))
        tx.put_definition(definition(B))
        tx.put_deliveries([delivery(f"d-{state}", agent=A, state=state) for state in states])
        tx.put_deliveries([delivery("other", agent=B)])
        tx.delete_definition(A)
        tx.delete_definition(AgentName("never"))

    await put(store, write)
    found = await store.read(HERE, lambda reader: [one.id for one in reader.undelivered_to(A)])
    left = await store.read(HERE, lambda reader: [one.name for one in reader.definitions()])
    assert (found, left) == (["d-waiting", "d-held"], [B])


async def test_work_is_found_by_whom_it_waits_for_and_who_holds_it(store: NetworkStore):
    later = START + timedelta(seconds=1)
    pending = {"state": TaskState.PENDING, "offered_to": ()}
    for_b, for_team, for_key = Target(agent=B), Target(group="team"), Target()

    def write(tx: NetworkTransaction) -> None:
        tx.put_task(task("new", target=for_b, created_at=later, updated_at=later, **pending))
        tx.put_task(task("old", target=for_b, **pending))
        tx.put_task(task("team", target=for_team, **pending))
        tx.put_task(task("key", target=for_key, **pending))
        tx.put_task(task("pinned", **pending))
        tx.put_task(task("offered", target=for_b))
        tx.put_task(task("held", state=TaskState.WORKING, assignee=B, assignee_instance=B1))
        tx.put_task(task("done", state=TaskState.COMPLETED, assignee=B, assignee_instance=B1))

    def read(reader: NetworkReader) -> list[list[str]]:
        found = (
            reader.pending_tasks(["agent b", "agent c"], 9),
            reader.pending_tasks(["agent b"], 1),
            reader.pending_tasks(["agent b"], 9, skip=1),
            reader.pending_tasks(["group team", "resource h.org/o/r"], 9),
            reader.pending_tasks(["instance b1"], 9),
            reader.pending_tasks([], 9),
            reader.offered_tasks(),
            reader.tasks_held_by(B1),
            reader.tasks_in([TaskState.WORKING, TaskState.COMPLETED], 1),
        )
        return [[one.id for one in tasks] for tasks in found]

    await put(store, write)
    assert await store.read(HERE, read) == [
        ["old", "new"],
        ["old"],
        ["new"],
        ["key", "team"],
        ["pinned"],
        [],
        ["offered"],
        ["held"],
        ["held"],
    ]
    counts = await store.read(HERE, lambda reader: reader.task_counts())
    assert counts == {
        TaskState.PENDING: 5,
        TaskState.OFFERED: 1,
        TaskState.WORKING: 1,
        TaskState.COMPLETED: 1,
    }


async def test_launches_and_threads_are_read_back(store: NetworkStore):
    launch = AgentLaunch(A, "j1", START, made=True, failures=2, retry_at=START, reason="x")

    def write(tx: NetworkTransaction) -> None:
        tx.put_launch(AgentLaunch(A, "j0", START))
        tx.put_launch(launch)
        for name, at in (("t1", START), ("t2", START + timedelta(seconds=1))):
            tx.put_thread(Thread(ThreadId(name), name, (Participant(A),), at))

    await put(store, write)
    found = await store.read(HERE, lambda reader: (reader.launch(A), reader.launch(B)))
    assert found == (launch, None)
    threads = await store.read(HERE, lambda reader: [one.id for one in reader.threads(9)])
    assert threads == ["t2", "t1"]
    assert await store.read(HERE, lambda reader: [one.id for one in reader.threads(1)]) == ["t2"]
    assert await store.read(THERE, lambda reader: reader.launch(A)) is None


async def test_active_claims_are_those_that_hold_now(store: NetworkStore):
    end = START + timedelta(seconds=60)

    def write(tx: NetworkTransaction) -> None:
        tx.put_claim(claim("c2", created_at=START + timedelta(seconds=1)))
        tx.put_claim(claim("c1"))
        tx.put_claim(claim("c3", ended_at=START))
        tx.put_claim(claim("c4", B1, expires_at=end + timedelta(microseconds=1)))

    def active(at: Any) -> Callable[[NetworkReader], list[str]]:
        return lambda reader: [one.id for one in reader.active_claims(at)]

    await put(store, write)
    assert await store.read(HERE, active(START)) == ["c1", "c4", "c2"]
    assert await store.read(HERE, active(end)) == ["c4"]
    await put(store, lambda tx: tx.end_claims(B1, end))
    assert await store.read(HERE, active(START)) == ["c1", "c2"]
    await put(store, lambda tx: tx.end_claims(A1, START), network=THERE)
    assert await store.read(HERE, active(START)) == ["c1", "c2"]


async def test_deliveries_are_open_to_whom_they_are_for_in_the_order_they_were_added(store: NetworkStore):
    held = {"state": DeliveryState.HELD, "held_by": B1}
    rows = [
        delivery("d9"),
        delivery("d1", instance_id=B1, message_id=None, task_id=TaskId("t1")),
        delivery("other-instance", instance_id=InstanceId("b2")),
        delivery("other-agent", agent=A),
        delivery("own", sender_instance=B1),
        delivery("this-call", **held, held_call="x"),
        delivery("that-call", **held, held_call="y"),
        delivery("done", state=DeliveryState.DELIVERED, held_by=B1),
        delivery("back", state=DeliveryState.WITHDRAWN),
        delivery("d0"),
    ]
    actor = Actor(HERE, B, B1, "x")

    def opened(limit: int) -> Callable[[NetworkReader], list[str]]:
        return lambda reader: [one.id for one in reader.open_deliveries(actor, limit)]

    await put(store, lambda tx: tx.put_deliveries(rows))
    assert await store.read(HERE, opened(9)) == ["d9", "d1", "this-call", "d0"]
    assert await store.read(HERE, opened(9)) == [one.id for one in rows if one.open_to(actor)]
    assert await store.read(HERE, opened(2)) == ["d9", "d1"]
    offers = await store.read(HERE, lambda reader: reader.deliveries_of_task(TaskId("t1")))
    assert [one.id for one in offers] == ["d1"]
    undelivered = await store.read(HERE, lambda reader: reader.undelivered(B1))
    assert [one.id for one in undelivered] == ["d1", "this-call", "that-call"]
    await put(store, lambda tx: tx.put_deliveries([rows[0].handed_to(actor)]))
    assert await store.read(HERE, opened(9)) == ["d9", "d1", "this-call", "d0"]


async def together(count: int, call: Callable[[int], Awaitable[Any]]) -> list[Any]:
    """The results, or refusals, of calls that start together."""
    results: list[Any] = [None] * count

    async def one(number: int) -> None:
        try:
            results[number] = await call(number)
        except Refusal as no:
            results[number] = no

    async with anyio.create_task_group() as group:
        for number in range(count):
            group.start_soon(one, number)
    return results


async def test_of_claims_that_meet_exactly_one_wins(store: NetworkStore):
    """BR-130: thirty-three agents ask for one file at once."""
    world = World(store)
    callers = [await world.instance(f"i{number}", f"agent{number}") for number in range(33)]
    scopes = ("src", "src/x.py", "src/*.py", "**/x.py")
    results = await together(33, lambda number: callers[number]("claim", scope=scopes[number % 4]))
    winners = [one for one in results if not isinstance(one, Refusal)]
    losers = [one for one in results if isinstance(one, Refusal)]
    assert len(winners) == 1
    assert {no.code for no in losers} == {"claim_conflict"}
    assert {no.result["conflicts"][0]["claim_id"] for no in losers} == {winners[0]["claim_id"]}


async def test_tasks_that_are_made_for_others_are_counted_there(store: NetworkStore):
    """BR-131: for exactly those that are named, and the rest of the task stays."""
    first, second = task("t1"), task("t2", tasks_below=7)

    def counted(tx: NetworkTransaction) -> None:
        tx.count_below([first.task.id, second.task.id])
        tx.count_below([second.task.id])
        tx.count_below([])

    await put(store, lambda tx: tx.put_task(first), lambda tx: tx.put_task(second), counted)
    found = await store.read(HERE, lambda reader: [reader.task(one.task.id) for one in (first, second)])
    assert found == [replace(first.task, tasks_below=1), replace(second.task, tasks_below=9)]


async def test_of_instances_that_accept_together_exactly_one_gets_the_task(store: NetworkStore):
    world = World(store)
    boss = await world.instance("boss")
    workers = [await world.instance(f"w{number}", "builder") for number in range(8)]
    made = (await boss("delegate", objective="?", toAgent="builder"))["task"]["task_id"]
    results = await together(8, lambda n: workers[n]("task_update", taskId=made, status="accepted"))
    winners = [one["task"]["assignee"] for one in results if not isinstance(one, Refusal)]
    losers = [one for one in results if isinstance(one, Refusal)]
    assert len(winners) == 1
    assert [(no.code, no.result["assignee"]) for no in losers] == [("task_taken", winners[0])] * 7


async def test_parallel_fetches_hand_out_each_message_once(store: NetworkStore):
    """BR-124: two fetch loops of one agent never get the same message."""
    world = World(store)
    sender = await world.instance("a1", "a")
    readers = [await world.instance(f"b{number}", "b") for number in range(4)]
    for number in range(10):
        await sender("ask", body=str(number), toAgent="b")
    inboxes = await together(8, lambda number: readers[number % 4]("inbox", call_id=f"loop-{number}"))
    seen = [item["body"] for inbox in inboxes for item in inbox["items"]]
    assert sorted(seen, key=int) == [str(number) for number in range(10)]


async def test_one_call_that_is_repeated_at_once_sends_and_makes_one_thing(store: NetworkStore):
    """BR-124: a retried send, delegation or publication is one."""
    world = World(store)
    a, b = await world.instance("a1", "a"), await world.instance("b1", "b")
    calls: list[Callable[[int], Awaitable[Any]]] = [
        lambda _: a("ask", call_id="1", body="once", toAgent="b"),
        lambda _: a("delegate", call_id="2", objective="once", toAgent="b"),
        lambda _: a("publish_artifact", call_id="3", uri="once"),
    ]
    for call in calls:
        first, *others = await together(20, call)
        assert not isinstance(first, Refusal)
        assert all(other == first for other in others)
    assert [item["kind"] for item in (await b("inbox"))["items"]] == ["ask", "task_offer"]


async def test_of_checks_that_come_together_exactly_one_gets_the_result(store: NetworkStore):
    """AT-6: thirty-three checks of one late result, by two instances of the requester."""
    world = World(store)
    a = [await world.instance("a1", "a"), await world.instance("a2", "a")]
    b = await world.instance("b1", "b")
    thread = ThreadId("")
    async with anyio.create_task_group() as group:

        async def send() -> None:
            await a[0]("send_collaboration_request", call_id="1:s", target_agent_id="b", task="?")

        group.start_soon(send)
        while not thread:
            for item in (await b("inbox"))["items"]:
                thread = item["thread_id"]
            await anyio.lowlevel.checkpoint()
        group.cancel_scope.cancel()
    await b("reply", threadId=thread, body="Here.")
    (made,) = await store.read(HERE, lambda reader: [reader.request_of_call(A1, "1:s")])
    assert made is not None
    results = await together(33, lambda n: a[n % 2]("check_collaboration_result", request_id=made.id))
    assert sorted(one["status"] for one in results) == ["completed"] + ["not_found"] * 32
    assert [one["response"] for one in results if one["response"]] == ["Here."]


async def test_a_name_that_is_asked_for_twice_at_once_is_one_agent(store: NetworkStore):
    """BR-135: parallel registration of a name leaves one owner."""
    world = World(store)
    await world.service.ensure_network("local")
    made = await together(8, lambda _: world.service.ensure_agent("local", "Blue"))
    assert {one.name for one in made} == {"blue"}
    assert len(await store.read(HERE, lambda reader: reader.definitions())) == 1


async def test_what_happened_lately_is_told_newest_first(store: NetworkStore):
    """PD-44: what representatives see of a network: messages, changes of tasks, and who wrote to whom."""
    world = World(store)
    a, b = await world.instance("a1", "a"), await world.instance("b1", "b")
    await a("ask", body="1", toAgent="b")
    world.clock.advance(1)
    await b("ask", body="2", toAgent="a")
    made = (await a("delegate", objective="?", toAgent="b"))["task"]["task_id"]
    world.clock.advance(1)
    await b("task_update", taskId=made, status="accepted")
    await store.change(NetworkName("other"), lambda tx: tx.create(START))

    def look(reader: NetworkReader) -> tuple[list[str], list[tuple[str, str]], list[tuple[str, str]]]:
        return (
            [one.body for one in reader.recent_messages(10)],
            [(task, entry.state.value) for task, entry in reader.recent_changes(10)],
            [(sender, to) for sender, to in reader.recent_traffic(10)],
        )

    messages, changes, traffic = await store.read(HERE, look)
    assert messages == ["2", "1"]
    assert changes == [(made, "accepted"), (made, "offered")]
    assert traffic == [("b", "a"), ("a", "b")]
    assert await store.read(NetworkName("other"), look) == ([], [], [])
    assert await store.read(HERE, lambda reader: len(reader.recent_traffic(1))) == 1
