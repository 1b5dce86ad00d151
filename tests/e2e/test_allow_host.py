"""PD-70, PD-71, PD-72: `--allow-host` in a real container: named hosts over HTTP(S), and nothing else."""

from __future__ import annotations

import asyncio
import functools
import http.server
import json
import subprocess
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.name_server import NameServer, name_server
from tests.support.command_line import CommandLine, Ran
from tests.support.egress import CLOSED, HERE, squid_or_skip
from tests.support.package_index import package_index

pytestmark = [pytest.mark.e2e, pytest.mark.docker, pytest.mark.timeout(400)]

PACKAGE = "six"
PROBE = """
import json, os, socket, subprocess, sys, urllib.error, urllib.request

def fetched(url):
    try:
        return urllib.request.urlopen(url, timeout=30).read().decode()
    except urllib.error.HTTPError as error:
        return f"{error.code} {error.read().decode().strip()}"
    except OSError as error:
        return str(error)

def reached(kind, family, address):
    with socket.socket(family, kind) as out:
        out.settimeout(3)
        try:
            out.connect(address)
            out.send(b"x")
        except OSError:
            return False
        return True

def resolves(name):
    try:
        return bool(socket.getaddrinfo(name, 80))
    except OSError:
        return False

site, host_port = sys.argv[1], int(sys.argv[2])
tcp, udp, v4, v6 = socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.AF_INET, socket.AF_INET6
clone = subprocess.run(["git", "clone", "-q", f"http://{site}/repository", "/tmp/clone"], capture_output=True, text=True)
print("FOUND " + json.dumps({
    "page": fetched(f"http://{site}/page.txt"),
    "clone": [clone.returncode, clone.stderr, os.listdir("/tmp/clone") if clone.returncode == 0 else []],
    "other": fetched("http://other.test/"),
    "other_tls": fetched("https://other.test/"),
    "lures": fetched(f"http://lures.test:{host_port}/"),
    "metadata": fetched("http://169.254.169.254/latest/meta-data/"),
    "ssh": fetched(f"http://mirror.test:22/"),
    "raw": {
        "tcp": reached(tcp, v4, ("192.0.2.1", 443)),
        "host": reached(tcp, v4, ("172.17.0.1", host_port)),
        "here": reached(tcp, v4, ("127.0.0.2", host_port)),
        "udp": reached(udp, v4, ("192.0.2.1", 53)),
        "metadata": reached(tcp, v4, ("169.254.169.254", 80)),
        "ipv6": reached(tcp, v6, ("2001:db8::1", 443)),
        "dns": resolves("mirror.test"),
    },
    "interfaces": [name for _, name in socket.if_nameindex()],
    "proxy_environment": sorted(name for name in os.environ if name.lower().endswith("_proxy")),
    "relay": fetched(os.environ["OPENAI_BASE_URL"] + "/models"),
}))
"""


@pytest.fixture
async def names() -> AsyncIterator[NameServer]:
    squid_or_skip()
    async with name_server() as server:
        server.names |= {"mirror.test": [HERE], "lures.test": [CLOSED]}
        yield server


