"""MCP servers written by hand, message by message, so that they can misbehave.

As a program (`python mcp_servers.py CLASS [OPTION...]`) one of them speaks over stdin and stdout;
`mcp_over_http` and `sse_server` serve one inside the test's loop. Standard library only: it starts fast.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

PROGRAM = str(Path(__file__).resolve())
OPEN_OBJECT = {"type": "object"}
Message = dict[str, Any]


def tool(name: str, **more: Any) -> Message:
    return {"name": name, "description": f"the tool {name}", "inputSchema": OPEN_OBJECT, **more}


def result(message: Message, value: Message) -> Message:
    return {"jsonrpc": "2.0", "id": message["id"], "result": value}


def error(message: Message, code: int, text: str | None = None) -> Message:
    body: Message = {"code": code} if text is None else {"code": code, "message": text}
    return {"jsonrpc": "2.0", "id": message["id"], "error": body}


def notice(method: str, params: Message | None = None) -> Message:
    return {"jsonrpc": "2.0", "method": method, "params": params or {}}


def text(value: str) -> Message:
    return {"content": [{"type": "text", "text": value}]}


class Server:
    """A well-behaved server with the tool `echo`; the others change one thing."""

    tools: tuple[Message, ...] = (tool("echo"),)
    instructions = ""

    def __init__(self, *options: str) -> None:
        self.options = options

    def start(self) -> Iterator[bytes]:
        """Raw bytes written before anything is read."""
        yield from ()

    def answer(self, message: Message) -> Iterator[Message | bytes]:
        """What goes out for one message that came in."""
        method = message.get("method")
        if method == "initialize":
            yield result(message, self.introduction(message["params"]["protocolVersion"]))
        elif method == "tools/list":
            yield result(message, self.page(message.get("params", {}).get("cursor")))
        elif method == "tools/call":
            params = message["params"]
            yield from self.call(message, params["name"], params.get("arguments", {}))
        elif method is not None and "id" in message:
            yield error(message, -32601, "Method not found")
        else:
            yield from self.noted(message)

    def introduction(self, version: str) -> Message:
        return {
            "protocolVersion": version,
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "fake", "version": "1"},
            "instructions": self.instructions,
        }

    def page(self, cursor: str | None) -> Message:
        return {"tools": list(self.tools)}

    def call(self, message: Message, name: str, arguments: Message) -> Iterator[Message | bytes]:
        if name == "echo":
            yield result(message, text(str(arguments.get("text", ""))))
        else:
            yield error(message, -32602, f"Unknown tool: {name}")

    def noted(self, message: Message) -> Iterator[Message | bytes]:
        """A notification, or the answer to a request of ours."""
        yield from ()


class Dying(Server):
    """`die` exits in the middle of the call; `child` starts a process that outlives it."""

    tools = (tool("echo"), tool("die"), tool("hang"), tool("child"))

    def call(self, message: Message, name: str, arguments: Message) -> Iterator[Message | bytes]:
        if name == "die":
            sys.stderr.write(f"about to die with {os.environ.get('SVC_KEY')}\n")
            sys.stderr.flush()
            os._exit(3)
        elif name == "hang":
            Path(self.options[0]).write_text(str(os.getpid()))
        elif name == "child":
            child = subprocess.Popen(
                [sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True
            )
            yield result(message, text(str(child.pid)))
        else:
            yield from super().call(message, name, arguments)


class Silent(Server):
    """Reads everything and never answers; its pid goes into a file."""

    def start(self) -> Iterator[bytes]:
        with Path(self.options[0]).open("a") as pids:
            pids.write(f"{os.getpid()}\n")
        yield from ()

    def answer(self, message: Message) -> Iterator[Message | bytes]:
        with Path(self.options[0] + ".seen").open("a") as seen:
            seen.write(json.dumps(message) + "\n")
        yield from ()


class Gated(Server):
    """Does not read its input before a fifo is opened for writing."""

    def start(self) -> Iterator[bytes]:
        with Path(self.options[0]).open() as gate:
            gate.read()
        yield from ()


class Paged(Server):
    """150 tools on three pages; the last one ends in the way the option says."""

    def page(self, cursor: str | None) -> Message:
        number = {None: 0, "c1": 1, "c2": 2}[cursor]
        page: Message = {"tools": [tool(f"t{number}_{index}") for index in range(50)]}
        if number < 2:
            page["nextCursor"] = f"c{number + 1}"
        elif self.options[0] != "absent":
            page["nextCursor"] = json.loads(self.options[0])
        return page

    def call(self, message: Message, name: str, arguments: Message) -> Iterator[Message | bytes]:
        yield result(message, text(name))


class Circling(Server):
    """The same eight tools on every page, and the same cursor."""

    def page(self, cursor: str | None) -> Message:
        return {"tools": [tool(f"t{index}") for index in range(8)], "nextCursor": "x"}


class Crowded(Server):
    """2,000 tools on one page."""

    def page(self, cursor: str | None) -> Message:
        return {"tools": [tool(f"t{index}") for index in range(2_000)]}


class Instructing(Server):
    """Has something to say about its tools."""

    instructions = "ask me first"


class Mixed(Server):
    """Usable entries between ones that are not."""

    tools = (
        tool("send", description="the first"),
        tool("send", description="the second", inputSchema={"type": "object", "required": ["x"]}),
        {"name": "bare"},
        tool(""),
        tool("good", icons="not a list", annotations=7, outputSchema="text"),
    )


class Odd(Server):
    """One plain tool, one that providers want otherwise, and one that refers to somewhere else."""

    tools = (
        tool("plain", inputSchema={"type": "object", "properties": {"q": {"type": "string"}}}),
        tool("dotted", inputSchema={"type": "object", "properties": {"filter[name]": {"type": "string"}}}),
        tool("remote", inputSchema={"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1:9/x"}}}),
    )


def nested(levels: int) -> Message:
    """An object in an object in an object ..."""
    schema: Message = {"type": "object"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


def doubling(levels: int) -> Message:
    """Each definition refers twice to the next: small as text, vast where somebody expands it."""
    definitions: Message = {f"d{levels}": {"type": "string"}}
    for level in range(levels):
        following = {"$ref": f"#/$defs/d{level + 1}"}
        definitions[f"d{level}"] = {"type": "object", "properties": {"a": following, "b": following}}
    return {"type": "object", "properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": definitions}


class Bombs(Server):
    """Schemas made to hurt whoever reads them, with a plain tool before and after."""

    tools = (
        tool("first"),
        tool("deep", inputSchema=nested(400)),
        tool("wide", inputSchema={"type": "object", "properties": {f"p{n}": {} for n in range(20_000)}}),
        tool("long", inputSchema={"type": "object", "description": "x" * 5_000_000}),
        tool("doubling", inputSchema=doubling(30)),
        tool("itself", inputSchema={"type": "object", "allOf": [{"$ref": "#"}]}),
        tool("pattern", inputSchema={"type": "object", "properties": {"a": {"pattern": "^(a+)+$"}}}),
        tool("unclosed", inputSchema={"type": "object", "properties": {"a": {"pattern": "(("}}}),
        tool("file", inputSchema={"type": "object", "properties": {"a": {"$ref": "file:///etc/hostname"}}}),
        tool("no_schema", inputSchema={"type": "nonsense"}),
        tool("promise", outputSchema=nested(400)),
        tool("last"),
    )

    def call(self, message: Message, name: str, arguments: Message) -> Iterator[Message | bytes]:
        yield result(message, text(name))


class Abyss(Server):
    """Its list of tools is deeper than any parser goes."""

    def answer(self, message: Message) -> Iterator[Message | bytes]:
        if message.get("method") == "tools/list":
            depth = 100_000
            head = f'{{"jsonrpc":"2.0","id":{message["id"]},"result":{{"tools":'
            yield head.encode() + b"[" * depth + b"]" * depth + b"}}\n"
        else:
            yield from super().answer(message)


class Endless(Server):
    """A new cursor and new tools for ever."""

    def page(self, cursor: str | None) -> Message:
        number = int(cursor or "0")
        return {"tools": [tool(f"t{number}")], "nextCursor": str(number + 1)}


class Changing(Server):
    """After `login` it offers `search` alone and says so five times in 50 ms; it counts its lists."""

    tools = (tool("login"),)
    lists = 0
    notices = 1

    def page(self, cursor: str | None) -> Message:
        self.lists += 1
        return super().page(cursor)

    def call(self, message: Message, name: str, arguments: Message) -> Iterator[Message | bytes]:
        if name == "login":
            self.tools = (tool("search"),)
            yield notice("notifications/tools/list_changed")
            threading.Thread(target=self.repeat).start()
            yield result(message, text("welcome"))
        else:
            yield result(message, text(json.dumps([self.lists, self.notices])))

    def repeat(self) -> None:
        while self.notices < 5:
            threading.Event().wait(0.01)
            os.write(1, json.dumps(notice("notifications/tools/list_changed")).encode() + b"\n")
            self.notices += 1


class Holding(Server):
    """`hold` is answered once a fifo was opened for writing and closed; each call has the next option's."""

    tools = (tool("hold"),)
    calls = 0

    def call(self, message: Message, name: str, arguments: Message) -> Iterator[Message | bytes]:
        self.calls += 1
        with Path(self.options[self.calls - 1]).open() as gate:
            gate.read()
        yield result(message, text("let go"))


