"""`portside jobs contract` and `portside tools stats`: how first calls go, of one job and of many."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from orchestrator.cli.invocation import AsJson, finish, settings_from_environment
from orchestrator.cli.job_ids import job_named
from orchestrator.cli.output import Output
from orchestrator.cli.session import desk_for
from orchestrator.cli.summary import adjustment, table
from orchestrator.cli.visible import one_line

_WORDS = {"fits": "fits the schema", "violates": "broke the schema", "unchecked": "was not checked"}
_STYLES = {"fits": "green", "violates": "red", "unchecked": "yellow"}


def contract(
    job: Annotated[str, typer.Argument(metavar="ID", help="A job's id, or a unique end or beginning of it.")],
    as_json: AsJson = False,
) -> None:
    """Show what a job's model was shown of the tools, and what the first call of each was worth."""
    settings, output = settings_from_environment(), Output(as_json)

    async def work() -> None:
        async with desk_for(settings, output.say) as client:
            found = await job_named(client, job)
            told: dict[str, Any] = await client.get(f"/api/v1/jobs/{found['id']}/contract")
        output.show(told, *_head(told), _first_calls(told["first_calls"]), *_details(told["first_calls"]))

    finish(work())


def stats(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME", help="All that were called when none is given.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show how often models get a tool's first call right, and what they get wrong."""
    settings, output = settings_from_environment(), Output(as_json)

    async def work() -> None:
        async with desk_for(settings, output.say, tools=bool(names)) as client:
            found: list[dict[str, Any]] = await client.get("/api/v1/tool-stats", name=names or [])
        if not found:
            output.show(found, "no tool was called yet")
            return
        output.show(found, _table(found), *(line for one in found for line in _mistakes(one)))

    finish(work())


def _head(told: Mapping[str, Any]) -> Iterable[Text]:
    yield Text(f"job            {told['job_id']} {told['state']}")
    if told["catalog_hash"] is None:
        yield Text("contract       no request with tools went to the model", style="yellow")
        return
    yield Text(f"catalogue      {told['catalog_hash']} ({told['tools']} tools)")
    line = Text(f"first request  {told['request_hash']} ")
    same = told["identical"]
    yield line.append("byte-identical" if same else "NOT the catalogue's", "green" if same else "bold red")


def _first_calls(calls: Iterable[Mapping[str, Any]]) -> Table | Text:
    rows = [
        (
            one["tool_name"],
            one["source"],
            Text(_WORDS[one["schema_verdict"]], style=_STYLES[one["schema_verdict"]]),
            one["verdict"],
        )
        for one in calls
    ]
    return table(("tool", "source", "first call", "verdict"), rows, title="First calls")


def _details(calls: Iterable[Mapping[str, Any]]) -> Iterable[Text]:
    for call in calls:
        for one in call["errors"]:
            yield Text(one_line(f"{call['tool_name']}: {_error(one)}", 1000), style="red")
        for one in call["adjustments"]:
            yield Text(one_line(f"{call['tool_name']}: {adjustment(one)}", 1000), style="yellow")


def _error(one: Mapping[str, Any]) -> str:
    got = f" (got {one['got']})" if one["got"] else ""
    return f"{one['pointer'] or 'the arguments'} [{one['rule']}] {one['message']}{got}"


def _table(found: Iterable[Mapping[str, Any]]) -> Table | Text:
    columns = (
        "tool",
        "jobs",
        "first call fits",
        "calls",
        "refused",
        "retries",
        "ms p50/p95",
        "bytes p50/p95",
    )
    return table(columns, [_row(one) for one in found])


def _row(one: Mapping[str, Any]) -> tuple[str | Text, ...]:
    rate = one["first_call_rate"]
    checked = one["first_calls"] - one["first_calls_unchecked"]
    shown = "-" if rate is None else f"{rate:.0%} ({one['first_calls_fit']} of {checked})"
    never = f", {one['never_fitted']} never" if one["never_fitted"] else ""
    return (
        one["tool_name"],
        str(one["first_calls"]),
        Text(shown, style="green" if rate == 1 else "yellow" if rate else "red" if rate == 0 else ""),
        str(one["calls"]),
        str(one["refused"]),
        f"{one['retries_mean']:.1f} (most {one['retries_largest']}){never}",
        _spread(one["latency_ms"]),
        _spread(one["output_bytes"]),
    )


def _spread(amount: Mapping[str, int]) -> str:
    return f"{amount['median']:,}/{amount['p95']:,}"


def _mistakes(one: Mapping[str, Any]) -> Iterable[Text]:
    for kind, style in (("violations", "red"), ("adjustments", "yellow")):
        for found in one[kind]:
            told = f": {found['message']}" if found["message"] else ""
            place = found["pointer"] or "the arguments"
            line = f"{one['tool_name']}: {found['count']} x {place} [{found['what']}]{told}"
            yield Text(one_line(line, 1000), style=style)
