"""@NAME@: how many days lie between two dates, as a component of the world portside:tool/sandboxed-tool."""

import datetime
import json

from wit_world import exports
from wit_world.exports import tool
from wit_world.imports import host

DATE = {"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"}
SCHEMA = {
    "type": "object",
    "properties": {
        "start": {**DATE, "description": "The first date, as YYYY-MM-DD"},
        "end": {**DATE, "description": "The second date, as YYYY-MM-DD; today (UTC) when it is left out"},
        "unit": {
            "type": "string",
            "enum": ["days", "weekdays"],
            "default": "days",
            "description": "weekdays leaves Saturdays and Sundays out",
        },
    },
    "required": ["start"],
    "additionalProperties": False,
}
DESCRIPTION = (
    "Counts the days from one date to another, and says on which weekday each falls. "
    "The count is negative when the second date is the earlier one."
)
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MS_PER_DAY = 86_400_000


class NoSuchDay(Exception):
    """The message is for the model."""


class Tool(exports.Tool):
    """What the host calls."""

    def execute(self, req: tool.Request) -> tool.Response:
        """Answer one call: an output, or an error in words that the model can act on."""
        try:
            return tool.Response(output=json.dumps(answer(json.loads(req.params))), error=None)
        except NoSuchDay as problem:
            return tool.Response(output=None, error=str(problem))

    def schema(self) -> str:
        """The parameters."""
        return json.dumps(SCHEMA)

    def description(self) -> str:
        """For the model."""
        return DESCRIPTION


def answer(params):
    """The count, and both weekdays."""
    start = day(params["start"])
    end = day(params["end"]) if "end" in params else today()
    count = weekdays(start, end) if params.get("unit") == "weekdays" else (end - start).days
    return {"count": count, "start": WEEKDAYS[start.weekday()], "end": WEEKDAYS[end.weekday()]}


def day(text):
    """The date that a text names."""
    try:
        return datetime.date.fromisoformat(text)
    except ValueError:
        raise NoSuchDay(f"there is no day {text}; write dates as YYYY-MM-DD") from None


def today():
    """The date, by the host's clock."""
    return datetime.date(1970, 1, 1) + datetime.timedelta(days=host.now_millis() // MS_PER_DAY)


def weekdays(start, end):
    """How many days from Monday to Friday there are from `start` up to `end`, which does not count."""
    if end < start:
        return -weekdays(end, start)
    weeks, rest = divmod((end - start).days, 7)
    return weeks * 5 + sum((start.weekday() + i) % 7 < 5 for i in range(rest))
