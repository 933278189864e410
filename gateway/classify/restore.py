"""Placeholders of one request turned back into values, in text and in tool arguments, wherever an answer is cut.

Only placeholders that stand in the forwarded request are restored. An event whose text ends in what may be the start of
a placeholder waits for the next event of its channel (one content block, one tool call), and what follows waits behind
it: events keep their number, order, names and ids, and those in which nothing is restored leave as they came.

A tool call gets its values only once all of its arguments are there and lead nowhere (`gateway.classify.wayout`). Until
then its events go on with empty text, and the last of them carries the rest.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from gateway.classify.hearing import at_path
from gateway.classify.nesting import opens_json
from gateway.classify.values import Substitution, Values
from gateway.classify.wayout import call_paths
from gateway.context import jsontext
from gateway.context.objects import Json, Path
from gateway.ports import Delta, EventReading, ProviderAdapter

_MAX_QUEUED: Final = 1024  # events that wait behind a held one
_MAX_QUEUED_BYTES: Final = 8 << 20
_MAX_ARGUMENTS: Final = 16 << 20  # characters of one tool call; a longer one keeps its placeholders


@dataclass(slots=True)
class _Piece:
    """The text of one delta of one event; `out` is what it becomes, complete once it is closed."""

    path: Path
    text: str
    out: list[str] = field(default_factory=list)
    closed: bool = False

    def close(self, rest: str = "") -> None:
        self.out.append(rest)
        self.closed = True


@dataclass(slots=True)
class _Entry:
    """An event that was read; `values` and `names` are its whole strings and member names that change."""

    event: Any
    pieces: list[_Piece]
    values: dict[Path, str]
    names: dict[Path, str]

    @property
    def ready(self) -> bool:
        return all(piece.closed for piece in self.pieces)

    def bytes(self) -> bytes:
        changed = dict(self.values)
        for piece in self.pieces:
            new = "".join(piece.out)
            if new != piece.text:
                changed[piece.path] = new
        if not changed and not self.names:
            return bytes(self.event.raw)
        return bytes(self.event.with_data(replaced(self.event.data, changed, self.names)))


class _Channel:
    """One run of text over several events."""

    def __init__(self, delta: Delta, values: Values) -> None:
        self.values = values
        self.is_json = delta.json_string
        self.guarded = values.guarded and (delta.json_string or delta.tool)
        self.tail: list[tuple[_Piece, str]] = []  # what may be the start of a placeholder, piece by piece
        self.before: list[str] = []  # what came before it, where that can be JSON
        self.size = 0
        self.deferred: list[str] | None = (
            None  # arguments from the first placeholder on, which the last piece will carry
        )
        self.last: _Piece | None = None
        self.passing = False  # nothing is restored here any more

    def extend(self, piece: _Piece) -> None:
        """Read one more piece of the channel's text."""
        self.size += len(piece.text)
        if self.size > _MAX_ARGUMENTS and (self.guarded or self.before) and not self.passing:
            self.give_up()
        if self.passing:
            piece.close(piece.text)
            return
        if self.deferred is not None:
            self._defer(piece, piece.text)
            return
        self.tail.append((piece, piece.text))
        text = "".join(part for _, part in self.tail)
        ready = len(text) - self.values.held_length(text)
        first = self.values.first(text[:ready]) if self.guarded else -1
        if first >= 0:
            tail, self.tail, self.deferred = self.tail, [], []
            self._settle(tail, first, [], close=False)
            self._remember(text[:first])
            at = 0
            for held, part in tail:
                self._defer(held, part[max(first - at, 0) :])
                at += len(part)
            return
        found = self.values.substitutions(text[:ready], self._before(text), declared=self.is_json)
        self.tail = self._settle(self.tail, ready, found, close=True)
        self._remember(text[:ready])

    def _defer(self, piece: _Piece, text: str) -> None:
        if self.last is not None:
            self.last.close()
        self.last = piece
        if self.deferred is not None and text:
            self.deferred.append(text)

    def _settle(
        self, tail: Sequence[tuple[_Piece, str]], ready: int, found: Sequence[Substitution], *, close: bool
    ) -> list[tuple[_Piece, str]]:
        """Give each piece its part of what is ready, a value to the piece where its placeholder began; what is left."""
        left, at = [], 0
        for piece, part in tail:
            end = min(at + len(part), ready)
            piece.out.append(_between(part, at, end, found))
            if at + len(part) > ready:
                left.append((piece, part[max(ready - at, 0) :]))
            elif close:
                piece.close()
            at += len(part)
        return left

    def _before(self, text: str) -> str | None:
        if not self.before:
            return "" if self.is_json or opens_json(text) else None
        before = "".join(self.before)
        return before if self.is_json or opens_json(before) else None

    def _remember(self, text: str) -> None:
        if self.is_json or self.guarded or (text and (self.before or opens_json(text) or not text.strip())):
            self.before.append(text)

    def end(self) -> None:
        """The channel is over: what only looked like a placeholder is text, and deferred arguments are judged."""
        for piece, part in self.tail:
            piece.close(part)
        self.tail = []
        if self.deferred is None or self.last is None:
            return
        rest, before = "".join(self.deferred), "".join(self.before)
        if self._leads_out(before + rest):
            self.values.withhold(rest)
        else:
            rest = self.values.substitute(rest, self._before(before + rest), declared=self.is_json)
        self.last.close(rest)
        self.deferred, self.last = None, None

    def _leads_out(self, call: str) -> bool:
        if self.is_json:
            try:
                json.loads(call, strict=False)
            except (ValueError, RecursionError):
                return True  # arguments that are cut short, or that readers do not agree on
        return self.values.leads_out(call)

    def give_up(self) -> None:
        """Restore nothing more: too much waits."""
        for piece, part in self.tail:
            piece.close(part)
        rest = "".join(self.deferred or ())
        self.values.withhold(rest)
        if self.last is not None:
            self.last.close(rest)
        self.tail, self.deferred, self.last, self.passing = [], None, None, True
        self.before.clear()


