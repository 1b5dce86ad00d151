"""The registry: which tools there are, under which names, from whom."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tool_registry.acceptance import accepted_schema, check_name, name_request
from tool_registry.definition import ToolDefinition
from tool_registry.errors import DuplicateTool, RegistrationError
from tool_registry.names import NameRequest, assign_names
from tool_registry.schema import CompiledSchema
from tool_registry.tool import Tool, ToolTraits
from tool_registry.visibility import ToolState

_MAX_INSTRUCTIONS_CHARS = 8_192


@dataclass(frozen=True, slots=True)
class Offer:
    """A tool as its owner offers it.

    Attributes:
        state: anything but `ACTIVE` keeps it out of every catalogue.
        reason: why it is not active; shown to operators.
        also: what comes and goes with it, where one file holds several tools.
    """

    tool: Tool
    state: ToolState = ToolState.ACTIVE
    reason: str = ""
    also: tuple[Offer, ...] = ()


@dataclass(frozen=True, slots=True)
class Entry:
    """A registered tool.

    Attributes:
        definition: what models see: the owner's, under the registered name.
        schema: what calls are held to; None only where `state` is not `ACTIVE`.
        renamed: the registered name is not the one that was proposed.
        name: the registered name.
        traits: what the tool declared about itself when it was registered.
    """

    definition: ToolDefinition
    tool: Tool
    state: ToolState
    reason: str
    schema: CompiledSchema | None
    renamed: bool = False
    name: str = field(init=False)
    traits: ToolTraits = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", self.definition.name)
        object.__setattr__(self, "traits", self.tool.traits)

    @property
    def identity(self) -> tuple[str, str]:
        """The owner, and the tool's name there: what stays when the registered name changes."""
        return _identity(name_request(self.tool))


@dataclass(frozen=True, slots=True)
class Refused:
    """An offer that was not taken, and why."""

    proposed: str
    error: RegistrationError


@dataclass(frozen=True, slots=True)
class Replaced:
    """What a replacement did."""

    registered: tuple[str, ...]
    refused: tuple[Refused, ...]
    removed: tuple[str, ...]


@dataclass(slots=True)
class _Owner:
    offers: dict[NameRequest, tuple[Offer, CompiledSchema | None]] = field(
        default_factory=dict[NameRequest, tuple[Offer, CompiledSchema | None]]
    )
    instructions: str = ""


