"""json_query: look into a JSON document, as a component of the world portside:tool/sandboxed-tool."""

import json
import re

from wit_world import exports
from wit_world.exports import tool

SCHEMA = {
    "type": "object",
    "properties": {
        "document": {"type": "string", "description": "The JSON text to look into"},
        "query": {
            "type": "string",
            "maxLength": 2000,
            "description": (
                "A JSON pointer (\"\" is the whole, /items/0/name) for one value, or a path for all that match: "
                "$.items[*].name, $['odd name'], $..price, $.items[-1]"
            ),
        },
        "limit": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 100, "description": "Matches at most"},
    },
    "required": ["document", "query"],
    "additionalProperties": False,
}
DESCRIPTION = (
    "Reads values out of a JSON document by JSON pointer or by path. A pointer answers the value itself, a path "
    "a list of {pointer, value} in document order."
)

STEP = re.compile(
    r"""(?P<deep>\.\.)?(?:
        \.?(?P<name>[A-Za-z_][\w-]*) | \.?(?P<star>\*)
        | \[(?:(?P<index>-?\d+) | (?P<any>\*) | '(?P<single>(?:[^'\\]|\\.)*)' | "(?P<double>(?:[^"\\]|\\.)*)")\]
    )""",
    re.VERBOSE,
)


class BadQuery(Exception):
    """The query can't be answered; the message says why."""


class Tool(exports.Tool):
    """The exported interface."""

    def execute(self, req: tool.Request) -> tool.Response:
        """Answer one query; a mistake of the caller's is an error in words, never a trap."""
        try:
            return tool.Response(output=answer(json.loads(req.params)), error=None)
        except BadQuery as problem:
            return tool.Response(output=None, error=str(problem))

    def schema(self) -> str:
        """The parameters."""
        return json.dumps(SCHEMA)

    def description(self) -> str:
        """For the model."""
        return DESCRIPTION


def answer(params):
    """The output's JSON text."""
    try:
        document = json.loads(params["document"])
    except (ValueError, RecursionError) as problem:
        raise BadQuery(f"the document is not JSON: {problem}") from problem
    query = params["query"]
    if query.startswith("$"):
        found = by_path(document, query)[: params.get("limit", 100)]
        result = [{"pointer": pointer, "value": value} for pointer, value in found]
    else:
        result = by_pointer(document, query)
    return json.dumps(result, ensure_ascii=False)


def by_pointer(document, pointer):
    """The value a JSON pointer (RFC 6901) names."""
    if pointer and not pointer.startswith("/"):
        raise BadQuery("a query starts with '/' (pointer) or '$' (path), or is empty for the whole document")
    value, done = document, ""
    for token in pointer.split("/")[1:]:
        key = token.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and key in value:
            value = value[key]
        elif isinstance(value, list) and re.fullmatch(r"0|[1-9]\d*", key) and int(key) < len(value):
            value = value[int(key)]
        else:
            raise BadQuery(f"nothing at {done}/{token}; {describe(value, done)}")
        done += f"/{token}"
    return value


def describe(value, pointer):
    """What is there instead, so that the next query can be right."""
    where = pointer or "the root"
    if isinstance(value, dict):
        return f"{where} is an object with the keys {', '.join(list(value)[:20]) or 'none'}"
    if isinstance(value, list):
        return f"{where} is an array of {len(value)}"
    return f"{where} is a {type(value).__name__}, which holds nothing"


def by_path(document, path):
    """All matches of a path, as (pointer, value) in document order."""
    found, at = [("", document)], 1
    while at < len(path):
        step = STEP.match(path, at)
        if step is None or step.end() == at:
            raise BadQuery(f"can't read the path at column {at + 1}: {path[at:at + 20]!r}")
        if step["deep"]:
            found = [below for match in found for below in descend(*match)]
        found = [child for match in found for child in children(*match, step)]
        at = step.end()
    return found


def children(pointer, value, step):
    """What one step reaches from one value."""
    if step["star"] or step["any"]:
        return members(pointer, value)
    if step["index"] is not None:
        index = int(step["index"])
        if not isinstance(value, list) or not -len(value) <= index < len(value):
            return []
        return [(f"{pointer}/{index % len(value)}", value[index])]
    quoted = step["single"] if step["single"] is not None else step["double"]
    name = step["name"] if quoted is None else re.sub(r"\\(.)", r"\1", quoted)
    return [(f"{pointer}/{escape(name)}", value[name])] if isinstance(value, dict) and name in value else []


def members(pointer, value):
    """The direct members of an object or array."""
    if isinstance(value, dict):
        return [(f"{pointer}/{escape(key)}", member) for key, member in value.items()]
    return [(f"{pointer}/{i}", member) for i, member in enumerate(value)] if isinstance(value, list) else []


def descend(pointer, value):
    """A value and everything below it."""
    found, left = [], [(pointer, value)]
    while left:
        match = left.pop()
        found.append(match)
        left.extend(reversed(members(*match)))
    return found


def escape(key):
    """A key as a pointer's token."""
    return key.replace("~", "~0").replace("/", "~1")
