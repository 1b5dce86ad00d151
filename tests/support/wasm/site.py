"""A web site on this machine, with and without TLS, that remembers what it was asked."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass(frozen=True)
class Page:
    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True)
class Asked:
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


Answer = Page | Callable[[Asked], Page]


@dataclass
class Site:
    """Answers by path without its query; anything else is 404."""

    port: int
    pages: dict[str, Answer]
    asked: list[Asked] = field(default_factory=list[Asked])


@contextmanager
def site(pages: dict[str, Answer], *, tls: ssl.SSLContext | None = None) -> Generator[Site]:
    made = Site(0, pages)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, made))
    server.daemon_threads = True
    made.port = server.server_port
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield made
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    def __init__(self, site: Site, *args: Any) -> None:
        self._site = site
        super().__init__(*args)

    def handle(self) -> None:
        try:
            super().handle()
        except OSError:
            self.close_connection = True  # the client left, or believed no certificate

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        asked = Asked(self.command, self.path, dict(self.headers.items()), body)
        self._site.asked.append(asked)
        found = self._site.pages.get(self.path.partition("?")[0], Page(b"nothing here", 404))
        page = found if isinstance(found, Page) else found(asked)
        self.send_response(page.status)
        for name, value in page.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(page.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(page.body)

    do_GET = do_POST = do_HEAD = _answer  # noqa: N815 - the base class looks for these names

    def log_message(self, format: str, *args: object) -> None:
        """Tests read what was asked instead."""


def certificate(folder: Path, host: str) -> tuple[ssl.SSLContext, Callable[[], ssl.SSLContext]]:
    """A server's side of TLS for one host, and that of clients who believe it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
    now = datetime.fromtimestamp(1_700_000_000, UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now)
        .not_valid_after(now + timedelta(days=36_500))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem, private = folder / "site.pem", folder / "site.key"
    pem.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    private.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(pem, private)
    return server, lambda: ssl.create_default_context(cafile=str(pem))
