"""The root of a tool's schema: providers want one plain object there."""

from __future__ import annotations

from typing import Any, cast

from orchestrator.domain.shaping.subschemas import Schema

_COMBINATORS = ("allOf", "anyOf", "oneOf")
_DROPPED = ("not", "enum", "const")


class NotAnObject(Exception):
    """The root describes something else than an object."""


class TooManyBranches(Exception):
    """The root's alternatives multiply beyond reason."""


def plain_root(schema: Schema, changes: list[str]) -> Schema:
    """Give the root `type: object` and `properties`, and fold its combinators into them.

    `allOf` is merged. Of `anyOf` and `oneOf` all properties are offered and only what every branch requires
    stays required; which sets belong together is told in the description, and the original schema
    checks each call.

    Raises:
        NotAnObject: the root allows no object.
        TooManyBranches: it has more than 200 branches, references followed.
    """
    root = _object_type(schema, changes)
    folder = _Folder(schema)
    if "$ref" in root and root["$ref"] != "#":
        beside = {key: value for key, value in root.items() if key != "$ref"}
        root = folder.folded({**beside, "allOf": [{"$ref": root["$ref"]}, *beside.get("allOf", ())]}, "allOf")
        changes.append("$ref at the root was replaced by what it leads to")
    for word in _COMBINATORS:
        if word in root:
            root = folder.folded(root, word)
            changes.append(f"{word} at the root was folded into one object")
    for word in _DROPPED:
        if word in root:
            root = {key: value for key, value in root.items() if key != word}
            changes.append(f"{word} at the root was left out")
    if isinstance(root.get("properties"), dict):
        return root
    changes.append("properties was added at the root")
    return {**root, "properties": {}}


def _object_type(schema: Schema, changes: list[str]) -> Schema:
    kind: Any = schema.get("type")
    if kind == "object":
        return schema
    if kind is not None and not (isinstance(kind, list) and "object" in kind):
        raise NotAnObject
    changes.append("type object was set at the root")
    rest = {key: value for key, value in schema.items() if key != "type"}
    return {"type": "object", **rest}


class _Folder:
    """Folds the combinators of one schema; `_left` bounds what a hostile schema can make of it."""

    def __init__(self, whole: Schema) -> None:
        self._definitions: Schema = {**whole.get("definitions", {}), **whole.get("$defs", {})}
        self._left = 200

    def folded(self, root: Schema, word: str, path: frozenset[str] = frozenset()) -> Schema:
        """The schema with one combinator's branches folded into its properties."""
        branches = [self._opened(branch, path) for branch in _objects(root[word])]
        merged = {key: value for key, value in root.items() if key not in {word, "required"}}
        merged["properties"] = _merged_properties([root, *branches], word)
        if required := _required(root, branches, word):
            merged["required"] = required
        if word != "allOf" and (hint := _hint(branches)):
            said = merged.get("description")
            merged["description"] = f"{said} {hint}" if said else hint
        return merged

    def _opened(self, branch: Schema, path: frozenset[str]) -> Schema:
        """A branch as a plain object: its reference is followed, its own combinators are folded."""
        self._left -= 1
        if self._left < 0:
            raise TooManyBranches("the alternatives at the root are more than 200")
        name = str(branch.get("$ref", "")).rpartition("/")[2].replace("~1", "/").replace("~0", "~")
        if name in path:
            return {}
        if isinstance(self._definitions.get(name), dict):
            own = {key: value for key, value in branch.items() if key != "$ref"}
            return self._opened({**self._definitions[name], **own}, path | {name})
        for word in _COMBINATORS:
            if word in branch:
                branch = self.folded(branch, word, path)
        return branch


def _objects(value: Any) -> list[Schema]:
    items = cast("list[Any]", value) if isinstance(value, list) else []
    return [cast("Schema", item) for item in items if isinstance(item, dict)]


def _merged_properties(parts: list[Schema], word: str) -> Schema:
    """All properties; one that has several schemas must fit all of them, or any."""
    found: dict[str, list[Any]] = {}
    for part in parts:
        for name, child in cast("Schema", part.get("properties") or {}).items():
            known = found.setdefault(name, [])
            if child not in known:
                known.append(child)
    join = "allOf" if word == "allOf" else "anyOf"
    return {name: some[0] if len(some) == 1 else {join: some} for name, some in found.items()}


def _required(root: Schema, branches: list[Schema], word: str) -> list[str]:
    own = cast("list[str]", root.get("required") or [])
    lists = [cast("list[str]", branch.get("required") or []) for branch in branches]
    if word == "allOf":
        added = [name for names in lists for name in names]
    else:
        added = [name for name in (lists[0] if lists else []) if all(name in names for names in lists)]
    return list(dict.fromkeys([*own, *added]))


def _hint(branches: list[Schema]) -> str:
    sets = [", ".join(cast("list[str]", branch.get("required") or [])) for branch in branches]
    told = list(dict.fromkeys(names for names in sets if names))
    return f"Needs one of: {' | '.join(told)}." if len(told) > 1 else ""
