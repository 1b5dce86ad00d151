"""Whether a native request may go to the job's model. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from orchestrator.domain.native import fields
from orchestrator.domain.native.names import ENDPOINTS, JOB_MODEL, Dialect, Endpoint, native_name, speaks

Body = Mapping[str, Any]
_SHOWN = 80


@dataclass(frozen=True, slots=True)
class Refused:
    """Why a request goes no further, in one sentence."""

    message: str


@dataclass(frozen=True, slots=True)
class Accepted:
    """A request that may pass.

    Attributes:
        model: as the provider calls it; the request may have named it otherwise.
        renamed: the request did.
    """

    dialect: Dialect
    endpoint: Endpoint
    model: str
    renamed: bool
    stream: bool


def judge(job_model: str, dialect: Dialect, path: str, body: Body) -> Accepted | Refused:
    """Hold a request to the job's model and to what may leave a box without a network.

    Args:
        job_model: as `prefix:name`; "" is none.
        dialect: the API that the request came in by.
        path: below `v1/`.
        body: the request's JSON.
    """
    if not job_model:
        return Refused("this job has no model; start it with --model")
    if path not in ENDPOINTS[dialect]:
        return Refused(f"{path[:_SHOWN]!r} is not passed on; {_list(ENDPOINTS[dialect])} are")
    if not speaks(job_model, dialect):
        other = "ANTHROPIC_BASE_URL" if dialect is Dialect.OPENAI else "OPENAI_BASE_URL"
        return Refused(f"this job's model does not speak this API; use the one at {other}")
    endpoint = Endpoint(path)
    wanted = native_name(job_model)
    named = body.get("model")
    if not _is_one_of(named, {wanted, JOB_MODEL, job_model}):
        names = " or ".join(dict.fromkeys((repr(wanted), repr(JOB_MODEL))))
        return Refused(f"a job is answered by its own model; name {names}")
    unknown = sorted(body.keys() - fields.FIELDS[endpoint])
    if unknown:
        return Refused(f"the field {unknown[0][:_SHOWN]!r} is not passed on from a job")
    problem = next(_problems(endpoint, body), None)
    if problem is not None:
        return Refused(problem)
    return Accepted(dialect, endpoint, wanted, named != wanted, stream=body.get("stream") is True)


def _problems(endpoint: Endpoint, body: Body) -> Iterator[str]:
    if endpoint in {Endpoint.MESSAGES, Endpoint.COUNT_TOKENS}:
        yield from _anthropic_tools(body.get("tools"))
        yield from _blocks(_contents(body.get("messages")), _anthropic_block)
        yield from _blocks([body.get("system")], _anthropic_block)
        return
    yield from _openai_tools(body.get("tools"))
    if endpoint is Endpoint.CHAT:
        yield from _blocks(_contents(body.get("messages")), _openai_part)
    else:
        yield from _items(body.get("input"))


def _openai_tools(tools: Any) -> Iterator[str]:
    for tool in _objects(tools):
        if not _is_one_of(tool.get("type"), fields.OPENAI_TOOLS):
            yield _provider_tool(tool.get("type"))


def _anthropic_tools(tools: Any) -> Iterator[str]:
    for tool in _objects(tools):
        kind = tool.get("type", "custom")
        if kind != "custom" and not str(kind).startswith(fields.ANTHROPIC_TOOLS):
            yield _provider_tool(kind)


def _items(given: Any) -> Iterator[str]:
    """The input of a response: messages, calls and their outputs."""
    for item in _objects(given):
        kind = item.get("type", "message")
        if not _is_one_of(kind, fields.RESPONSE_ITEMS):
            yield f"input of type {str(kind)[:_SHOWN]!r} is not passed on from a job"
        yield from _blocks([item.get("content"), item.get("output"), item.get("summary")], _openai_part)


def _openai_part(part: Body) -> Iterator[str]:
    kind = part.get("type")
    if not _is_one_of(kind, fields.OPENAI_PARTS):
        yield f"content of type {str(kind)[:_SHOWN]!r} is not passed on from a job"
    inner: Any = part.get("file") if kind == "file" else part
    holder: Body = cast("Body", inner) if isinstance(inner, dict) else {}
    if holder.get("file_id") is not None:
        yield _stored_file()
    image: Any = part.get("image_url")
    address: Any = cast("Body", image).get("url") if isinstance(image, dict) else image
    for url in (address, holder.get("file_url")):
        if url is not None and not str(url).startswith("data:"):
            yield _address()


def _anthropic_block(block: Body) -> Iterator[str]:
    kind = block.get("type")
    if not _is_one_of(kind, fields.ANTHROPIC_BLOCKS):
        yield f"content of type {str(kind)[:_SHOWN]!r} is not passed on from a job"
    source: Any = block.get("source")
    if isinstance(source, dict):
        held = cast("Body", source)
        if held.get("type") == "url":
            yield _address()
        elif not _is_one_of(held.get("type"), fields.ANTHROPIC_SOURCES):
            yield _stored_file()
        yield from _blocks([held.get("content")], _anthropic_block)
    if kind == "tool_result":
        yield from _blocks([block.get("content")], _anthropic_block)


def _contents(messages: Any) -> list[Any]:
    return [message.get("content") for message in _objects(messages)]


def _blocks(contents: Iterable[Any], look: Any) -> Iterator[str]:
    for content in contents:
        for block in _objects(content):
            yield from look(block)


def _objects(given: Any) -> list[Body]:
    """The objects of a list; text, and what the provider will refuse by itself, is left to it."""
    items: list[Any] = cast("list[Any]", given) if isinstance(given, list) else []
    return [cast("Body", item) for item in items if isinstance(item, dict)]


def _is_one_of(value: Any, listed: Collection[str]) -> bool:
    """Whether it is one of these names; lists and objects are none, and no set takes them."""
    return isinstance(value, str) and value in listed


def _provider_tool(kind: Any) -> str:
    return (
        f"a tool of type {str(kind)[:_SHOWN]!r} would run at the provider, which has a network; a job's tools"
        " run here"
    )


def _address() -> str:
    return "the provider would fetch this address, and a job has no network: send the data itself"


def _stored_file() -> str:
    return "files stored at the provider belong to its account, not to a job: send the data itself"


def _list(endpoints: Iterable[Endpoint]) -> str:
    return " and ".join(sorted(endpoints))
