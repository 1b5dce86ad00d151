"""PD-61, BR-132: work that waits starts its agent, once at a time, and its task says how that goes."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import anyio
import pytest

from orchestrator.domain.jobs import JobState
from orchestrator.domain.network.agents import AgentKind, LaunchSettings, Responsibility
from orchestrator.domain.network.identities import AgentName, NetworkName
from orchestrator.domain.network.launches import AgentLaunch
from orchestrator.errors import BadRequest, EgressUnavailable
from orchestrator.services.network_autostart import Autostart, AutostartRules
from tests.fakes.network_jobs import FakeJobs
from tests.fakes.network_store import MemoryNetworkStore
from tests.support.networks import START, Caller, World

ON_DEMAND = LaunchSettings(image="box:1", model="scripted:m", mission="Be kind.", autostart=True)


class Started(World):
    """A world whose agents are started on demand."""

    def __init__(self) -> None:
        self.store = MemoryNetworkStore()
        super().__init__(self.store)
        self.jobs = FakeJobs()
        self.most = 5
        self.autostart = self.another()

    def another(self) -> Autostart:
        rules = AutostartRules(self.most, lambda: "scripted:default")
        return Autostart(self.store, self.jobs, self.clock, self.ids, rules)


@pytest.fixture
async def world() -> Started:
    world = Started()
    await world.agent(
        "rev", launch=ON_DEMAND, groups=("team",), responsibilities=(Responsibility("h.org/o/r"),)
    )
    return world


async def state_of(caller: Caller, task: dict[str, Any]) -> tuple[str, str]:
    now = (await caller("task_get", taskId=task["task_id"]))["task"]
    return now["state"], now["reason"]


async def delegated(caller: Caller, **arguments: Any) -> dict[str, Any]:
    return (await caller("delegate", **({"objective": "Do\nit.", "toAgent": "rev"} | arguments)))["task"]


async def test_a_task_starts_its_agent_and_the_job_is_told_what_waits(world: Started) -> None:
    boss = await world.instance("b1", "boss")
    task = await delegated(boss)
    await boss("ask", body="When?\n[Network: offer of task 7]", toAgent="rev")
    await world.autostart.look()
    ((job_id, job),) = world.jobs.jobs.items()
    assert await state_of(boss, task) == ("pending", f"'rev' is being started for it: job {job_id}")
    spec = job.spec
    assert (spec.agent, spec.network, spec.model, spec.image) == ("rev", "local", "scripted:m", "box:1")
    assert spec.system_prompt == "Be kind."
    assert f"Task {task['task_id']} from agent boss. Its words:\n> Do\n> it." in spec.task
    assert "Its words:\n> When?\n> [Network: offer of task 7]" in spec.task


async def test_looks_that_meet_start_one_job_and_so_does_one_that_was_cut_off(world: Started) -> None:
    boss = await world.instance("b1", "boss")
    await delegated(boss)
    async with anyio.create_task_group() as group:
        for _ in range(8):
            group.start_soon(world.another().look)
    (job_id,) = world.jobs.jobs
    for _ in range(3):
        await world.autostart.look()
    assert list(world.jobs.jobs) == [job_id]


async def test_a_launch_that_was_written_down_but_not_made_is_made_under_the_same_id(world: Started) -> None:
    boss = await world.instance("b1", "boss")
    await delegated(boss)
    launch = AgentLaunch(AgentName("rev"), "the-one", START)
    await world.store.change(NetworkName("local"), lambda tx: tx.put_launch(launch))
    await world.autostart.look()
    assert list(world.jobs.jobs) == ["the-one"]


async def test_an_agent_that_somebody_serves_is_not_started(world: Started) -> None:
    boss, _ = await world.instance("b1", "boss"), await world.instance("r1", "rev")
    world.clock.advance(600)  # it is silent, and still there
    await world.service.heartbeat("b1")
    await delegated(boss)
    await world.autostart.look()
    assert world.jobs.jobs == {}


@pytest.mark.parametrize(
    "arguments",
    [{"toAgent": "team"}, {"toAgent": None, "resource": "https://h.org/o/r.git"}],
    ids=["group", "resource"],
)
async def test_a_group_s_or_a_resource_s_task_starts_a_member(
    world: Started, arguments: dict[str, Any]
) -> None:
    boss = await world.instance("b1", "boss")
    given = {"objective": "x"} | {name: value for name, value in arguments.items() if value}
    await boss("delegate", **given)
    await world.autostart.look()
    assert [job.spec.agent for job in world.jobs.jobs.values()] == ["rev"]


async def test_an_agent_without_autostart_a_human_and_a_reply_start_nobody(world: Started) -> None:
    await world.agent("ann", kind=AgentKind.HUMAN)
    await world.agent("lazy")
    boss = await world.instance("b1", "boss")
    await delegated(boss, toAgent="lazy")
    await boss("ask", body="?", toAgent="ann")
    await world.autostart.look()
    assert world.jobs.jobs == {}


async def test_a_launch_that_fails_pauses_longer_each_time_and_the_task_says_why(world: Started) -> None:
    boss = await world.instance("b1", "boss")
    task = await delegated(boss)
    for failures, (pause, again) in enumerate(((10, "03:04:15"), (30, "03:04:45")), 1):
        await world.autostart.look()
        assert len(world.jobs.jobs) == failures
        world.jobs.end(list(world.jobs.jobs)[-1], JobState.FAILED, "no such image")
        await world.autostart.look()
        _, reason = await state_of(boss, task)
        assert "no such image" in reason
        assert f"started again at {again} UTC" in reason
        world.clock.advance(pause - 1)
        await world.autostart.look()
        assert len(world.jobs.jobs) == failures
        world.clock.advance(1)
    await world.autostart.look()
    assert len(world.jobs.jobs) == 3


async def test_a_job_that_ends_well_and_leaves_the_work_counts_as_a_failure(world: Started) -> None:
    boss = await world.instance("b1", "boss")
    task = await delegated(boss)
    await world.autostart.look()
    (job_id,) = world.jobs.jobs
    world.clock.advance(1)
    world.jobs.end(job_id, JobState.COMPLETED)
    await world.autostart.look()
    assert f"job {job_id} ended and left it" in (await state_of(boss, task))[1]


async def test_work_that_came_later_starts_the_agent_at_once(world: Started) -> None:
    boss = await world.instance("b1", "boss")
    first = await delegated(boss)
    await world.autostart.look()
    (job_id,) = world.jobs.jobs
    await boss("task_update", taskId=first["task_id"], status="cancelled")
    world.jobs.end(job_id, JobState.COMPLETED)
    world.clock.advance(1)
    await delegated(boss)
    await world.autostart.look()
    assert len(world.jobs.jobs) == 2


async def test_the_network_s_bound_holds_and_the_task_waits_for_room(world: Started) -> None:
    world.most = 1
    autostart = world.another()
    boss = await world.instance("b1", "boss")
    await world.agent("other", launch=ON_DEMAND)
    first, second = await delegated(boss, toAgent="other"), await delegated(boss)
    await autostart.look()
    assert [job.spec.agent for job in world.jobs.jobs.values()] == ["other"]
    assert "is being started" in (await state_of(boss, first))[1]
    why = "'rev' is started for it when one of the network's 1 jobs ends"
    assert await state_of(boss, second) == ("pending", why)
    world.jobs.end(next(iter(world.jobs.jobs)), JobState.FAILED, "x")
    await autostart.look()
    assert [job.spec.agent for job in world.jobs.jobs.values()] == ["other", "rev"]


@pytest.mark.parametrize("refusal", [BadRequest, EgressUnavailable])
async def test_a_job_that_is_refused_is_a_failure_too(
    world: Started, refusal: type[BadRequest | EgressUnavailable]
) -> None:
    """Also when its agent's hosts can't be reached from here."""
    world.jobs.refusal = refusal
    boss = await world.instance("b1", "boss")
    task = await delegated(boss)
    world.jobs.refuses = "no model is named"
    await world.autostart.look()
    assert "in vain (no model is named)" in (await state_of(boss, task))[1]
    world.jobs.refuses = ""
    await world.autostart.look()
    assert world.jobs.jobs == {}
    world.clock.advance(10)
    await world.autostart.look()
    assert len(world.jobs.jobs) == 1


async def test_nobody_s_work_hides_behind_other_work(world: Started) -> None:
    boss = await world.instance("b1", "boss")
    await world.agent("lazy")
    for _ in range(60):
        await delegated(boss, toAgent="lazy")
    await delegated(boss)
    await world.autostart.look()
    assert len(world.jobs.jobs) == 1


def test_pauses_grow_and_have_an_end() -> None:
    launch = AgentLaunch(AgentName("a"), "j", START)
    pauses: list[timedelta] = []
    for _ in range(7):
        launch = launch.failed("x", START)
        assert launch.retry_at is not None
        pauses.append(launch.retry_at - START)
    assert [one.total_seconds() for one in pauses] == [10, 30, 90, 270, 810, 900, 900]
    assert not launch.succeeded().pausing(START)
