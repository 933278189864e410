"""Reading TOML tables so that every problem is reported with its place, and none stops the reading.

A reader takes members out of a table one by one; `end` reports what nobody took. A value of the wrong type
is a problem and reads as absent: whoever asked sees a default, and the bundle as a whole is refused later.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import date, datetime, time
from typing import Any

from gateway.errors import PolicyError


class Problems:
    """What is wrong, in the order it was met; `raise_any` ends a reading."""

    def __init__(self) -> None:
        self.found: list[str] = []

    def add(self, place: str, text: str) -> None:
        """Note one problem at a place such as `rules/secrets.toml: rule[2].when.kind`."""
        self.found.append(f"{place}: {text}")

    def raise_any(self) -> None:
        """Raise PolicyError (`policy.invalid`) with every problem when there is one."""
        if self.found:
            raise PolicyError("policy.invalid", "\n".join(self.found), problems=self.found)


class Table:
    """One table of a TOML document, and how far it has been read."""

    def __init__(self, data: Mapping[str, Any], place: str, problems: Problems) -> None:
        self._left = dict(data)
        self.place = place
        self.problems = problems

    def __contains__(self, key: str) -> bool:
        return key in self._left

    def at(self, key: str) -> str:
        """The place of a member, for messages."""
        return f"{self.place}.{key}" if not self.place.endswith(": ") else f"{self.place}{key}"

    def wrong(self, key: str, text: str) -> None:
        """Note a problem with a member of this table."""
        self.problems.add(self.at(key), text)

    def end(self) -> None:
        """Every member that was not taken is unknown, and unknown members are errors."""
        for key in self._left:
            self.wrong(key, "unknown key")

    def take(self, key: str) -> Any:
        """A member as it stands, whatever its type; None when absent."""
        return self._left.pop(key, None)

    def text(self, key: str, *, required: bool = False) -> str:
        """A string that is not blank; empty when absent."""
        value = self._left.pop(key, None)
        if value is None:
            if required:
                self.wrong(key, "required")
            return ""
        if not isinstance(value, str) or not value.strip():
            self.wrong(key, "must be a string that is not blank")
            return ""
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """One string or a list of them; empty when absent. An empty list is an error: it could never hold."""
        if key not in self._left:
            return ()
        value = self._left.pop(key)
        items = [value] if isinstance(value, str) else value
        if (
            not isinstance(items, list)
            or not items
            or not all(isinstance(i, str) and i.strip() for i in items)
        ):
            self.wrong(key, "must be a string or a list of strings, none blank")
            return ()
        return tuple(dict.fromkeys(items))

    def choices(self, key: str, allowed: Collection[str]) -> tuple[str, ...]:
        """Like `texts`, each out of a closed set."""
        items = self.texts(key)
        for item in items:
            if item not in allowed:
                self.wrong(key, f"{item!r} is none of {', '.join(allowed)}")
        return tuple(i for i in items if i in allowed)

    def choice(self, key: str, allowed: Collection[str], *, required: bool = False) -> str:
        """One string out of a closed set; empty when absent."""
        item = self.text(key, required=required)
        if item and item not in allowed:
            self.wrong(key, f"{item!r} is none of {', '.join(allowed)}")
            return ""
        return item

    def whole(self, key: str, low: int, high: int) -> int | None:
        """A whole number between bounds; None when absent."""
        if key not in self._left:
            return None
        value = self._left.pop(key)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            self.wrong(key, f"must be a whole number from {low} to {high}")
            return None
        return value

    def flag(self, key: str) -> bool | None:
        """True or false; None when absent."""
        if key not in self._left:
            return None
        value = self._left.pop(key)
        if not isinstance(value, bool):
            self.wrong(key, "must be true or false")
            return None
        return value

    def clock(self, key: str) -> time | None:
        """A TOML local time (`08:30:00`); None when absent."""
        value = self._left.pop(key, None)
        if value is not None and not isinstance(value, time):
            self.wrong(key, "must be a local time such as 08:30:00")
            return None
        return value

    def instant(self, key: str, *, required: bool = False) -> datetime | None:
        """A TOML date-time with an offset; None when absent."""
        value = self._left.pop(key, None)
        if value is None and not required:
            return None
        if not isinstance(value, datetime) or value.tzinfo is None:
            self.wrong(key, "must be a date-time with an offset such as 2027-01-31T00:00:00Z")
            return None
        return value

    def scalars(self, key: str) -> dict[str, str]:
        """A table of strings, whole numbers and flags, as strings (`true`, `3`); empty when absent."""
        value = self._left.pop(key, {})
        if not isinstance(value, Mapping) or not all(isinstance(v, str | int) for v in value.values()):
            self.wrong(key, "must be a table of strings, whole numbers and flags")
            return {}
        return {k: str(v).lower() if isinstance(v, bool) else str(v) for k, v in value.items()}

    def table(self, key: str) -> Table | None:
        """A table inside this one; None when absent."""
        if key not in self._left:
            return None
        value = self._left.pop(key)
        if not isinstance(value, Mapping):
            self.wrong(key, "must be a table")
            return None
        return Table(value, self.at(key), self.problems)

    def tables(self, key: str) -> list[Table]:
        """An array of tables (`[[key]]`); empty when absent."""
        value = self._left.pop(key, [])
        if not isinstance(value, list) or not all(isinstance(v, Mapping) for v in value):
            self.wrong(key, "must be an array of tables")
            return []
        return [Table(v, f"{self.at(key)}[{i}]", self.problems) for i, v in enumerate(value)]

    def left(self) -> Sequence[str]:
        """Members that nobody has taken yet."""
        return tuple(self._left)


def plain(value: Any) -> Any:
    """A parsed TOML value with its times as ISO 8601 strings, so that it has one canonical JSON form."""
    match value:
        case Mapping():
            return {k: plain(v) for k, v in value.items()}
        case list():
            return [plain(v) for v in value]
        case datetime() | date() | time():
            return value.isoformat()
        case _:
            return value
