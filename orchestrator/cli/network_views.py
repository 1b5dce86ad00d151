"""A network's threads, tasks and claims as lines; nothing that an agent wrote acts on the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rich.table import Table
from rich.text import Text

from orchestrator.cli.summary import table
from orchestrator.cli.visible import one_line, visible

View = Mapping[str, Any]


def status_lines(status: View) -> str:
    """A network in numbers."""
    tasks = ", ".join(f"{count} {state}" for state, count in status["tasks"].items()) or "none"
    lines = [
        f"network {status['network']}: {status['agents']} agents, {status['available']} available now",
        f"tasks: {tasks}",
        f"claims: {status['claims']}; undelivered: {status['undelivered']}",
    ]
    lines += [f"blocked: {_brief(one)}" for one in status["blocked"]]
    return "\n".join(lines)


def threads_table(threads: Iterable[View]) -> Table | Text:
    """Threads in a list."""
    rows = [
        (one["thread_id"], one["created_at"][:16], ", ".join(one["participants"]), one["subject"])
        for one in threads
    ]
    return table(("thread", "since", "between", "subject"), rows, empty="no threads")


def thread_lines(thread: View) -> str:
    """A thread with its messages."""
    head = f"thread {thread['thread_id']} between {', '.join(thread['participants'])}"
    if thread["subject"]:
        head += f": {one_line(thread['subject'])}"
    return "\n".join([head, *(message_lines(one) for one in thread["messages"])])


def message_lines(message: View) -> str:
    """A message, its words marked line by line."""
    signed = "" if message["signed"] else ", not signed"
    copies = ", ".join(f"{one['agent']} {one['state']}" for one in message["copies"])
    to = f" to {copies}" if copies else ""
    head = f"{message['sent_at'][:19]} {message['kind']} from {message['sender']}{to}{signed}"
    return f"{head}\n{_quoted(message['body'])}"


def tasks_table(tasks: Iterable[View]) -> Table | Text:
    """Tasks in a list."""
    rows = [
        (
            one["task_id"],
            one["state"],
            one["creator"],
            one["assignee"] or one["target"] or "",
            one["title"],
            one_line(one["reason"], 80),
        )
        for one in tasks
    ]
    return table(("task", "state", "from", "for", "title", "reason"), rows, empty="no such tasks")


def task_lines(task: View) -> str:
    """A task with its history."""
    lines = [f"task {_brief(task)}", f"from {task['creator']} for {task['target'] or 'anybody'}"]
    lines += [f"resource {one_line(task['resource'])}"] if task["resource"] else []
    lines += [_quoted(task["objective"])]
    lines += [f"done when: {one_line(one)}" for one in task["acceptance_criteria"]]
    lines += [
        f"{one['at'][:19]} {one['state']} {one['agent'] or 'network'} {one_line(one['reason'])}".rstrip()
        for one in task.get("history", ())
    ]
    lines += [
        f"artifact {one['type']} {one_line(one['uri'])} {one_line(one['label'])} by {one['agent']}"
        for one in task.get("artifacts", ())
    ]
    return "\n".join(lines)


def claims_table(claims: Iterable[View]) -> Table | Text:
    """Claims in a list."""
    rows = [
        (one["claim_id"], one["agent"], one["scope_type"], one["scope"], one["expires_at"][:19])
        for one in claims
    ]
    return table(("claim", "holder", "type", "scope", "until"), rows, empty="no claims")


def inbox_lines(items: Iterable[View]) -> str:
    """What waits for a human, and how to answer."""
    return "\n".join(_waiting(one) for one in items) or "nothing waits"


def _waiting(item: View) -> str:
    message, task = item["message"], item["task"]
    if message is not None:
        how = f"\nanswer with: portside network reply {message['thread_id']} TEXT --as NAME"
        return message_lines(message) + (how if message["kind"] == "ask" else "")
    how = f"take it with: portside network task accept {task['task_id']} --as NAME"
    return f"offer of {task_lines(task)}\n{how}"


def _brief(task: View) -> str:
    reason = f" ({one_line(task['reason'])})" if task["reason"] else ""
    return f"{task['task_id']} {task['state']}{reason}: {one_line(task['title'])}"


def _quoted(text: str) -> str:
    return "\n".join(f"  > {visible(line)}" for line in text.splitlines() or [""])
