"""DC-4: who is let in: forged, foreign, old and odd tokens on every route."""

from __future__ import annotations

import io
from datetime import datetime
from typing import Any

import httpx

from orchestrator.services.tokens import WORKER_AUDIENCE
from tests.support.forger import Forger, now
from tests.support.orchestrator import Wired, WorkerHands, http_over, problem

ROUTES = [
    ("GET", "job"),
    ("GET", "workspace"),
    ("PUT", "workspace/changes"),
    ("GET", "credentials"),
    ("POST", "status"),
    ("POST", "events"),
    ("GET", "prompt"),
    ("POST", "llm/complete"),
    ("POST", "llm/complete_with_tools"),
    ("POST", "llm/openai/v1/chat/completions"),
    ("POST", "llm/openai/v1/responses"),
    ("GET", "llm/openai/v1/models"),
    ("POST", "llm/anthropic/v1/messages"),
    ("GET", "llm/anthropic/v1/models/m"),
    ("GET", "tools/catalog"),
    ("POST", "tools/execute"),
    ("GET", "artifacts/a"),
    ("POST", "token/renew"),
    ("POST", "complete"),
]
OPERATOR_ROUTES = [
    ("GET", "jobs"),
    ("POST", "jobs"),
    ("GET", "jobs/x"),
    ("GET", "jobs/x/events"),
    ("GET", "jobs/x/diff"),
    ("GET", "jobs/x/calls"),
    ("POST", "jobs/x/cancel"),
    ("POST", "jobs/x/prompt"),
    ("DELETE", "jobs/x"),
    ("PUT", "workspaces"),
    ("GET", "tools"),
    ("POST", "tools/check"),
    ("POST", "tools/echo/call"),
    ("PUT", "tools/wasm/calc"),
    ("POST", "tools/wasm/asks"),
    ("DELETE", "tools/echo"),
    ("GET", "mcp"),
    ("PUT", "mcp/x"),
    ("POST", "tokens"),
    ("GET", "tokens"),
    ("DELETE", "tokens/x"),
]


async def ask(
    http: httpx.AsyncClient, worker: WorkerHands, method: str, name: str, token: str
) -> httpx.Response:
    headers = {
        b"Authorization": f"Bearer {token}".encode("latin-1"),
        b"Content-Type": b"application/json",
    }
    return await http.request(method, f"/worker/{worker.job_id}/{name}", headers=headers, content=b"{}")


async def test_every_forged_token_gets_one_and_the_same_401_on_every_route(orchestrator: Wired) -> None:
    """BR-115: algorithm none, confusion, other keys, changed payloads; nothing says which check failed."""
    worker = await orchestrator.worker()
    forger = await Forger.of(orchestrator, worker.job_id)
    assert (await ask(worker.http, worker, "GET", "job", forger.token())).status_code == 200
    bodies: set[bytes] = set()
    for name, token in forger.forgeries().items():
        answer = await ask(worker.http, worker, "GET", "job", token)
        assert (answer.status_code, problem(answer)["code"]) == (401, "token_invalid"), name
        bodies.add(answer.content)
    for method, route in ROUTES:
        answer = await ask(worker.http, worker, method, route, forger.forgeries()["alg none"])
        assert answer.status_code == 401, route
        assert answer.headers["www-authenticate"] == "Bearer"
        bodies.add(answer.content)
    assert len(bodies) == 1


ODD_CLAIMS: list[tuple[tuple[str, ...], dict[str, Any], int]] = [
    ((), {"aud": "other"}, 401),
    ((), {"aud": ["other", WORKER_AUDIENCE]}, 200),
    ((), {"aud": 5}, 401),
    ((), {"aud": "portside-operator"}, 401),
    (("aud",), {}, 401),
    ((), {"iss": "other"}, 401),
    ((), {"iss": ["portside"]}, 401),
    (("iss",), {}, 401),
    (("exp",), {}, 401),
    ((), {"exp": "9999999999"}, 401),
    ((), {"exp": 1e30}, 401),
    ((), {"exp": 10**30}, 401),
    ((), {"exp": float(now() + 900)}, 401),
    ((), {"exp": -1}, 401),
    ((), {"exp": None}, 401),
    ((), {"exp": True}, 401),
    ((), {"exp": [now() + 900]}, 401),
    ((), {"sub": 123}, 401),
    ((), {"sub": {"$ne": ""}}, 401),
    ((), {"sub": None}, 401),
    (("sub",), {}, 401),
    (("jti",), {}, 401),
    ((), {"jti": 7}, 401),
    ((), {"nbf": now() + 3600}, 401),
    ((), {"nbf": str(now())}, 401),
    (("nbf",), {}, 401),
    ((), {"iat": now() + 3600}, 401),
    ((), {"iat": "now"}, 401),
    (("iat",), {}, 401),
    ((), {"att": "1"}, 401),
    ((), {"att": True}, 401),
    (("att",), {}, 401),
    ((), {"agent": {}}, 401),
]