def _between(part: str, at: int, end: int, found: Sequence[Substitution]) -> str:
    """A part of a longer text, which begins at `at`, up to `end`, with the substitutions that begin in it."""
    out, here = [], at
    for start, stop, value in found:
        if stop <= here or start >= end:
            continue
        if start >= here:
            out += [part[here - at : start - at], value]
        here = min(max(stop, here), end)
    return "".join([*out, part[here - at : max(end - at, here - at)]])


@dataclass(slots=True)
class EventRestorer:
    """Restores the events of one stream; `adapter` knows where their text stands."""

    adapter: ProviderAdapter
    values: Values
    channels: dict[str, _Channel] = field(default_factory=dict)
    queue: deque[_Entry] = field(default_factory=deque)
    queued: int = 0

    def event(self, event: Any) -> bytes:
        """Bytes for the client for one event (gateway.context.sse.Event), and for those that waited for it."""
        data = parsed(event.data)
        return self.take(event, data, self.read(event, data))

    def read(self, event: Any, data: Json) -> EventReading | None:
        """How the dialect reads an event whose text was parsed to `data`; None where it is no JSON."""
        return self.adapter.read_event(event.name, data) if isinstance(data, dict | list) else None

    def take(self, event: Any, data: Json, reading: EventReading | None) -> bytes:
        """As `event`, for one that was read already."""
        if reading is None:
            if event.data.strip() == "[DONE]":
                self._end(["*"])
            return self._put(_Entry(event, [], {}, {}))
        entry = self._entry(event, data, reading)
        self._end(reading.ends)  # after its deltas: the event that ends a channel may extend it once more
        return self._put(entry)

    def _entry(self, event: Any, data: Json, reading: EventReading) -> _Entry:
        pieces = []
        for delta in reading.deltas:
            text = at_path(data, delta.path)
            if isinstance(text, str):
                if delta.key not in self.channels:
                    self.channels[delta.key] = _Channel(delta, self.values)
                piece = _Piece(delta.path, text)
                pieces.append(piece)
                self.channels[delta.key].extend(piece)
        values: dict[Path, str] = {}
        names: dict[Path, str] = {}
        if reading.whole and self.values.may_hold(event.data):
            skip = {piece.path for piece in pieces}
            values, names = restored_strings(data, self.adapter, self.values, reading.sealed, skip)
        return _Entry(event, pieces, values, names)

    def _put(self, entry: _Entry) -> bytes:
        self.queue.append(entry)
        self.queued += len(entry.event.raw)
        out = self._ready()
        if len(self.queue) > _MAX_QUEUED or self.queued > _MAX_QUEUED_BYTES:
            for channel in self.channels.values():
                channel.give_up()
            out += self._ready()
        return out

    def _ready(self) -> bytes:
        out = []
        while self.queue and self.queue[0].ready:
            entry = self.queue.popleft()
            self.queued -= len(entry.event.raw)
            out.append(entry.bytes())
        return b"".join(out)

    def _end(self, ends: Sequence[str]) -> None:
        for key in [key for key in self.channels if any(_is_ended(key, end) for end in ends)]:
            self.channels.pop(key).end()

    def flush(self) -> bytes:
        """What is still held, at the end of the stream."""
        self._end(["*"])
        return self._ready()


