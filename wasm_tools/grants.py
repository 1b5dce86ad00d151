"""What a sidecar grants its guest. Nothing is granted without it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

_HOST_NAME = re.compile(
    r"(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
)
TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""A method's or header's name (RFC 9110, 5.6.2)."""
_PATH = re.compile(r"/[\x21-\x22\x24-\x3e\x40-\x7e]*")
_NEVER_A_CREDENTIAL = frozenset(
    {"host", "content-length", "transfer-encoding", "connection", "accept-encoding"}
)
DEFAULT_PORTS = {"https": 443, "http": 80}


class Strict(BaseModel):
    """A part of a sidecar: unknown keys and wrong types are errors."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


def _host(text: str) -> str:
    """A host in lower case: a name, an address, `*` for any, `*.example.org` for what lies under one."""
    host = text.lower().rstrip(".")
    name = host.removeprefix("*.")
    if host != "*" and not (host.startswith("[") and host.endswith("]")) and not _HOST_NAME.fullmatch(name):
        raise ValueError("a host is a name like api.example.org, *.example.org or *, without scheme or path")
    return host


def _exact_host(text: str) -> str:
    if "*" in text:
        raise ValueError("a credential goes to hosts named in full, without *")
    return _host(text)


def _method(text: str) -> str:
    if not TOKEN.fullmatch(text) or text.upper() == "CONNECT":
        raise ValueError("not a method that can be granted")
    return text.upper()


def _path(text: str) -> str:
    if not _PATH.fullmatch(text) or any(part in {".", ".."} for part in text.split("/")):
        raise ValueError("a path prefix starts with / and has no query and no dots as segments")
    return text


def _workspace_path(text: str) -> str:
    path = PurePosixPath(text)
    if not text or path.is_absolute() or ".." in path.parts:
        raise ValueError("a path inside the workspace; '.' is all of it")
    return str(path)


Host = Annotated[str, AfterValidator(_host)]
ExactHost = Annotated[str, AfterValidator(_exact_host)]


class HttpRule(Strict):
    """One kind of request that is allowed.

    Attributes:
        scheme: `http` only where it is asked for.
        port: the scheme's own when absent.
        path_prefix: whole segments: `/repos` allows `/repos/x` and not `/reposition`.
        methods: reading only, unless others are named.
    """

    host: Host
    path_prefix: Annotated[str, AfterValidator(_path)] = "/"
    methods: tuple[Annotated[str, AfterValidator(_method)], ...] = Field(
        default=("GET", "HEAD"), strict=False
    )
    scheme: Literal["https", "http"] = "https"
    port: int | None = Field(default=None, gt=0, lt=65_536)

    @property
    def effective_port(self) -> int:
        """The port, named or not."""
        return self.port or DEFAULT_PORTS[self.scheme]

    def origin(self) -> str:
        """As a person writes it."""
        port = f":{self.port}" if self.port not in {None, DEFAULT_PORTS[self.scheme]} else ""
        return f"{self.scheme}://{self.host}{port}"


class Credential(Strict):
    """A secret that the host adds to requests, and where.

    Attributes:
        secret: its name in the secret store.
        name: the header or query parameter; for `path`, the text in the path that the secret replaces.
        hosts: the only ones it is sent to.
    """

    secret: str = Field(min_length=1, max_length=200)
    location: Literal["bearer", "basic", "header", "query", "path"] = Field(alias="in")
    name: str | None = Field(default=None, min_length=3, max_length=200)
    hosts: tuple[ExactHost, ...] = Field(min_length=1, strict=False)

    @model_validator(mode="after")
    def _named_where_needed(self) -> Self:
        if (self.name is None) == (self.location in {"header", "query", "path"}):
            verb = "needs" if self.name is None else "takes no"
            raise ValueError(f"a credential in '{self.location}' {verb} 'name'")
        if self.location == "header":
            assert self.name is not None
            if not TOKEN.fullmatch(self.name) or self.name.lower() in _NEVER_A_CREDENTIAL:
                raise ValueError(f"{self.name!r} is no header for a credential")
        return self


class HttpRate(Strict):
    """`calls` requests at once, won back evenly over `per_s` seconds, for one job."""

    calls: int = Field(gt=0)
    per_s: float = Field(gt=0, allow_inf_nan=False, strict=False)

    def within(self, other: HttpRate) -> bool:
        """Whether it never allows a request that the other does not."""
        return self.calls <= other.calls and self.calls / self.per_s <= other.calls / other.per_s


class HttpGrant(Strict):
    """Requests through the host."""

    allow: tuple[HttpRule, ...] = Field(default=(), strict=False)
    credentials: dict[str, Credential] = {}
    rate_limit: HttpRate | None = None
    allow_private: bool = False


class SecretsGrant(Strict):
    """Names whose existence the guest may ask for; never their values."""

    exists: tuple[str, ...] = Field(default=(), strict=False)


class WorkspaceGrant(Strict):
    """Files and folders of the job's starting workspace that the guest may read."""

    read: tuple[Annotated[str, AfterValidator(_workspace_path)], ...] = Field(default=(), strict=False)


class Grants(Strict):
    """Everything that a guest may reach."""

    http: HttpGrant = HttpGrant()
    secrets: SecretsGrant = SecretsGrant()
    workspace: WorkspaceGrant = WorkspaceGrant()
    tools: dict[str, Annotated[str, Field(min_length=1, max_length=200)]] = {}

    @property
    def any(self) -> bool:
        """Whether there is anything at all."""
        return bool(
            self.http.allow
            or self.http.credentials
            or self.secrets.exists
            or self.workspace.read
            or self.tools
        )

    def asks(self) -> tuple[str, ...]:
        """One line for each thing, for a person to agree to."""
        return tuple(self._lines())

    def _lines(self) -> Iterator[str]:
        for rule in self.http.allow:
            yield f"send {', '.join(rule.methods)} to {rule.origin()}{rule.path_prefix}"
        if self.http.allow_private:
            yield "reach private and local addresses too"
        for credential in self.http.credentials.values():
            yield (
                f"have the secret {credential.secret} added to requests to {', '.join(credential.hosts)}; "
                "it never sees the value"
            )
        for name in self.secrets.exists:
            yield f"know whether the secret {name} exists"
        for path in self.workspace.read:
            what = "the whole workspace" if path == "." else f"{path} in the workspace"
            yield f"read {what}, as the job began"
        for alias, tool in self.tools.items():
            yield f"call the tool {tool}" + ("" if alias == tool else f" (as {alias})")