async def test_odd_claims_under_a_right_signature_are_401_and_never_500(orchestrator: Wired) -> None:
    """BR-117: audience, issuer, required claims and their types; an aud list that holds ours passes."""
    worker = await orchestrator.worker()
    forger = await Forger.of(orchestrator, worker.job_id)
    for without, changes, status in ODD_CLAIMS:
        answer = await ask(worker.http, worker, "GET", "job", forger.token(*without, **changes))
        assert answer.status_code == status, (without, changes, answer.text)
        assert status == 200 or problem(answer)["code"] == "token_invalid"


async def test_clocks_may_be_half_a_minute_apart(orchestrator: Wired) -> None:
    """BR-118: 30 s of leeway, also for iat."""
    worker = await orchestrator.worker()
    forger = await Forger.of(orchestrator, worker.job_id)
    for skew_s, status in ((-3, 200), (3, 200), (25, 200), (-120, 200), (120, 401)):
        issued = now() + skew_s
        token = forger.token(iat=issued, nbf=issued, exp=issued + 900)
        assert (await ask(worker.http, worker, "GET", "job", token)).status_code == status, skew_s


async def test_the_end_of_life_is_exp_with_its_leeway(orchestrator: Wired) -> None:
    """BR-118: exp + leeway is the real end."""
    worker = await orchestrator.worker()
    forger = await Forger.of(orchestrator, worker.job_id)
    within = await ask(worker.http, worker, "GET", "job", forger.token(exp=now() - 20))
    assert within.status_code == 200
    after = await ask(worker.http, worker, "GET", "job", forger.token(exp=now() - 40))
    assert (after.status_code, problem(after)["code"]) == (401, "token_expired")


HEADERS: list[tuple[list[tuple[str, str]], str | None]] = [
    ([], "token_missing"),
    ([("Authorization", "Bearer ")], "token_invalid"),
    ([("Authorization", "Bearer")], "token_invalid"),
    ([("Authorization", "")], "token_invalid"),
    ([("Authorization", "Basic TOKEN")], "token_invalid"),
    ([("Authorization", "TOKEN")], "token_invalid"),
    ([("Authorization", "Bearer TOKEN"), ("Authorization", "Bearer TOKEN")], "token_invalid"),
    ([("Authorization", "bearer TOKEN")], None),
    ([("authorization", "BEARER TOKEN")], None),
]


async def test_the_authorization_header_is_one_bearer_token(orchestrator: Wired) -> None:
    """BR-115: empty and doubled headers are refused, a lower-case scheme is not."""
    worker = await orchestrator.worker()
    async with http_over(orchestrator.running.app) as http:
        for headers, code in HEADERS:
            sent = [(name, value.replace("TOKEN", worker.token)) for name, value in headers]
            path = f"/worker/{worker.job_id}"
            answer = await http.get(f"{path}/job", headers=sent)
            hot = await http.post(f"{path}/tools/execute", headers=sent, json={"tool_name": "echo"})
            if code is None:
                assert (answer.status_code, hot.status_code) == (200, 422), headers
            else:
                codes = (problem(answer)["code"], problem(hot)["code"])
                assert (answer.status_code, hot.status_code, codes) == (401, 401, (code, code)), headers


async def test_a_token_in_the_url_is_no_token(orchestrator: Wired) -> None:
    """BR-121: ?token= is not accepted."""
    worker = await orchestrator.worker()
    async with http_over(socket=worker.socket) as http:
        for name in ("token", "access_token"):
            answer = await http.get(f"/worker/{worker.job_id}/job", params={name: worker.token})
            assert problem(answer)["code"] == "token_missing"


async def test_another_job_s_token_is_403_on_every_route_and_changes_nothing(orchestrator: Wired) -> None:
    """BR-120: whether the other job exists can't be told."""
    worker, other = await orchestrator.worker(), await orchestrator.worker()
    before = await orchestrator.job(other.job_id)
    bodies: set[bytes] = set()
    for method, route in ROUTES:
        for job_id in (other.job_id, "no-such-job"):
            answer = await orchestrator.operator.request(
                method,
                f"/worker/{job_id}/{route}",
                headers={"Authorization": f"Bearer {worker.token}", "X-Job-Id": worker.job_id},
                json={"outcome": "completed", "job_id": worker.job_id},
            )
            assert (answer.status_code, problem(answer)["code"]) == (403, "job_mismatch"), route
            bodies.add(answer.content)
    assert len(bodies) == 1
    assert await orchestrator.job(other.job_id) == before
    assert not orchestrator.model.requests


async def test_another_job_s_socket_leads_nowhere_even_with_the_right_token(orchestrator: Wired) -> None:
    """BR-120: the socket names the job, the token proves it; both must agree."""
    worker, other = await orchestrator.worker(), await orchestrator.worker()
    for method, route in ROUTES:
        async with http_over(socket=worker.socket) as http:
            answer = await ask(http, other, method, route, other.token)
        assert (answer.status_code, problem(answer)["code"]) == (403, "job_mismatch"), route