class Noisy(Server):
    """Writes what is not JSON-RPC to stdout, first and in between."""

    tools = (tool("echo"), tool("glued"))

    def start(self) -> Iterator[bytes]:
        yield b"Starting v1.2\n"
        yield b"\n"
        yield b"\xff\xfe\n"
        yield b"[INFO] {not json}\n"
        yield b"123\n"
        yield b'{"hello":1}\n'
        yield b"x" * 5_000_000 + b"\n"

    def call(self, message: Message, name: str, arguments: Message) -> Iterator[Message | bytes]:
        if name == "glued":
            yield b"log line without an end "
        yield from super().call(message, "echo", arguments)


class OnlyNoise(Silent):
    """Never says anything but noise."""

    def start(self) -> Iterator[bytes]:
        yield from super().start()
        yield b"Hello, I am a web server\n"
        yield b"Listening on port 80\n"


class Slow(Server):
    """`slow` is answered when it has been cancelled, too late; it remembers the cancellations."""

    tools = (tool("slow"), tool("echo"), tool("cancelled"))

    def __init__(self, *options: str) -> None:
        super().__init__(*options)
        self.running: list[Message] = []
        self.cancelled: list[Any] = []

    def call(self, message: Message, name: str, arguments: Message) -> Iterator[Message | bytes]:
        if name == "slow":
            self.running.append(message)
            token = message["params"]["_meta"]["progressToken"]
            yield notice("notifications/progress", {"progressToken": token, "progress": 1, "total": 30})
        elif name == "cancelled":
            yield result(message, text(json.dumps([self.cancelled, [each["id"] for each in self.running]])))
        else:
            for late in self.running:
                yield result(late, text("too late"))
            yield from super().call(message, name, arguments)

    def noted(self, message: Message) -> Iterator[Message | bytes]:
        if message.get("method") == "notifications/cancelled":
            self.cancelled.append(message["params"]["requestId"])
        yield from ()