@pytest.fixture
def served(tmp_path: Path) -> Iterator[int]:
    """The port of a web server on every address of loopback, with a page and a repository."""
    root = tmp_path / "www"
    root.mkdir()
    (root / "page.txt").write_text("hello from the mirror")
    repository = root / "repository"
    git = functools.partial(subprocess.run, check=True, capture_output=True)
    git(["git", "init", "-q", "-b", "main", str(repository)])
    (repository / "README").write_text("read me")
    git(["git", "-C", str(repository), "add", "."])
    who = ["-c", "user.name=n", "-c", "user.email=e@example.org"]
    git(["git", "-C", str(repository), *who, "commit", "-q", "-m", "one"])
    git(["git", "clone", "-q", "--bare", str(repository), str(root / "bare")])
    git(["git", "-C", str(root / "bare"), "update-server-info"])
    (root / "repository").rename(root / "worked")
    (root / "bare").rename(root / "repository")
    handler = functools.partial(Quiet, directory=str(root))
    with http.server.ThreadingHTTPServer(("0.0.0.0", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None: ...


def egress_of(line: CommandLine, ran: Ran) -> list[dict[str, Any]]:
    """Of the stored timeline: squid may tell of the last connections after the job has ended."""
    logs = line.run("jobs", "logs", ran.lines[-1]["job"]["id"], "--json")
    events = [one["event"] for one in logs.lines]
    return [one["data"] for one in events if one["type"] == "egress"]


async def run(command_line: CommandLine, *arguments: str) -> Ran:
    ran = await asyncio.to_thread(command_line.run, "run", *arguments, "--json", timeout_s=300)
    assert ran.exit_code == 0, ran.out[-3000:] + ran.err[-2000:]
    return ran


async def test_named_hosts_are_reached_by_ordinary_programs_and_nothing_else_is(
    command_line: CommandLine, names: NameServer, served: int, tmp_path: Path
) -> None:
    """BR-111 (d): the way home and the model's relay are not sent through the proxy."""
    workspace = tmp_path / "w"
    workspace.mkdir()
    (workspace / "probe.py").write_text(PROBE)
    settings = {"PORTSIDE_EGRESS_ALLOW_PRIVATE": f"{HERE}/32", "PORTSIDE_EGRESS_NAMESERVERS": names.address}
    line = CommandLine(command_line.home, {**command_line.environment, **settings})
    ran = await run(
        line,
        *("--workspace", str(workspace)),
        *("--exec", f"python3 probe.py mirror.test:{served} {served}"),
        *("--allow-host", f"mirror.test:{served}", "--allow-host", f"lures.test:{served}"),
        *("--allow-host", "169.254.169.254"),
    )
    found = json.loads(ran.lines[-1]["job"]["message"].partition("FOUND ")[2].splitlines()[0])
    assert found["page"] == "hello from the mirror"
    assert found["clone"] == [0, "", [".git", "README"]] or sorted(found["clone"][2]) == [".git", "README"]
    allowed = f"allowed: mirror.test:{served}, lures.test:{served}, 169.254.169.254"
    assert found["other"] == (
        f"403 other.test:80 is not allowed for this job; {allowed}; ask the operator for --allow-host other.test"
    )
    assert "403 other.test:443 is not allowed" in found["other_tls"]
    assert "403 lures.test leads to an address that is not public" in found["lures"]
    assert "403 169.254.169.254 leads to an address that is not public" in found["metadata"]
    assert "403 mirror.test:22 is not allowed" in found["ssh"]
    assert not any(found["raw"].values()), found["raw"]
    assert found["interfaces"] == ["lo"]
    assert "HTTPS_PROXY" in found["proxy_environment"]
    assert '"object":"list"' in found["relay"].replace(" ", "")

    connections = egress_of(line, ran)
    seen = {(one["host"], one["outcome"], one["cause"]) for one in connections}
    assert seen == {
        ("mirror.test", "carried", None),
        ("mirror.test", "refused", "not_allowed"),
        ("other.test", "refused", "not_allowed"),
        ("lures.test", "refused", "private_address"),
        ("169.254.169.254", "refused", "private_address"),
    }
    assert all(one["received_bytes"] > 0 for one in connections if one["outcome"] == "carried")
    assert ran.lines[-1]["job"]["allow_hosts"][0] == f"mirror.test:{served}"


async def test_pip_installs_a_package_from_an_allowed_index(command_line: CommandLine) -> None:
    squid_or_skip()
    index = await asyncio.to_thread(package_index, PACKAGE)
    if index is None:
        pytest.skip("this machine's package index does not answer")
    settings = {"PORTSIDE_EGRESS_ALLOW_PRIVATE": ",".join(index.private)}
    line = CommandLine(command_line.home, {**command_line.environment, **settings})
    allowed = [part for host in index.hosts for part in ("--allow-host", host)]
    command = (
        "python3 -m venv /tmp/v && /tmp/v/bin/pip install --quiet --no-cache-dir --disable-pip-version-check"
        f" --index-url {index.url} {PACKAGE} && /tmp/v/bin/python -c 'import {PACKAGE}; print({PACKAGE}.__name__)'"
    )
    ran = await run(line, "--exec", command, *allowed)
    assert ran.lines[-1]["job"]["message"].split()[-1] == PACKAGE
    reached = {one["host"] for one in egress_of(line, ran) if one["outcome"] == "carried"}
    assert reached == {host.partition(":")[0] for host in index.hosts}


async def test_a_model_reads_its_hosts_and_why_a_command_was_refused(
    command_line: CommandLine, tmp_path: Path
) -> None:
    """PD-72: git shows no more than a number; the tool's result has the sentence."""
    squid_or_skip()
    script = tmp_path / "script.yaml"
    script.write_text(
        """
turns:
  - call: [{tool: shell, arguments: {command: "git ls-remote https://other.test/x"}}]
  - expect: {last_tool_result: {tool: shell, is_error: true, contains: "allowed: only.test; ask the operator for --allow-host other.test"}}
    call: [{tool: finish, arguments: {success: true, summary: done}}]
"""
    )
    ran = await run(command_line, "look", "--model", f"scripted:{script}", "--allow-host", "only.test")
    assert [one["cause"] for one in egress_of(command_line, ran)] == ["not_allowed"]


def test_a_wrong_pattern_and_a_missing_squid_are_told_before_anything_starts(
    command_line: CommandLine,
) -> None:
    """PD-14."""
    ran = command_line.run("run", "--exec", "true", "--allow-host", "https://a.org/")
    assert ran.exit_code == 2
    assert "--allow-host: 'https://a.org/'" in ran.err
    ran = command_line.run(
        "run", "x", "--mode", "in-process", "--allow-host", "a.org", "--model", "scripted:x"
    )
    assert ran.exit_code == 2
    bare = CommandLine(command_line.home, {**command_line.environment, "PORTSIDE_EGRESS_SQUID": "/nowhere"})
    ran = bare.run("run", "--exec", "true", "--allow-host", "a.org")
    assert ran.exit_code == 1
    assert "allowed hosts are reached through squid, which is not there" in ran.err
    assert "install" in ran.err
    assert json.loads(bare.run("jobs", "list", "--json").out) == []
