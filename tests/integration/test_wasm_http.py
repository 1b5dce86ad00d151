"""A guest's requests, against a site on this machine: what passes, what is added, what comes back (BR-095)."""

from __future__ import annotations

import base64
import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pytest

from tests.support.wasm.site import Asked, Page, Site, certificate, site
from wasm_tools.grants import HttpGrant
from wasm_tools.host import HostDenied, HttpRequest, HttpResponse, OverLimit
from wasm_tools.http_gate import BODY_ENCODING, HttpGate, HttpOutside
from wasm_tools.limits import Limits

HOST = "api.example.test"
TOKEN = "a-token-of-the-operator-1234"


class Visitor:
    """Sends a guest's requests; names lead to the addresses that a test says, one answer after another."""

    def __init__(self, grant: dict[str, Any], *addresses: Sequence[str], **options: Any) -> None:
        self.lookups: list[str] = []
        self._answers: Iterator[Sequence[str]] = iter(addresses or [["127.0.0.1"]] * 100)
        self.secrets: dict[str, str] = {"token": TOKEN}
        outside = HttpOutside(
            resolve=self._resolve,
            secret=lambda name, _within_s: self.secrets.get(name),
            wait_s=options.get("wait_s", lambda: None),
            tls=options.get("tls", ssl.create_default_context)(),
            opened=lambda _socket: None,
            public=lambda address: address == "127.0.0.1",
        )
        self._gate = HttpGate(HttpGrant.model_validate(grant), options.get("limits", Limits()), outside)

    def _resolve(self, host: str, port: int, within_s: float) -> Sequence[str]:
        self.lookups.append(host)
        return next(self._answers)

    def send(self, method: str, url: str, **more: Any) -> HttpResponse:
        headers = tuple(more.get("headers", {}).items())
        request = HttpRequest(method, url, headers, more.get("body"), more.get("timeout_ms"))
        return self._gate.send(request, more.get("remaining_s", 10.0))

    def refused(self, method: str, url: str, **more: Any) -> str:
        with pytest.raises(HostDenied) as caught:
            self.send(method, url, **more)
        return str(caught.value)


def plain(port: int, **more: Any) -> dict[str, Any]:
    """A grant for the site without TLS."""
    rule = {"host": HOST, "scheme": "http", "port": port, "methods": ["GET", "POST", "HEAD"]}
    return {"allow": [rule], **more}


def url(there: Site, path: str) -> str:
    return f"http://{HOST}:{there.port}{path}"


def test_over_tls_the_certificate_has_to_fit_the_name_not_the_address(tmp_path: Path) -> None:
    server, believer = certificate(tmp_path, HOST)
    with site({"/": Page(b"sealed")}, tls=server) as there:
        rules: list[dict[str, Any]] = [{"host": host, "port": there.port} for host in (HOST, "other.test")]
        visitor = Visitor({"allow": rules}, tls=believer)
        assert visitor.send("GET", f"https://{HOST}:{there.port}/").body == "sealed"
        assert "certificate" in visitor.refused("GET", f"https://other.test:{there.port}/")
        distrusting = Visitor({"allow": rules}, tls=ssl.create_default_context)
        assert "certificate" in distrusting.refused("GET", f"https://{HOST}:{there.port}/")


@pytest.mark.parametrize(
    "addresses", [["10.0.0.1"], ["169.254.169.254"], ["127.0.0.1", "10.0.0.1"], ["::1"], []]
)
def test_a_name_with_one_address_that_is_not_public_is_refused(addresses: list[str]) -> None:
    with site({"/": Page(b"in")}) as there:
        visitor = Visitor(plain(there.port), addresses)
        assert "at an address that is not public" in visitor.refused("GET", url(there, "/"))
        assert there.asked == []


def test_private_addresses_are_reached_where_the_grant_says_so() -> None:
    with site({"/": Page(b"in")}) as there:
        visitor = Visitor(plain(there.port, allow_private=True), ["127.0.0.1"], ["224.0.0.1"])
        assert visitor.send("GET", url(there, "/")).body == "in"
        assert "not public" in visitor.refused("GET", url(there, "/"))


def test_a_name_that_changes_its_address_after_the_check_changes_nothing() -> None:
    """BR-095: the connection goes to the address that was checked; the name is never looked up again."""
    with site({"/": Page(b"in")}) as there:
        visitor = Visitor(plain(there.port), ["127.0.0.1"], ["127.0.0.2"])
        assert visitor.send("GET", url(there, "/")).body == "in"
        assert visitor.lookups == [HOST]
        assert there.asked[0].headers["Host"] == f"{HOST}:{there.port}"
        assert "not public" in visitor.refused("GET", url(there, "/")), "a second request is checked anew"


