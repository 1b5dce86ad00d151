"""What the audit rows say of each tool, counted by the database.

A call's place among its job's calls of the tool is a window over the rows, worked out when somebody asks:
nothing is counted while calls run.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

from sqlalchemy import Column, ColumnElement, Connection, Subquery, case, func, select

from orchestrator.adapters.db.tables import audit
from orchestrator.ports.audit import OPERATOR_JOB, Frequent, Spread, ToolStats
from tool_registry.audit import SchemaVerdict

_RAN = ("ok", "error")
_NEWEST = 10_000
_KINDS = 10
_NUMBER = re.compile(r"(?<=/)[0-9]+(?=/|$)")

_fits = audit.c.schema_verdict == SchemaVerdict.FITS
_violates = audit.c.schema_verdict == SchemaVerdict.VIOLATES
_unchecked = audit.c.schema_verdict == SchemaVerdict.UNCHECKED
_ran = audit.c.verdict.in_(_RAN)


def tool_stats(connection: Connection, names: Collection[str]) -> list[ToolStats]:
    """Per tool, sorted by name."""
    wanted: ColumnElement[bool] = audit.c.job_id != OPERATOR_JOB
    if names:
        wanted &= audit.c.tool_name.in_(names)
    calls = _calls(connection, wanted)
    firsts = _first_calls(connection, wanted)
    verdicts = _verdicts(connection, wanted)
    broken = _frequent(connection, wanted & _violates, audit.c.violations, _violation)
    changed = _frequent(connection, wanted & (audit.c.adjustments != []), audit.c.adjustments, _change)
    latency = _spreads(connection, wanted & _ran, audit.c.duration_ms)
    sizes = _spreads(connection, wanted & _ran, audit.c.output_bytes)
    return [
        ToolStats(
            tool_name=name,
            calls=total,
            verdicts=verdicts[name],
            refused=refused,
            violations=broken.get(name, ()),
            adjustments=changed.get(name, ()),
            latency_ms=latency.get(name, Spread()),
            output_bytes=sizes.get(name, Spread()),
            **firsts[name],
        )
        for name, total, refused in calls
    ]


def _calls(connection: Connection, wanted: ColumnElement[bool]) -> list[tuple[str, int, int]]:
    query = (
        select(audit.c.tool_name, func.count(), func.count().filter(_violates))
        .where(wanted)
        .group_by(audit.c.tool_name)
        .order_by(audit.c.tool_name)
    )
    return [(name, total, refused) for name, total, refused in connection.execute(query)]


def _verdicts(connection: Connection, wanted: ColumnElement[bool]) -> Mapping[str, Mapping[str, int]]:
    query = (
        select(audit.c.tool_name, audit.c.verdict, func.count())
        .where(wanted)
        .group_by(audit.c.tool_name, audit.c.verdict)
        .order_by(audit.c.tool_name, func.count().desc(), audit.c.verdict)
    )
    found: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for name, verdict, count in connection.execute(query):
        found[name][verdict] = count
    return found


def _turns(wanted: ColumnElement[bool]) -> Subquery:
    """Every wanted call, with its place among its job's calls of the tool."""
    order = [audit.c.at, audit.c.number]
    place = func.row_number().over(partition_by=[audit.c.job_id, audit.c.tool_name], order_by=order)
    refusals = func.sum(case((_violates, 1), else_=0)).over(
        partition_by=[audit.c.job_id, audit.c.tool_name], order_by=order, rows=(None, 0)
    )
    return (
        select(
            audit.c.job_id,
            audit.c.tool_name,
            _fits.label("fits"),
            _unchecked.label("unchecked"),
            place.label("turn"),
            refusals.label("refusals"),
        )
        .where(wanted)
        .subquery()
    )


def _first_calls(connection: Connection, wanted: ColumnElement[bool]) -> Mapping[str, Mapping[str, Any]]:
    turns = _turns(wanted)
    first = turns.c.turn == 1
    jobs = (
        select(
            turns.c.tool_name,
            func.count().filter(first, turns.c.fits).label("fit"),
            func.count().filter(first, turns.c.unchecked).label("unchecked"),
            func.min(turns.c.refusals).filter(turns.c.fits).label("retries"),
        )
        .group_by(turns.c.job_id, turns.c.tool_name)
        .subquery()
    )
    query = select(
        jobs.c.tool_name,
        func.count(),
        func.sum(jobs.c.fit),
        func.sum(jobs.c.unchecked),
        func.avg(jobs.c.retries),
        func.max(jobs.c.retries),
        func.count().filter(jobs.c.retries.is_(None)),
    ).group_by(jobs.c.tool_name)
    return {
        name: {
            "first_calls": total,
            "first_calls_fit": int(fit),
            "first_calls_unchecked": int(unchecked),
            "retries_mean": float(mean or 0.0),
            "retries_largest": int(largest or 0),
            "never_fitted": never,
        }
        for name, total, fit, unchecked, mean, largest, never in connection.execute(query)
    }


def _spreads(
    connection: Connection, wanted: ColumnElement[bool], amount: Column[int]
) -> Mapping[str, Spread]:
    """Nearest-rank percentiles, by rank: SQLite has no function for them."""
    place = func.row_number().over(partition_by=audit.c.tool_name, order_by=amount)
    total = func.count().over(partition_by=audit.c.tool_name)
    ranked = (
        select(audit.c.tool_name, amount.label("amount"), place.label("place"), total.label("total"))
        .where(wanted)
        .subquery()
    )

    def at(percent: int) -> ColumnElement[Any]:
        return func.max(ranked.c.amount).filter((ranked.c.place - 1) * 100 < ranked.c.total * percent)

    query = select(ranked.c.tool_name, at(50), at(95), func.max(ranked.c.amount)).group_by(ranked.c.tool_name)
    return {name: Spread(*map(int, amounts)) for name, *amounts in connection.execute(query)}


def _frequent(
    connection: Connection,
    wanted: ColumnElement[bool],
    told: Column[Any],
    kind_of: Callable[[Mapping[str, Any]], tuple[str, str]],
) -> Mapping[str, tuple[Frequent, ...]]:
    """What stands most often in `told` of the newest rows, per tool."""
    query = select(audit.c.tool_name, told).where(wanted).order_by(audit.c.number.desc()).limit(_NEWEST)
    counts: defaultdict[str, Counter[tuple[str, str]]] = defaultdict(Counter)
    messages: dict[tuple[str, str, str], str] = {}
    for name, one in _each(connection.execute(query)):
        kind = kind_of(one)
        counts[name][kind] += 1
        messages.setdefault((name, *kind), one.get("message") or "")
    return {
        name: tuple(
            Frequent(pointer, what, count, messages[name, pointer, what])
            for (pointer, what), count in sorted(found.items(), key=lambda item: (-item[1], item[0]))[:_KINDS]
        )
        for name, found in counts.items()
    }


def _each(rows: Iterable[Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name, told in rows:
        for one in told:
            yield name, one


def _violation(one: Mapping[str, Any]) -> tuple[str, str]:
    return _general(one["pointer"]), one["rule"]


def _change(one: Mapping[str, Any]) -> tuple[str, str]:
    if one["kind"] == "dropped_null":
        return _general(one["pointer"]), "null dropped"
    return _general(one["pointer"]), f"{one['was']} to {one['became']}"


def _general(pointer: str) -> str:
    """The same place in every item of an array."""
    return _NUMBER.sub("*", pointer)
