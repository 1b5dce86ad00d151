"""PD-4: the OpenAPI document describes the wire as it is, from the wire's own messages."""

from __future__ import annotations

from typing import Any, cast

from pydantic import BaseModel

from tests.support.orchestrator import Wired
from worker.protocol import events, job, llm, paths, problems, tools

REQUESTS = {
    ("post", paths.STATUS): job.StatusReport,
    ("post", paths.EVENTS): events.EventBatch,
    ("post", paths.LLM_COMPLETE): llm.CompleteRequest,
    ("post", paths.LLM_COMPLETE_WITH_TOOLS): llm.CompleteWithToolsRequest,
    ("post", paths.TOOLS_EXECUTE): tools.ExecuteRequest,
    ("post", paths.COMPLETE): job.CompletionReport,
}
ANSWERS = {
    ("get", paths.JOB): job.JobDescription,
    ("get", paths.PROMPT): job.Deliveries,
    ("post", paths.LLM_COMPLETE): llm.CompleteAnswer,
    ("post", paths.LLM_COMPLETE_WITH_TOOLS): llm.CompleteWithToolsAnswer,
    ("get", paths.TOOLS_CATALOG): tools.Catalog,
    ("post", paths.TOOLS_EXECUTE): tools.ExecuteAnswer,
    ("post", paths.TOKEN_RENEW): job.TokenAnswer,
    ("post", paths.COMPLETE): job.CompletionAnswer,
}
OTHERS = {
    ("get", paths.WORKSPACE),
    ("put", paths.WORKSPACE_CHANGES),
    ("get", paths.CREDENTIALS),
    ("get", paths.ARTIFACT),
}
NATIVE = {
    ("post", f"{paths.LLM_OPENAI}/chat/completions"),
    ("post", f"{paths.LLM_OPENAI}/responses"),
    ("get", f"{paths.LLM_OPENAI}/models"),
    ("get", f"{paths.LLM_OPENAI}/models/{{model}}"),
    ("post", f"{paths.LLM_ANTHROPIC}/messages"),
    ("post", f"{paths.LLM_ANTHROPIC}/messages/count_tokens"),
    ("get", f"{paths.LLM_ANTHROPIC}/models"),
    ("get", f"{paths.LLM_ANTHROPIC}/models/{{model}}"),
}


async def document(orchestrator: Wired) -> dict[str, Any]:
    return (await orchestrator.operator.get("/openapi.json")).json()


def operation(whole: dict[str, Any], method: str, name: str) -> dict[str, Any]:
    return whole["paths"]["/worker/{job_id}/" + name][method]


def fields_of(whole: dict[str, Any], content: dict[str, Any]) -> set[str]:
    reference = content["content"]["application/json"]["schema"]["$ref"]
    schema = whole["components"]["schemas"][reference.rsplit("/", 1)[1]]
    return set(schema["properties"])


async def test_every_route_of_the_wire_is_described_and_no_other(orchestrator: Wired) -> None:
    whole = await document(orchestrator)
    described = {
        (method, path.removeprefix("/worker/{job_id}/"))
        for path, operations in whole["paths"].items()
        if path.startswith("/worker/")
        for method in operations
    }
    assert described == REQUESTS.keys() | ANSWERS.keys() | OTHERS | NATIVE


async def test_bodies_and_answers_are_the_protocol_s_messages(orchestrator: Wired) -> None:
    whole = await document(orchestrator)
    models: list[tuple[dict[str, Any], type[BaseModel]]] = [
        *((operation(whole, *route)["requestBody"], model) for route, model in REQUESTS.items()),
        *((operation(whole, *route)["responses"]["200"], model) for route, model in ANSWERS.items()),
    ]
    for content, model in models:
        assert fields_of(whole, content) == set(model.model_fields), model.__name__


async def test_native_routes_are_described_as_the_provider_s_own(orchestrator: Wired) -> None:
    """PD-31."""
    whole = await document(orchestrator)
    for method, name in NATIVE:
        described = operation(whole, method, name)
        assert described["operationId"]
        if method == "post":
            assert described["requestBody"]["required"]
            assert set(described["responses"]["200"]["content"]) == {"application/json", "text/event-stream"}


async def test_every_operation_s_errors_are_problems(orchestrator: Wired) -> None:
    whole = await document(orchestrator)
    assert set(whole["components"]["schemas"]["Problem"]["properties"]) == set(problems.Problem.model_fields)
    for path, operations in whole["paths"].items():
        for method, described in operations.items():
            refused = described["responses"]["default"]["content"]
            assert list(refused) == [problems.MEDIA_TYPE], (method, path)
            assert "422" not in described["responses"] or path.endswith(paths.TOOLS_EXECUTE)


async def test_every_reference_leads_somewhere(orchestrator: Wired) -> None:
    whole = await document(orchestrator)

    def references(node: Any) -> set[str]:
        if isinstance(node, dict):
            parts = cast("dict[str, Any]", node)
            found: set[str] = {parts["$ref"]} if isinstance(parts.get("$ref"), str) else set()
            return found.union(*(references(one) for one in parts.values()))
        items = cast("list[Any]", node) if isinstance(node, list) else []
        return set[str]().union(*(references(one) for one in items))

    names = {f"#/components/schemas/{name}" for name in whole["components"]["schemas"]}
    assert references(whole) <= names
