"""Tokens as an attacker makes them."""

from __future__ import annotations

import base64
import hmac
import json
from typing import Any

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from orchestrator.services.signing import ISSUER
from orchestrator.services.tokens import WORKER_AUDIENCE
from tests.support.orchestrator import Wired
from worker.clock import SystemClock


def now() -> int:
    return int(SystemClock().now().timestamp())


def part(value: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


class Forger:
    """Makes tokens of our own key, right ones and wrong ones.

    Attributes:
        claims: those of the right one.
    """

    def __init__(self, kid: str, private_pem: str, claims: dict[str, Any]) -> None:
        self.kid = kid
        self.private_pem = private_pem
        self.claims = claims

    @classmethod
    async def of(cls, orchestrator: Wired, job_id: str) -> Forger:
        """Forges for the worker of a job."""
        claims = {
            "iss": ISSUER,
            "aud": WORKER_AUDIENCE,
            "sub": job_id,
            "jti": "j",
            "iat": now(),
            "nbf": now(),
            "exp": now() + 900,
            "att": 1,
            "scope": "worker",
            "agent": "coder",
            "network": "local",
        }
        (key,) = await orchestrator.stores.signing_keys.list()
        return cls(key.kid, key.private_pem, claims)

    @classmethod
    async def after(cls, orchestrator: Wired, token: str) -> Forger:
        """Forges after one that was given out."""
        claims = jwt.decode(token, options={"verify_signature": False})
        (key,) = await orchestrator.stores.signing_keys.list()
        return cls(key.kid, key.private_pem, claims)

    def token(self, *without: str, **changes: Any) -> str:
        """Rightly signed; claims are changed or left out."""
        claims = {name: value for name, value in (self.claims | changes).items() if name not in without}
        return self.signed(claims)

    def signed(self, claims: Any, kid: Any = None) -> str:
        """By the right key, without the library's own ideas of what claims may be."""
        key = serialization.load_pem_private_key(self.private_pem.encode(), None)
        assert isinstance(key, Ed25519PrivateKey)
        head = f"{part({'alg': 'EdDSA', 'typ': 'JWT', 'kid': kid or self.kid})}.{part(claims)}"
        return f"{head}.{base64.urlsafe_b64encode(key.sign(head.encode())).rstrip(b'=').decode()}"

    def hmac(self, algorithm: str, digest: str, secret: bytes) -> str:
        head = f"{part({'alg': algorithm, 'typ': 'JWT', 'kid': self.kid})}.{part(self.claims)}"
        made = hmac.new(secret, head.encode(), digest).digest()
        return f"{head}.{base64.urlsafe_b64encode(made).rstrip(b'=').decode()}"

    def public(self, *, raw: bool = False) -> bytes:
        key = serialization.load_pem_private_key(self.private_pem.encode(), None).public_key()
        if raw:
            return key.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
        return key.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)

    def forgeries(self) -> dict[str, str]:
        """BR-115, each as an attacker would send it."""
        claims, other = part(self.claims), Ed25519PrivateKey.generate()
        head, body, signature = self.token().split(".")
        none = {name: part({"alg": name, "typ": "JWT", "kid": self.kid}) for name in ("none", "NoNe", "NONE")}
        more = part(self.claims | {"exp": now() + 10**6})
        return {
            **{f"alg {name}": f"{header}.{claims}." for name, header in none.items()},
            "alg none, no trailing dot": f"{none['none']}.{claims}",
            "alg none, with the old signature": f"{none['none']}.{claims}.{signature}",
            "HS256 by the public key's text": self.hmac("HS256", "sha256", self.public()),
            "HS256 by the public key's bytes": self.hmac("HS256", "sha256", self.public(raw=True)),
            "HS512 by the public key's text": self.hmac("HS512", "sha512", self.public()),
            "HS256 by an empty key": self.hmac("HS256", "sha256", b""),
            "another key under a known kid": jwt.encode(
                self.claims, other, algorithm="EdDSA", headers={"kid": self.kid}
            ),
            "an unknown kid": self.signed(self.claims, kid="other"),
            "a kid that is a path": self.signed(self.claims, kid="../../etc/passwd"),
            "a kid that is a list": self.signed(self.claims, kid=[self.kid]),
            "signature removed": f"{head}.{body}.",
            "signature and dot removed": f"{head}.{body}",
            "changed payload": f"{head}.{more}.{signature}",
            "signature of other length": f"{head}.{body}.{signature[:-4]}",
            "claims are a list": self.signed([1, 2]),
            "no JSON": "aaaa.bbbb.cccc",
            "one part": "abc",
            "very long": "a" * 100_000,
            "not ASCII": "t\u00f6ken",
        }