def _is_ended(key: str, end: str) -> bool:
    """Whether a name in `ends` speaks of a channel; one with a star at its end speaks of all that begin so."""
    return key.startswith(end[:-1]) if end.endswith("*") else key == end


def restored_strings(
    data: Json, adapter: ProviderAdapter, values: Values, sealed: Sequence[Path], skip: set[Path]
) -> tuple[dict[Path, str], dict[Path, str]]:
    """The whole strings and the member names of an event or answer in which something is restored, by path."""
    calls: dict[Path, bool] = {}
    for path in call_paths(data) if values.guarded else ():
        calls[path] = values.leads_out(at_path(data, path))
    changed: dict[Path, str] = {}
    names: dict[Path, str] = {}
    for path, old, is_name in strings_of(data):
        if not values.may_hold(old) or path in skip or _is_under(path, sealed):
            continue
        if any(out and path[: len(call)] == call for call, out in calls.items()):
            values.withhold(old)
            continue
        declared = not is_name and adapter.arguments(path)
        before = "" if not is_name and (declared or opens_json(old)) else None
        new = values.substitute(old, before, declared=declared)
        if new != old:
            (names if is_name else changed)[path] = new
    return changed, names


def _is_under(path: Path, places: Sequence[Path]) -> bool:
    """Whether a place lies in what the provider signed: the client must send that back exactly as it came."""
    return any(path[: len(prefix)] == prefix for prefix in places)


def parsed(text: str) -> Json:
    """The value of a JSON text; None where it is none."""
    try:
        value: Json = json.loads(text) if text else None
    except (ValueError, RecursionError):
        return None
    return value


def strings_of(value: Json) -> Iterator[tuple[Path, str, bool]]:
    """All strings of a value with their paths, and all member names with theirs, marked."""
    stack: list[tuple[Path, Json]] = [((), value)]
    while stack:
        path, item = stack.pop()
        if isinstance(item, str):
            yield path, item, False
        elif isinstance(item, dict):
            for name, inner in item.items():
                yield (*path, name), name, True
                stack.append(((*path, name), inner))
        elif isinstance(item, list):
            stack += [((*path, i), v) for i, v in enumerate(item)]


def replaced(text: str, values: Mapping[Path, str], names: Mapping[Path, str] | None = None) -> str:
    """A JSON text with other strings at some paths, and other member names; everything else keeps its characters."""
    edits = [(*span, values[path]) for path, span in jsontext.locate(text, list(values)).items()]
    if names:
        edits += [(*span, names[path]) for path, span in jsontext.locate_names(text, list(names)).items()]
    out, at = [], 0
    for start, end, new in sorted(edits):
        out += [text[at:start], jsontext.quote(new)]
        at = end
    return "".join([*out, text[at:]])


def restore_json(body: bytes, adapter: ProviderAdapter, values: Values) -> bytes:
    """A whole JSON answer with its values back; the same bytes where nothing is restored or it is no JSON."""
    if not values.may_hold(body):
        return body
    try:
        text = body.decode("utf-8")
        data = json.loads(text)
    except (ValueError, RecursionError):
        return body
    sealed = adapter.read_event("", data).sealed
    changed, names = restored_strings(data, adapter, values, sealed, set())
    if not changed and not names:
        return body
    return replaced(text, changed, names).encode("utf-8", "surrogatepass")