class Environment(Server):
    """`env` returns the environment, names and values."""

    tools = (tool("env"),)

    def call(self, message: Message, name: str, arguments: Message) -> Iterator[Message | bytes]:
        yield result(message, text(json.dumps(dict(os.environ))))


class Chatty(Server):
    """During a call it floods the client with notices and asks it four things; the answers are the result."""

    asked = ("ping", "roots/list", "sampling/createMessage", "x/unknown")
    waiting: Message

    def call(self, message: Message, name: str, arguments: Message) -> Iterator[Message | bytes]:
        self.waiting = message
        self.answers: Message = {}
        token = message["params"]["_meta"]["progressToken"]
        for number in range(1_000):
            yield notice("notifications/message", {"level": "info", "data": f"line {number}"})
        for number in range(100):
            progress: Message = {"progressToken": token, "progress": number, "total": 0}
            yield notice(
                "notifications/progress", progress if number else {**progress, "progressToken": "no"}
            )
        yield notice("x/unknown")
        for method in self.asked:
            yield {
                "jsonrpc": "2.0",
                "id": method,
                "method": method,
                "params": {"messages": [], "maxTokens": 1},
            }

    def noted(self, message: Message) -> Iterator[Message | bytes]:
        if "id" in message:
            self.answers[message["id"]] = message.get("result", message.get("error", {}).get("code"))
            if len(self.answers) == len(self.asked):
                yield result(self.waiting, text(json.dumps(self.answers)))


