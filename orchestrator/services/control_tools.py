"""The `control_*` tools of representatives: rights are looked up at every call; a rule's no is an answer."""

from __future__ import annotations

from collections.abc import Callable

from orchestrator.domain.network.rights import Right
from orchestrator.services import control_results as results
from orchestrator.services import control_schemas as schemas
from orchestrator.services.control_access import ControlAccess
from orchestrator.services.control_jobs import ControlJobs
from orchestrator.services.control_reads import ControlReads
from orchestrator.services.control_talk import ControlTalk
from orchestrator.services.control_tool import ControlTool, ControlToolMaker

_ASKED = (
    "invalid_resource",
    "no_recipient",
    "not_a_participant",
    "self_request",
    "target_ended",
    "name_taken",
)
_TWO_STEPS = (
    "It takes two steps: the first call answers a confirmation_id; an operator agrees; the same call with "
    "confirmationId acts, once, within ten minutes."
)


def control_tools(
    access: ControlAccess,
    reads: ControlReads,
    talk: ControlTalk,
    jobs: ControlJobs,
    changed: Callable[[], None],
) -> list[ControlTool]:
    """The 21 tools.

    Args:
        access: who may what.
        reads: what is looked at.
        talk: what is said.
        jobs: what is started and stopped.
        changed: called after a call that may have left something for others.
    """
    make = ControlToolMaker(access, changed)
    looking = (*_looking(make, reads), *_following(make, reads))
    return [*_self(make, reads), *looking, *_saying(make, talk), *_running(make, jobs)]


def _self(make: ControlToolMaker, reads: ControlReads) -> list[ControlTool]:
    return [
        make.tool(
            "control_whoami",
            "Who you are, for whom you act, and what you may do in which network.",
            schemas.NO_ARGUMENTS,
            reads.whoami,
            results.WHOAMI,
            None,
        ),
        make.tool(
            "control_list_networks",
            "Your networks, with your rights in each.",
            schemas.NO_ARGUMENTS,
            reads.list_networks,
            results.NETWORKS,
            None,
        ),
        make.tool(
            "control_use_network",
            "Make a network the active one: calls that name none mean it from now on.",
            schemas.USE_NETWORK,
            reads.use_network,
            results.USED_NETWORK,
            None,
            "not_found",
        ),
    ]


def _looking(make: ControlToolMaker, reads: ControlReads) -> list[ControlTool]:
    observe = Right.OBSERVE
    return [
        make.tool(
            "control_network_status",
            "How many agents, instances, open tasks and claims a network has.",
            schemas.NETWORK,
            reads.network_status,
            results.STATUS,
            observe,
        ),
        make.tool(
            "control_list_agents",
            "Every agent of a network, with its instances and whether they are available.",
            schemas.NETWORK,
            reads.list_agents,
            results.AGENTS,
            observe,
        ),
        make.tool(
            "control_find_agents",
            "Agents that answer for a resource or do an action, best fit first, with the reasons.",
            schemas.FIND_AGENTS,
            reads.list_agents,
            results.AGENTS,
            observe,
            "invalid_resource",
        ),
    ]


def _following(make: ControlToolMaker, reads: ControlReads) -> list[ControlTool]:
    observe = Right.OBSERVE
    return [
        make.tool(
            "control_list_tasks",
            "Tasks of a network, those changed last first.",
            schemas.LIST_TASKS,
            reads.list_tasks,
            results.TASKS,
            observe,
        ),
        make.tool(
            "control_task_status",
            "A task with its history and artifacts.",
            schemas.TASK_STATUS,
            reads.task_status,
            results.TASK_RECORD,
            observe,
        ),
        make.tool(
            "control_list_blocked",
            "Tasks that do not go on: blocked ones, and those that nobody takes; each says why.",
            schemas.NETWORK,
            reads.list_blocked,
            results.TASKS,
            observe,
        ),
        make.tool(
            "control_get_history",
            "What happened in a network: messages and changes of tasks, the newest first.",
            schemas.HISTORY,
            reads.get_history,
            results.HISTORY,
            observe,
        ),
        make.tool(
            "control_get_thread",
            "A thread with all its messages. Answers to what you asked are read here.",
            schemas.THREAD,
            reads.get_thread,
            results.THREAD,
            observe,
        ),
        make.tool(
            "control_get_graph",
            "Agents as nodes; as edges, how many messages and tasks went from whom to whom lately.",
            schemas.NETWORK,
            reads.get_graph,
            results.GRAPH,
            observe,
        ),
    ]


def _saying(make: ControlToolMaker, talk: ControlTalk) -> list[ControlTool]:
    return [
        make.tool(
            "control_ask",
            "Ask an agent, a group or one instance, or go on in a thread. Read the answer with "
            "control_get_thread.",
            schemas.ASK,
            talk.ask,
            results.SENT,
            Right.COMMUNICATE,
            *_ASKED,
        ),
        make.tool(
            "control_reply",
            "Reply to the other participants of a thread that you are in.",
            schemas.REPLY,
            talk.reply,
            results.SENT,
            Right.COMMUNICATE,
            "no_recipient",
            "not_a_participant",
            "name_taken",
        ),
        make.tool(
            "control_delegate",
            "Create a task and delegate it to an agent, a group or one instance. Follow it with "
            "control_task_status.",
            schemas.DELEGATE,
            talk.delegate,
            results.TASK,
            Right.DELEGATE,
            "invalid_resource",
            "name_taken",
            "self_request",
            "target_ended",
        ),
        make.tool(
            "control_channel_send",
            "Say something to the operator, who reads it on the command line. Not for agents.",
            schemas.CHANNEL_SEND,
            talk.channel_send,
            results.SAID,
            None,
        ),
        make.tool(
            "control_channel_history",
            "What you and the operator said, oldest first.",
            schemas.CHANNEL_HISTORY,
            talk.channel_history,
            results.CHANNEL,
            None,
        ),
    ]


def _running(make: ControlToolMaker, jobs: ControlJobs) -> list[ControlTool]:
    return [
        make.tool(
            "control_wake_agent",
            "Have an agent look at its inbox: a running job is prompted; where none runs, one is launched.",
            schemas.WAKE,
            jobs.wake,
            results.WOKEN,
            Right.OPERATE,
            "no_recipient",
            "not_launched",
            "not_served_by_jobs",
            "target_ended",
        ),
        make.tool(
            "control_launch_agent",
            "Start a job that serves an agent; one that is under way already is answered instead.",
            schemas.LAUNCH,
            jobs.launch,
            results.LAUNCHED,
            Right.OPERATE,
            "not_launched",
            "not_served_by_jobs",
        ),
        make.tool(
            "control_stop_agent",
            f"Stop the job that serves an instance. {_TWO_STEPS}",
            schemas.INSTANCE,
            jobs.stop,
            results.STOPPED,
            Right.OPERATE,
            "confirmation_invalid",
            "confirmation_pending",
            "not_a_job",
            "target_ended",
            destructive=True,
        ),
        make.tool(
            "control_restart_agent",
            f"Stop the job that serves an instance and start another like it. {_TWO_STEPS}",
            schemas.INSTANCE,
            jobs.restart,
            results.STOPPED,
            Right.OPERATE,
            "confirmation_invalid",
            "confirmation_pending",
            "not_a_job",
            "not_launched",
            "target_ended",
            destructive=True,
        ),
    ]