def test_a_redirect_is_checked_from_the_start() -> None:
    """BR-095: another host, another scheme, and the same name at another address."""
    with site({}) as there:
        there.pages |= {
            "/away": Page(status=302, headers={"Location": "http://169.254.169.254/latest"}),
            "/sealed": Page(status=302, headers={"Location": f"https://{HOST}/"}),
            "/again": Page(status=307, headers={"Location": "/"}),
            "/round": Page(status=302, headers={"Location": "/round"}),
            "/": Page(b"home"),
        }
        visitor = Visitor(plain(there.port))
        assert "169.254.169.254 is not among" in visitor.refused("GET", url(there, "/away"))
        assert "may reach" in visitor.refused("GET", url(there, "/sealed"))
        assert visitor.send("GET", url(there, "/again")).body == "home"
        assert visitor.refused("GET", url(there, "/round")) == "more than 5 redirects"
        rebound = Visitor(plain(there.port), ["127.0.0.1"], ["127.0.0.2"])
        assert "not public" in rebound.refused("GET", url(there, "/again"))


def test_a_post_keeps_its_body_through_307_and_becomes_a_get_through_303() -> None:
    with site({"/": Page(b"ok")}) as there:
        there.pages["/303"] = Page(status=303, headers={"Location": "/"})
        there.pages["/307"] = Page(status=307, headers={"Location": "/"})
        visitor = Visitor(plain(there.port))
        for path in ("/303", "/307"):
            visitor.send("POST", url(there, path), body="{}", headers={"Content-Type": "text/json"})
        seen = [(one.method, one.body, one.headers.get("Content-Type")) for one in there.asked]
    post = ("POST", b"{}", "text/json")
    assert seen == [post, ("GET", b"", None), post, post]


@pytest.mark.parametrize(
    ("credential", "header", "value"),
    [
        ({"in": "bearer"}, "Authorization", f"Bearer {TOKEN}"),
        ({"in": "basic"}, "Authorization", "Basic " + base64.b64encode(TOKEN.encode()).decode()),
        ({"in": "header", "name": "X-Api-Key"}, "X-Api-Key", TOKEN),
    ],
)
def test_a_credential_is_added_by_the_host_and_wins_over_the_guests(
    credential: dict[str, str], header: str, value: str
) -> None:
    grant = {"secret": "token", "hosts": [HOST], **credential}
    with site({"/": Page(b"ok")}) as there:
        visitor = Visitor(plain(there.port, credentials={"main": grant}))
        visitor.send("GET", url(there, "/"), headers={header: "the guest's own"})
        assert there.asked[0].headers[header] == value


def test_a_credential_in_the_query_or_the_path_is_encoded() -> None:
    grants = {
        "q": {"secret": "token", "in": "query", "name": "key", "hosts": [HOST]},
        "p": {"secret": "slashed", "in": "path", "name": "TOKEN", "hosts": [HOST]},
    }
    with site({}) as there:
        visitor = Visitor(plain(there.port, credentials=grants))
        visitor.secrets["slashed"] = "a/../b?c"
        visitor.send("GET", url(there, "/botTOKEN/send?x=1"))
        assert there.asked[0].path == f"/bota%2F..%2Fb%3Fc/send?x=1&key={TOKEN}"


def test_a_credential_goes_to_its_own_hosts_only_also_after_a_redirect() -> None:
    """BR-095: neither the operator's secret nor the guest's own header follows to another host."""
    with site({"/": Page(b"ok")}) as there:
        there.pages["/on"] = Page(status=302, headers={"Location": f"http://other.test:{there.port}/"})
        grant = plain(there.port, credentials={"m": {"secret": "token", "in": "bearer", "hosts": [HOST]}})
        grant["allow"].append({**grant["allow"][0], "host": "other.test"})
        visitor = Visitor(grant)
        visitor.send("GET", url(there, "/on"), headers={"Cookie": "a=b", "X-Kept": "c"})
        first, second = there.asked
        assert first.headers["Authorization"] == f"Bearer {TOKEN}"
        assert first.headers["Cookie"] == "a=b"
        assert "Authorization" not in second.headers
        assert "Cookie" not in second.headers
        assert second.headers["X-Kept"] == "c"


def test_a_secret_that_is_not_set_or_fits_no_header_sends_nothing() -> None:
    grant = {"m": {"secret": "absent", "in": "bearer", "hosts": [HOST]}}
    with site({}) as there:
        visitor = Visitor(plain(there.port, credentials=grant))
        assert "the secret absent is not set" in visitor.refused("GET", url(there, "/"))
        visitor.secrets["absent"] = "two\r\nlines: x"
        refusal = visitor.refused("GET", url(there, "/"))
        assert "line break" in refusal
        assert "two" not in refusal
        assert there.asked == []