class Large(Server):
    """Answers of 20 MB of text, 50,000 blocks, and a 30 MB image."""

    tools = (tool("dump"), tool("many"), tool("img"))

    def call(self, message: Message, name: str, arguments: Message) -> Iterator[Message | bytes]:
        if name == "dump":
            yield result(message, text("HEAD\n" + "row 1234567890\n" * 1_400_000 + "TAIL"))
        elif name == "many":
            block = {"type": "text", "text": "y" * 100}
            yield result(message, {"content": [block] * 50_000})
        else:
            image = {"type": "image", "mimeType": "image/png", "data": "AAAA" * 7_500_000}
            yield result(message, {"content": [image]})


class Refusing(Server):
    """Fails in the ways a call can fail politely; `NAME` of the tool picks one."""

    answers: ClassVar[dict[str, Callable[[Message], Message]]] = {
        "code": lambda message: error(message, -32602, "unknown argument"),
        "no_message": lambda message: error(message, -32000),
        "no_code": lambda message: {**error(message, 0, "only words"), "error": {"message": "only words"}},
    }
    tools = tuple(tool(name) for name in answers)

    def call(self, message: Message, name: str, arguments: Message) -> Iterator[Message | bytes]:
        yield self.answers[name](message)


class Modern(Server):
    """Speaks 2026-07-28 only: no `initialize`, and every request must carry its envelope."""

    def answer(self, message: Message) -> Iterator[Message | bytes]:
        method = message.get("method")
        version = message.get("params", {}).get("_meta", {}).get("io.modelcontextprotocol/protocolVersion")
        if method == "initialize":
            yield error(message, -32601, "Method not found")
        elif version != "2026-07-28":
            yield error(message, -32602, "no envelope")
        elif method == "server/discover":
            found: Message = {
                "supportedVersions": [version],
                "capabilities": {"tools": {}},
                "resultType": "complete",
            }
            yield result(message, {**found, "ttlMs": 0, "cacheScope": "private"})
        else:
            yield from super().answer(message)


def command(kind: type[Server], *options: str) -> dict[str, Any]:
    """The `command` and `args` of a server entry that starts this fake over stdio."""
    return {"command": sys.executable, "args": ["-I", "-S", PROGRAM, kind.__name__, *options]}


def main(kind: str, *options: str) -> None:
    server: Server = globals()[kind](*options)
    out = sys.stdout.buffer

    def write(parts: Iterator[Message | bytes] | Iterator[bytes]) -> None:
        for part in parts:
            out.write(part if isinstance(part, bytes) else json.dumps(part).encode() + b"\n")
            out.flush()

    write(server.start())
    for line in sys.stdin.buffer:
        write(server.answer(json.loads(line)))


if __name__ == "__main__":
    main(*sys.argv[1:])