async def test_a_body_that_names_another_job_is_refused(orchestrator: Wired) -> None:
    """BR-120: unknown fields are no way around the path."""
    worker, other = await orchestrator.worker(), await orchestrator.worker()
    answer = await worker.post("complete", {"outcome": "completed", "job_id": other.job_id})
    assert answer.status_code == 400
    call = {"tool_name": "echo", "params": {"text": "a"}, "job_id": other.job_id}
    assert (await worker.post("tools/execute", call)).status_code == 400
    assert (await orchestrator.job(other.job_id)).state == "running"


async def test_an_older_or_later_attempt_s_token_is_revoked(orchestrator: Wired) -> None:
    """BR-120: fencing."""
    worker = await orchestrator.worker()
    forger = await Forger.of(orchestrator, worker.job_id)
    for attempt in (0, 2):
        answer = await ask(worker.http, worker, "GET", "job", forger.token(att=attempt))
        assert (answer.status_code, problem(answer)["code"]) == (401, "token_revoked")


async def test_an_ended_job_s_token_is_revoked_at_once_and_can_t_be_renewed(orchestrator: Wired) -> None:
    """BR-119, BR-120: the credential's life follows the job's."""
    worker = await orchestrator.worker()
    await worker.finish()
    for method, route in ROUTES:
        answer = await ask(orchestrator.operator, worker, method, route, worker.token)
        if route == "complete":
            assert answer.status_code == 400  # it may repeat its last word; {} is none
        else:
            assert (answer.status_code, problem(answer)["code"]) == (401, "token_revoked"), route


async def test_renewal_gives_a_fresh_token_and_leaves_the_older_one_valid(orchestrator: Wired) -> None:
    """BR-119."""
    worker = await orchestrator.worker()
    fresh = (await worker.post("token/renew")).json()
    assert datetime.fromisoformat(fresh["expires_at"]).timestamp() > now() + 3000
    for token in (worker.token, fresh["token"]):
        assert (await ask(worker.http, worker, "GET", "job", token)).status_code == 200


async def test_a_live_job_s_expired_token_is_renewed_for_ten_minutes(orchestrator: Wired) -> None:
    """BR-119: a worker outlives an outage of the orchestrator."""
    worker = await orchestrator.worker()
    forger = await Forger.of(orchestrator, worker.job_id)
    for late_s, status in ((60, 200), (590, 200), (700, 401)):
        old = forger.token(iat=now() - 5000, nbf=now() - 5000, exp=now() - late_s)
        assert problem(await ask(worker.http, worker, "GET", "job", old))["code"] == "token_expired"
        assert (await ask(worker.http, worker, "POST", "token/renew", old)).status_code == status, late_s


async def test_renewal_is_refused_over_another_job_s_socket(orchestrator: Wired) -> None:
    worker, other = await orchestrator.worker(), await orchestrator.worker()
    async with http_over(socket=other.socket) as http:
        answer = await ask(http, worker, "POST", "token/renew", worker.token)
    assert problem(answer)["code"] == "job_mismatch"


async def test_operators_and_workers_do_not_reach_one_another_s_routes(orchestrator: Wired) -> None:
    """BR-117, BR-120: other audiences; and no operator comes over a job's socket."""
    worker = await orchestrator.worker()
    operator_token = orchestrator.operator.headers["authorization"].removeprefix("Bearer ")
    for method, route in ROUTES:
        answer = await ask(orchestrator.operator, worker, method, route, operator_token)
        assert (answer.status_code, problem(answer)["code"]) == (401, "token_invalid"), route
    async with http_over(socket=worker.socket, token=operator_token) as over_job_socket:
        for method, route in OPERATOR_ROUTES:
            as_worker = await orchestrator.operator.request(
                method,
                f"/api/v1/{route}",
                headers={"Authorization": f"Bearer {worker.token}"},
                content=b"not json",
            )
            assert (as_worker.status_code, problem(as_worker)["code"]) == (401, "token_invalid"), route
            inside = await over_job_socket.request(method, f"/api/v1/{route}", content=b"not json")
            assert (inside.status_code, problem(inside)["code"]) == (401, "token_invalid"), route


async def test_nobody_s_body_is_looked_at_before_the_caller_is_known(orchestrator: Wired) -> None:
    worker = await orchestrator.worker()
    async with http_over(socket=worker.socket) as http:
        for method, route in ROUTES:
            answer = await http.request(method, f"/worker/{worker.job_id}/{route}", content=b"{not json")
            assert problem(answer)["code"] == "token_missing", route


async def test_tokens_stand_in_no_log(logged: io.StringIO, orchestrator: Wired) -> None:
    """BR-121: 401, 403, 500, at debug level; neither a token nor either half of its signature."""
    worker, other = await orchestrator.worker(), await orchestrator.worker()
    async with http_over(orchestrator.running.app) as http:
        await ask(http, worker, "GET", "job", worker.token[:-2])
        await ask(http, other, "GET", "job", worker.token)
    broken = await worker.execute("has_bug", key="1:a")
    error_id = problem(broken)["detail"].rsplit(" ", 1)[1]
    assert logged.getvalue().count(error_id) == 1
    signature = worker.token.rsplit(".", 1)[1]
    operator_token = orchestrator.operator.headers["authorization"].removeprefix("Bearer ")
    for marker in (signature[:20], signature[-20:-2], operator_token):
        assert marker not in logged.getvalue()