def test_a_site_that_echoes_the_credential_does_not_show_it_to_the_guest() -> None:
    def echo(asked: Asked) -> Page:
        given = asked.headers["Authorization"]
        encoded = base64.b64encode(given.encode())
        body = given.encode() + b"\n" + encoded + (b"\xff\xfe" if "binary" in asked.path else b"")
        return Page(body, headers={"X-Echo": given})

    grant = {"m": {"secret": "token", "in": "bearer", "hosts": [HOST]}}
    with site({"/": echo}) as there:
        visitor = Visitor(plain(there.port, credentials=grant))
        text = visitor.send("GET", url(there, "/"))
        assert text.body.startswith("Bearer [redacted:token]\n")
        binary = visitor.send("GET", url(there, "/?binary"))
        assert (BODY_ENCODING, "base64") in binary.headers
        for response in (text, binary):
            assert ("x-echo", "Bearer [redacted:token]") in response.headers
            raw = response.body if response is text else base64.b64decode(response.body).decode("latin-1")
            assert TOKEN not in raw
            assert base64.b64encode(TOKEN.encode()).decode().rstrip("=") not in raw
            assert "[redacted:token]" in raw


ECHOES: tuple[Callable[[str], str], ...] = (
    lambda value: quote(value, safe=""),
    lambda value: quote(value, safe="").lower(),
    lambda value: quote(value, safe="/"),
    lambda value: json.dumps({"given": value}),
    lambda value: base64.b64encode(value.encode()).decode(),
    lambda value: base64.b64encode(f"x{value}".encode()).decode(),
    lambda value: base64.urlsafe_b64encode(f"xy{value}, and more".encode()).decode(),
)


@pytest.mark.parametrize("echo", ECHOES)
@pytest.mark.parametrize("where", ["body", "header", "reason of a redirect"])
def test_no_form_in_which_a_site_hands_a_credential_back_reaches_the_guest(
    echo: Callable[[str], str], where: str
) -> None:
    """BR-095: percent-encoded, inside JSON, in base64 at any offset; in a body, a header or a refusal."""
    secret = 'per/cent+"quoted" & long=enough\u00e9'

    def answer(_asked: Asked) -> Page:
        said = echo(secret)
        match where:
            case "body":
                return Page(said.encode())
            case "header":
                return Page(headers={"X-Echo": said})
            case _:
                return Page(status=302, headers={"Location": "https://" + quote(said, safe="") + "/"})

    grant = {"m": {"secret": "token", "in": "query", "name": "key", "hosts": [HOST]}}
    with site({"/": answer}) as there:
        visitor = Visitor(plain(there.port, credentials=grant))
        visitor.secrets["token"] = secret
        if where == "reason of a redirect":
            seen = visitor.refused("GET", url(there, "/"))
        else:
            response = visitor.send("GET", url(there, "/"))
            seen = f"{response.headers} {response.body}"
            assert "[redacted:token]" in seen
    for form in ("quoted", "long=enough", echo(secret)):
        assert form not in unquote(seen)


def test_a_secret_that_one_site_hands_to_the_next_is_not_shown_by_the_next() -> None:
    """BR-095: a redirect may carry it to a site that never had it, and that echoes what it is asked."""
    with site({"/there": lambda asked: Page(asked.path.encode())}) as there:
        there.pages["/"] = lambda asked: Page(
            status=302, headers={"Location": f"http://other.example.test:{there.port}/there?was={TOKEN}"}
        )
        grant = plain(there.port, credentials={"m": {"secret": "token", "in": "bearer", "hosts": [HOST]}})
        allow = [*grant["allow"], {**grant["allow"][0], "host": "other.example.test"}]
        visitor = Visitor({**grant, "allow": allow})
        assert visitor.send("GET", url(there, "/")).body == "/there?was=[redacted:token]"
        refusing = Visitor(grant)
        there.pages["/"] = Page(status=302, headers={"Location": f"http://{TOKEN}.test/"})
        assert TOKEN not in refusing.refused("GET", url(there, "/"))


def test_a_password_is_not_shown_without_its_user_either() -> None:
    with site({"/": Page(b"the password hunter2hunter2 is wrong")}) as there:
        grant = {"m": {"secret": "token", "in": "basic", "hosts": [HOST]}}
        visitor = Visitor(plain(there.port, credentials=grant))
        visitor.secrets["token"] = "joe:hunter2hunter2"
        assert visitor.send("GET", url(there, "/")).body == "the password [redacted:token] is wrong"


