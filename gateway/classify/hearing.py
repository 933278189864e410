"""What is noted of an answer while it passes: its token figures, and its texts where the policy has answers scanned.

Texts are those of the provider, before anything is restored in them: values that the gateway puts back are the user's
own. They are kept until the answer is over, in memory, up to a bound.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from gateway.context.findings import ScanItem
from gateway.context.objects import Json, Path, WalkRules
from gateway.ports import EventReading, ProviderAdapter
from gateway.providers.usage import Usage, reports

MAX_HEARD: Final = 4 << 20
"""Characters of one answer that are kept to be scanned."""

_SHORTEST: Final = 6  # what is shorter is nothing that a detector knows
_PADDING: Final = frozenset({"obfuscation", "p", "system_fingerprint", "object", "finish_reason"})
# What an answer repeats of its request
_ECHOED: Final = frozenset({"instructions", "tools", "prompt", "metadata"})
_CHANNEL: Final = "assistant"


@dataclass(slots=True)
class Heard:
    """The texts of one answer; `complete` is false where it was longer than is kept."""

    limit: int = MAX_HEARD
    complete: bool = True
    _size: int = 0
    _runs: dict[str, list[str]] = field(default_factory=dict, repr=False)
    _bytes: bytearray = field(default_factory=bytearray, repr=False)
    _texts: dict[tuple[str, str], None] = field(default_factory=dict, repr=False)  # an ordered set

    def event(self, data: Json, reading: EventReading, adapter: ProviderAdapter) -> None:
        """One event of a stream: its deltas, and every other text, each once however often it is repeated."""
        heard = set()
        for delta in reading.deltas:
            text = at_path(data, delta.path)
            if isinstance(text, str):
                heard.add(delta.path)
                if self._room(len(text)):
                    self._runs.setdefault(delta.key, []).append(text)
        if reading.whole:
            self._whole(data, (), reading, adapter.rules, heard)

    def answer(self, data: Json, reading: EventReading, adapter: ProviderAdapter) -> None:
        """A whole answer."""
        self._whole(data, (), reading, adapter.rules)

    def text(self, data: bytes) -> None:
        """A piece of an answer that is text from end to end."""
        if self._room(len(data)):
            self._bytes += data

    def unread(self, text: str) -> None:
        """What should have been JSON and is none: a client may read it all the same, so it counts as it stands."""
        if text.strip():
            self.text(text.encode("utf-8", "surrogatepass") + b"\n")

    def items(self) -> list[ScanItem]:
        """What is to be scanned, each text once."""
        plain = ["".join(run) for run in self._runs.values()]
        plain += [self._bytes.decode("utf-8", "replace")] if self._bytes else []
        runs = [ScanItem(text, channel=_CHANNEL) for text in plain]
        return runs + [ScanItem(text, name, _CHANNEL) for name, text in self._texts]

    def forget(self) -> None:
        """Nothing of the answer is needed any more."""
        self._runs.clear()
        self._bytes.clear()
        self._texts.clear()

    def _whole(
        self, value: Any, at: Path, reading: EventReading, rules: WalkRules, heard: Collection[Path] = ()
    ) -> None:
        for path, text in spoken_strings(value, at, reading.sealed, rules):
            key = str(path[-1]) if path else "", text
            if (
                len(text) >= _SHORTEST
                and path not in heard
                and key not in self._texts
                and self._room(len(text))
            ):
                self._texts[key] = None

    def _room(self, size: int) -> bool:
        if self._size + size > self.limit:
            self.complete = False
            return False
        self._size += size
        return size > 0


@lru_cache(maxsize=64)
def _silent(rules: WalkRules) -> frozenset[str]:
    return rules.structural | rules.sealed | rules.media | rules.references | _PADDING


def spoken_strings(
    value: Any, at: Path, sealed: tuple[Path, ...], rules: WalkRules
) -> Iterator[tuple[Path, str]]:
    """The strings of an answer that say something: no ids, signatures or media, and nothing that is sealed."""
    silent = _silent(rules)
    todo: list[tuple[Path, Any, bool]] = [(at, value, False)]
    while todo:
        path, item, free = todo.pop()
        if path in sealed:
            continue
        if isinstance(item, str):
            yield path, item
        elif isinstance(item, dict):
            for name, inner in item.items():
                if not free and (name in silent or (not path and name in _ECHOED)):
                    continue
                todo.append(((*path, name), inner, free or name in rules.free_form))
        elif isinstance(item, list):
            todo += [((*path, i), inner, free) for i, inner in enumerate(item)]


@dataclass(slots=True)
class Listener:
    """Notes what passes. `heard` is None where the policy asks for no scan of answers."""

    usage: Usage = field(default_factory=Usage)
    heard: Heard | None = None

    def wants(self, text: str) -> bool:
        """Whether an event of this text is to be parsed at all."""
        return self.heard is not None or reports(text)

    def event(self, text: str, data: Json, reading: EventReading | None, adapter: ProviderAdapter) -> None:
        """One event of a stream: its text, its value, and how its dialect reads it."""
        if reports(text):
            self.usage.note(data)
        if self.heard is not None and data is None:
            self.heard.unread(text)
        elif self.heard is not None and reading is not None:
            self.heard.event(data, reading, adapter)

    def answer(self, text: str, data: Json, reading: EventReading | None, adapter: ProviderAdapter) -> None:
        """A whole answer: its text, its value, and how its dialect reads it."""
        self.usage.note(data)
        if self.heard is not None and data is None:
            self.heard.unread(text)
        elif self.heard is not None and reading is not None:
            self.heard.answer(data, reading, adapter)

    def lost(self) -> None:
        """Something passed that nobody read."""
        if self.heard is not None:
            self.heard.complete = False


def at_path(data: Json, path: Path) -> Json:
    """The value at a path, None where there is none."""
    for token in path:
        if isinstance(data, dict) and isinstance(token, str):
            data = data.get(token)
        elif isinstance(data, list) and isinstance(token, int) and token < len(data):
            data = data[token]
        else:
            return None
    return data
