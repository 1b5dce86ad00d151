"""Cases for the loader of WASM tools, each made of a seed and a number alone."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, cast

from tests.fuzz.wasm_seeds import TEXT_AT, Seeds, good_words, with_strings

_SCHEMAS = (
    '{"type":"object","properties":{"text":{"type":"string","pattern":"^(a|b)+$"}},"required":["text"]}',
    '{"type":"object","properties":{"n":{"$ref":"#/$defs/n"}},"$defs":{"n":{"anyOf":[{"$ref":"#/$defs/n"}]}}}',
    '{"type":"object","additionalProperties":{"type":"number","multipleOf":1e-300,"maximum":1e400}}',
    '{"$ref":"https://a.invalid/x","properties":{"\\ud800":{"const":[null,{}]}}}',
    '{"type":["object","null"],"patternProperties":{"(x+x+)+y":{"minLength":9007199254740993}}}',
    "[" * 900 + "]" * 900,
    '{"not":' * 200 + "{}" + "}" * 200,
)
_SIDECAR: dict[str, Any] = {
    "version": 1,
    "description": "words",
    "schema": {"type": "object", "properties": {"text": {"type": "string"}}},
    "limits": {"timeout_s": 1, "memory_bytes": 1 << 20, "log_lines": 2, "http_bytes": 9},
    "approval": "never",
    "coerce": "safe",
    "read_only": True,
    "http": {
        "allow": [{"host": "api.example.test", "path_prefix": "/a", "methods": ["GET"], "port": 8443}],
        "credentials": {"c": {"secret": "s", "in": "header", "name": "X-Key", "hosts": ["api.example.test"]}},
        "rate_limit": {"calls": 1, "per_s": 2.5},
    },
    "secrets": {"exists": ["a"]},
    "workspace": {"read": ["docs", "."]},
    "tools": {"other": "calc"},
}
_ODD: tuple[Any, ...] = (
    *(None, True, -1, 0, 2**31, 2**64, 1e308, "", "*", "..", "/", "\ud800", "x" * 5_000, [], {}, [[]]),
    *("[::1]", "A.B.", "*.*", "CONNECT", {"version": 1}, "\r\nX: y", [None], -0.0, "\0"),
)
_WORDS = (0, 1, 7, TEXT_AT, TEXT_AT + 1, 0xFFFF, 0x10000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFFFFFFF8)


@dataclass(frozen=True)
class Case:
    """What the loader is given, and the arguments of the calls afterwards."""

    kind: str
    wasm: bytes
    sidecar: bytes | None
    params: dict[str, Any]

    def as_line(self) -> str:
        """For the way to the child."""
        sidecar = None if self.sidecar is None else base64.b64encode(self.sidecar).decode()
        wasm = base64.b64encode(self.wasm).decode()
        return json.dumps({"wasm": wasm, "sidecar": sidecar, "params": self.params})


def make_case(seeds: Seeds, seed: int, number: int) -> Case:
    """The same for the same seed and number, in any run."""
    dice = random.Random(f"{seed}/{number}")
    makers: tuple[Callable[[random.Random, Seeds], Case], ...] = (_component, _sidecar, _answers, _typed)
    return dice.choices(makers, weights=(4, 3, 4, 2))[0](dice, seeds)


def _component(dice: random.Random, seeds: Seeds) -> Case:
    return Case("component", mutated(dice, dice.choice((*seeds.ours, seeds.typed))), None, {"text": "x"})


def _sidecar(dice: random.Random, seeds: Seeds) -> Case:
    value = json.loads(json.dumps(_SIDECAR))
    for _ in range(dice.randrange(4)):
        _spoil(dice, value)
    data = json.dumps(value).encode()
    if dice.random() < 0.4:
        data = mutated(dice, data)
    return Case("sidecar", dice.choice(seeds.ours), data, {"text": "x"})


def _answers(dice: random.Random, seeds: Seeds) -> Case:
    """What the guest says and asks of its host, pointers included."""
    schema = _SCHEMAS[0] if dice.random() < 0.5 else dice.choice(_SCHEMAS)
    schema, output = schema.encode(), b'{"text": "an answer"}'
    if dice.random() < 0.3:
        schema = mutated(dice, schema)[:1_900]
    if dice.random() < 0.4:
        output = mutated(dice, output)[:100]
    words = good_words(len(schema), len(output))
    for host_function in range(3, 8):
        words[host_function] = dice.random() < 0.3
    for _ in range(dice.choice((0, 0, 1, 2, 9))):
        words[dice.randrange(44)] = dice.choice((*_WORDS, dice.getrandbits(32)))
    return Case("answers", with_strings(seeds.puppet, words, schema + output), None, _params(dice))


def _typed(dice: random.Random, seeds: Seeds) -> Case:
    """Arguments for the functions of another world, most of them of another shape."""
    good: dict[str, Any] = {
        "name": "x",
        "n": 4,
        "s": {"circle": 1},
        "u": "mm",
        "o": ["fast"],
        "points": [{"x": 1, "label": None}],
        "data": "AAE=",
        "c": "x",
    }
    for _ in range(dice.randrange(5)):
        _spoil(dice, good)
    return Case("typed", seeds.typed, None, good)


def mutated(dice: random.Random, data: bytes) -> bytes:
    """A few bytes flipped, set, moved, doubled, cut out or cut off."""
    out = bytearray(data)
    for _ in range(dice.choice((1, 1, 2, 4, 16))):
        at, to = sorted((dice.randrange(len(out) + 1), dice.randrange(len(out) + 1)))
        to = min(to, at + dice.choice((1, 4, 64, 4_096)))
        match dice.randrange(7):
            case 0 if at < len(out):
                out[at] ^= 1 << dice.randrange(8)
            case 1 if at < len(out):
                out[at] = dice.choice((0, 1, 0x7F, 0x80, 0xFF, dice.randrange(256)))
            case 2:
                out[at:to] = b""
            case 3:
                out[at:at] = out[at:to]
            case 4:
                out[at:at] = dice.randbytes(dice.choice((1, 5, 40)))
            case 5:
                out[at:to] = bytes(reversed(out[at:to]))
            case _:
                del out[len(out) - dice.randrange(len(out) // 8 + 1) :]
    return bytes(out)


def _spoil(dice: random.Random, value: dict[str, Any]) -> None:
    """Put something odd somewhere into a JSON object."""
    inside: Any = value
    while True:
        keys: Any = inside.keys() if isinstance(inside, dict) else range(len(inside))  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        key: Any = dice.choice(list(keys))
        if not isinstance(inside[key], dict | list) or not inside[key] or dice.random() < 0.3:
            break
        inside = cast("Any", inside[key])
    if isinstance(inside, dict) and dice.random() < 0.2:
        key = dice.choice(("", "x", "version", "schema", "\ud800"))
    inside[key] = deepcopy(dice.choice(_ODD))  # it may be spoiled too


def _params(dice: random.Random) -> dict[str, Any]:
    params: dict[str, Any] = {"text": "ab", "n": [{"n": {}}]}
    for _ in range(dice.randrange(3)):
        _spoil(dice, params)
    return params