class ToolRegistry:
    """The canonical set of tools. Every change is whole, raises `revision` and tells the subscribers.

    It lives in one event loop; none of its methods waits.

    Args:
        disabled: tools that were disabled before, by owner and original name, whether or not they come.
    """

    def __init__(self, disabled: Iterable[tuple[str, str]] = ()) -> None:
        self._owners: dict[str, _Owner] = {}
        self._entries: dict[str, Entry] = {}
        self._disabled = set(disabled)  # owner, original name: a rename loses nothing
        self._subscribers: list[Callable[[], None]] = []
        self._revision = 0

    @property
    def revision(self) -> int:
        """Grows with every change."""
        return self._revision

    def get(self, name: str) -> Entry | None:
        """The tool registered under this name."""
        return self._entries.get(name)

    def entries(self) -> tuple[Entry, ...]:
        """All tools, sorted by name."""
        return tuple(self._entries[name] for name in sorted(self._entries))

    def instructions(self) -> Mapping[str, str]:
        """Each owner's toolset instructions, where it has any, sorted by owner."""
        return {
            name: self._owners[name].instructions
            for name in sorted(self._owners)
            if self._owners[name].instructions
        }

    def subscribe(self, on_change: Callable[[], None]) -> Callable[[], None]:
        """Call `on_change` after every change.

        Returns:
            A function that ends the subscription.
        """
        self._subscribers.append(on_change)

        def end() -> None:
            if on_change in self._subscribers:
                self._subscribers.remove(on_change)

        return end

    def register(self, tool: Tool, *, state: ToolState = ToolState.ACTIVE, reason: str = "") -> Entry:
        """Add one tool beside what its owner has.

        Raises:
            RegistrationError: it can't be taken; nothing changed.
        """
        offer = Offer(tool, state, reason)
        request = name_request(tool)
        owner = self._owners.get(tool.traits.owner, _Owner())
        if _identity(request) in map(_identity, owner.offers):
            raise DuplicateTool(f"{tool.traits.owner} offers {request.original!r} twice; remove one of them")
        check_name(request, tool.traits, self._fixed_names())
        schema = accepted_schema(tool, state, request, {})
        candidate = _Owner({**owner.offers, request: (offer, schema)}, owner.instructions)
        owners = {**self._owners, tool.traits.owner: candidate}
        names = self._names(owners)
        self._commit(owners, names)
        return self._entries[names[request]]

    def replace(self, owner: str, offers: Sequence[Offer], *, instructions: str = "") -> Replaced:
        """Swap an owner's whole set. A tool that can't be taken is left out; its neighbours stay.

        Args:
            owner: every offered tool's `traits.owner`.
            offers: the new set; empty removes the owner.
            instructions: text about the set as a whole, for the model; bounded.

        Raises:
            ValueError: a tool is another owner's.
        """
        offers = [one for offer in offers for one in (offer, *offer.also)]
        if any(offer.tool.traits.owner != owner for offer in offers):
            raise ValueError(f"an offer among those of {owner} names another owner")
        known = self._compiled(owner)
        before = {entry.name for entry in self._entries.values() if entry.traits.owner == owner}
        accepted: dict[NameRequest, tuple[Offer, CompiledSchema | None]] = {}
        refused: list[Refused] = []
        seen: set[tuple[str, str]] = set()
        for offer in offers:
            request = name_request(offer.tool)
            try:
                if _identity(request) in seen:
                    raise DuplicateTool(f"{owner} offers {request.original!r} twice; the first one is kept")
                seen.add(_identity(request))
                schema = accepted_schema(offer.tool, offer.state, request, known)
                accepted[request] = (offer, schema)
            except RegistrationError as error:
                refused.append(Refused(request.proposed, error))
        refused.extend(self._refuse_names(owner, accepted))
        owners = {name: kept for name, kept in self._owners.items() if name != owner}
        if accepted or instructions:
            shown = instructions[:_MAX_INSTRUCTIONS_CHARS].encode("utf-8", "replace").decode()
            owners[owner] = _Owner(accepted, shown)
        names = self._names(owners)
        self._commit(owners, names)
        now = tuple(sorted(names[request] for request in accepted))
        return Replaced(now, tuple(refused), tuple(sorted(before - set(now))))

    def remove_owner(self, owner: str) -> tuple[str, ...]:
        """Remove everything an owner offers; answers the names that are gone."""
        return self.replace(owner, ()).removed

    def set_enabled(self, name: str, *, enabled: bool) -> bool:
        """Disable a tool, or enable it again; remembered while its owner comes and goes.

        Returns:
            False when there is no such tool.
        """
        entry = self._entries.get(name)
        if entry is None:
            return False
        (self._disabled.discard if enabled else self._disabled.add)(entry.identity)
        self._commit(self._owners, self._names(self._owners))
        return True

    def _refuse_names(
        self, owner: str, accepted: dict[NameRequest, tuple[Offer, CompiledSchema | None]]
    ) -> list[Refused]:
        """Take out of `accepted` what would hold a name it must not."""
        taken = self._fixed_names(but=owner)
        refused: list[Refused] = []
        for request in list(accepted):
            try:
                check_name(request, accepted[request][0].tool.traits, taken)
            except RegistrationError as error:
                del accepted[request]
                refused.append(Refused(request.proposed, error))
            else:
                if request.fixed:
                    taken[request.proposed] = owner
        return refused

    def _compiled(self, owner: str) -> Mapping[str, CompiledSchema]:
        """What an owner's present schemas were compiled to, by their texts: a reload changes few of them."""
        offers = self._owners[owner].offers.values() if owner in self._owners else ()
        return {schema.text: schema for _, schema in offers if schema is not None}

    def _fixed_names(self, *, but: str | None = None) -> dict[str, str]:
        """Who holds each name that can't move."""
        return {
            request.proposed: name
            for name, owner in self._owners.items()
            if name != but
            for request in owner.offers
            if request.fixed
        }

    def _names(self, owners: Mapping[str, _Owner]) -> Mapping[NameRequest, str]:
        return assign_names(request for owner in owners.values() for request in owner.offers)

    def _commit(self, owners: Mapping[str, _Owner], names: Mapping[NameRequest, str]) -> None:
        entries: dict[str, Entry] = {}
        for owner in owners.values():
            for request, (offer, schema) in owner.offers.items():
                name = names[request]
                entries[name] = self._entry(request, name, offer, schema)
        self._owners = dict(owners)
        self._entries = entries
        self._revision += 1
        for notify in tuple(self._subscribers):
            notify()

    def _entry(self, request: NameRequest, name: str, offer: Offer, schema: CompiledSchema | None) -> Entry:
        state, reason = offer.state, offer.reason
        if state is ToolState.ACTIVE and schema is None:
            state, reason = (
                ToolState.NEEDS_SCHEMA,
                "its owner gave no schema; give it one by an override file",
            )
        elif state is ToolState.ACTIVE and _identity(request) in self._disabled:
            state, reason = ToolState.DISABLED, "an operator disabled it"
        definition = offer.tool.definition.renamed(name)
        return Entry(definition, offer.tool, state, reason, schema, renamed=name != request.proposed)


def _identity(request: NameRequest) -> tuple[str, str]:
    return request.owner, request.original