def test_text_in_another_charset_is_text_and_anything_else_is_base64() -> None:
    with site({}) as there:
        there.pages["/latin"] = Page(b"caf\xe9", headers={"Content-Type": "text/plain; charset=ISO-8859-1"})
        there.pages["/png"] = Page(b"\x89PNG\xff", headers={BODY_ENCODING: "none"})
        visitor = Visitor(plain(there.port))
        assert visitor.send("GET", url(there, "/latin")).body == "caf\u00e9"
        image = visitor.send("GET", url(there, "/png"))
        assert base64.b64decode(image.body) == b"\x89PNG\xff"
        assert [value for name, value in image.headers if name == BODY_ENCODING] == ["base64"]


def test_requests_and_bytes_of_a_call_are_counted_redirects_too() -> None:
    with site({"/": Page(b"x" * 600)}) as there:
        there.pages["/on"] = Page(status=302, headers={"Location": "/"})
        counted = Visitor(plain(there.port), limits=Limits(http_requests=3))
        counted.send("GET", url(there, "/on"))
        counted.send("GET", url(there, "/"))
        with pytest.raises(OverLimit, match="its 3 HTTP requests"):
            counted.send("GET", url(there, "/"))
        weighed = Visitor(plain(there.port), limits=Limits(http_bytes=1_000))
        weighed.send("GET", url(there, "/"))
        with pytest.raises(OverLimit, match="1,000 bytes"):
            weighed.send("GET", url(there, "/"))
        assert len(there.asked) == 5


@pytest.mark.parametrize("more", [{"body": "x" * 1_001}, {"headers": {"X": "y" * 1_001}}])
def test_a_request_that_is_too_large_is_never_sent(more: dict[str, Any]) -> None:
    with site({"/": Page(b"x")}) as there:
        visitor = Visitor(plain(there.port), limits=Limits(http_bytes=1_000))
        with pytest.raises(OverLimit, match="1,000 bytes"):
            visitor.send("POST", url(there, "/"), **more)
        assert there.asked == []


def test_the_headers_of_an_answer_count_too() -> None:
    page = Page(b"x", headers={"X": "y" * 1_001})
    with site({"/": page}) as there, pytest.raises(OverLimit, match="1,000 bytes"):
        Visitor(plain(there.port), limits=Limits(http_bytes=1_000)).send("GET", url(there, "/"))


def test_the_declared_rate_is_kept() -> None:
    with site({"/": Page(b"x")}) as there:
        waits = iter([None, 2.5])
        visitor = Visitor(plain(there.port), wait_s=lambda: next(waits))
        visitor.send("GET", url(there, "/"))
        assert "wait 2.5 s" in visitor.refused("GET", url(there, "/"))
        assert len(there.asked) == 1


@pytest.mark.parametrize("header", ["Host", "content-length", "Transfer-Encoding", "Connection"])
def test_headers_that_frame_the_request_are_the_hosts(header: str) -> None:
    with site({}) as there:
        refusal = Visitor(plain(there.port)).refused("GET", url(there, "/"), headers={header: "x"})
        assert "set by the host" in refusal


@pytest.mark.parametrize(
    "headers", [{"X": "a\r\nY: b"}, {"X\r\nY": "b"}, {"X: Y": "b"}, {"": "b"}, {"\u00e9": "b"}]
)
def test_a_header_that_would_be_two_is_refused(headers: dict[str, str]) -> None:
    with site({}) as there:
        Visitor(plain(there.port)).refused("GET", url(there, "/"), headers=headers)
        assert there.asked == []


@pytest.mark.parametrize("drip", [b"", b"H", b"HTTP/1.1 200 OK\r\nX: y\r\n\r\n"])
def test_a_site_that_drips_its_answer_is_left_at_the_deadline(drip: bytes) -> None:
    """BR-090: no number of single bytes makes a request longer than its time."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        over = threading.Event()

        def serve() -> None:
            stream, _ = listener.accept()
            with stream:
                stream.sendall(drip)
                while not over.wait(0.05):
                    try:
                        stream.sendall(b"a" if drip else b"")
                    except OSError:
                        return

        thread = threading.Thread(target=serve)
        thread.start()
        port = listener.getsockname()[1]
        refusal = Visitor(plain(port)).refused("GET", f"http://{HOST}:{port}/", timeout_ms=400)
        over.set()
        thread.join()
    assert "did not answer in time" in refusal


def test_nobody_listening_is_said_in_words() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    assert "could not be reached" in Visitor(plain(port)).refused("GET", f"http://{HOST}:{port}/?k=v")
    assert "k=v" not in Visitor(plain(port)).refused("GET", f"http://{HOST}:{port}/?k=v")
