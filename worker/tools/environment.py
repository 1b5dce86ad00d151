"""What a command finds in its environment."""

from __future__ import annotations

import json
from collections.abc import Mapping

# In an image that is not the worker's own: all of the image's variables, for commands alone.
IMAGE_ENVIRONMENT = "PORTSIDE_IMAGE_ENVIRONMENT"
_INHERITED = (
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "TZ", "TMPDIR", "TMP", "TEMP",
    "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "LC_MESSAGES", "LC_COLLATE", "LC_NUMERIC", "LC_TIME",
    "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR",
    "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY",
    "http_proxy", "https_proxy", "all_proxy", "no_proxy",
    "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS",
    "GIT_SSL_CAINFO", "PIP_CERT",
    "CARGO_HOME", "RUSTUP_HOME", "GOPATH", "GOROOT", "GOCACHE", "JAVA_HOME", "NODE_PATH", "NPM_CONFIG_PREFIX",
    "VIRTUAL_ENV", "LD_LIBRARY_PATH", "PKG_CONFIG_PATH",
)  # fmt: skip
_DEFAULTS = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "LANG": "C.UTF-8",
}
# Nobody sits at the other end: no prompt, no pager, no editor, no colours.
_UNATTENDED = {
    "CI": "1",
    "TERM": "dumb",
    "NO_COLOR": "1",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "MANPAGER": "cat",
    "EDITOR": "true",
    "VISUAL": "true",
    "GIT_EDITOR": "true",
    "GIT_TERMINAL_PROMPT": "0",
    "DEBIAN_FRONTEND": "noninteractive",
    "PIP_NO_INPUT": "1",
}


def child_environment(inherited: Mapping[str, str], credentials: Mapping[str, str]) -> dict[str, str]:
    """The whole environment of a command: what it may inherit, and what the job was granted.

    It inherits a fixed list of names, or what its own image says. Nothing else of the worker's own
    environment gets through, so its tokens can't.
    """
    image: dict[str, str] | None = json.loads(inherited.get(IMAGE_ENVIRONMENT) or "null")
    if image is None:
        kept = {name: inherited[name] for name in _INHERITED if name in inherited}
    else:
        kept = {**image, "HOME": inherited.get("HOME", "/")}
    return {**_DEFAULTS, **kept, **_UNATTENDED, **credentials}
