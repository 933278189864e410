"""Streams of events, cut into events without changing a byte.

Three framings with one interface: server-sent events, one JSON text a line, and a JSON array that is sent
element by element. `feed` gives the events that are complete, the same ones however the bytes were cut; the
`raw` of all events and what `end` gives are together exactly the bytes that were fed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Final, override

from gateway.errors import BodyError

_LINE_END: Final = re.compile(rb"\r\n|\r|\n")
_TEXT_LINE_END: Final = re.compile(r"\r\n|\r|\n")
_CR: Final = 13
_MARK: Final = b"\xef\xbb\xbf"
MAX_EVENT_BYTES: Final = 32 << 20


@dataclass(frozen=True, slots=True)
class Event:
    """One event as it was received, with its blank line or line end.

    `data_spans` are byte offsets in `raw` of the data of each line; empty for comments and the like. `name`
    is the event type, empty where none is given. Bytes that are no UTF-8 stand in `data` as surrogate
    escapes.
    """

    raw: bytes = field(repr=False)
    name: str = ""
    data: str = field(default="", repr=False)
    data_spans: tuple[tuple[int, int], ...] = ()
    bare: bool = False  # the data is one span as it stands, without `data:` lines

    @override
    def __repr__(self) -> str:
        return f"Event({len(self.raw)} bytes)"

    def with_data(self, new: str) -> bytes:
        """The event's bytes with other data; every other byte stays. Needs an event that has data."""
        lines = [_bytes(line) for line in _TEXT_LINE_END.split(new)]
        if not self.data_spans:
            raise BodyError("stream.no_data")
        if self.bare:
            ((start, end),) = self.data_spans
            return b"".join((self.raw[:start], _bytes(new), self.raw[end:]))
        pieces: list[bytes] = []
        at = 0
        for (start, end), line in zip_longest(self.data_spans, lines[: len(self.data_spans)]):
            if line is None:
                # fewer lines than before: this one goes, with the line end before it, so that CR never meets LF
                pieces.append(self.raw[at : self._previous_end(start)])
                at = end
            else:
                pieces += (self.raw[at:start], self._value(start, line))
                at = end
        start, end = self.data_spans[-1]
        prefix = self._line_end(end) + self.raw[self._line_start(start) : start]
        pieces += [prefix + self._value(start, line) for line in lines[len(self.data_spans) :]]
        pieces.append(self.raw[at:])
        return b"".join(pieces)

    def _value(self, start: int, line: bytes) -> bytes:
        """A line's data as it must stand at this place: after a colon, and behind a blank that readers drop."""
        before = self.raw[start - 1 : start]
        if before == b":":
            return b" " + line if line.startswith(b" ") else line
        return line if before == b" " or not line else b": " + line

    def _line_start(self, at: int) -> int:
        return max(self.raw.rfind(b"\n", 0, at), self.raw.rfind(b"\r", 0, at)) + 1

    def _line_end(self, at: int) -> bytes:
        match = _LINE_END.match(self.raw, at)
        return b"\n" if match is None else match[0]

    def _previous_end(self, at: int) -> int:
        start = self._line_start(at)
        return start - (2 if self.raw[:start].endswith(b"\r\n") else 1)


def event(raw: bytes) -> Event:
    """Read one event from its bytes (WHATWG HTML §9.2.6), the last of which may lack its blank line."""
    name, spans = "", []
    at = len(_MARK) if raw.startswith(_MARK) else 0
    while at < len(raw):
        match = _LINE_END.search(raw, at)
        stop, after = (len(raw), len(raw)) if match is None else match.span()
        colon = raw.find(b":", at, stop)
        label = raw[at : stop if colon < 0 else colon]
        start = stop if colon < 0 else colon + 1 + (raw[colon + 1 : colon + 2] == b" " and colon + 1 < stop)
        if label == b"data":
            spans.append((start, stop))
        elif label == b"event":
            name = _text(raw[start:stop])
        at = after
    data = "\n".join(_text(raw[start:stop]) for start, stop in spans)
    return Event(raw, name, data, tuple(spans))


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


class _Buffer:
    """Bytes that are no whole event yet, bounded."""

    def __init__(self, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self._limit = max_event_bytes
        self._held = bytearray()
        self._at = 0  # where the search goes on

    def _cut(self, start: int, end: int) -> bytes:
        return bytes(memoryview(self._held)[start:end])

    def _keep(self, start: int) -> None:
        """Forget what has been given; raises BodyError stream.event_too_large when too much is left."""
        if start:
            del self._held[:start]
            self._at -= start
        if len(self._held) > self._limit:
            raise BodyError("stream.event_too_large")

    def end(self) -> bytes:
        """The bytes that are left; `event` reads them where they are an event without its end."""
        rest, self._held = bytes(self._held), bytearray()
        return rest


class Decoder(_Buffer):
    """Server-sent events, with CR, LF and CRLF line ends."""

    def __init__(self, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        super().__init__(max_event_bytes)
        self._line = 0  # where the line begins that is being read

    def feed(self, data: bytes) -> list[Event]:
        """The events that these bytes complete."""
        self._held += data
        held, events = self._held, []
        begin = 0
        while (match := _LINE_END.search(held, self._at)) is not None:
            if match.end() == len(held) and held[-1] == _CR:
                break  # the other half of this line end may still come
            if match.start() == self._line:
                events.append(event(self._cut(begin, match.end())))
                begin = match.end()
            self._line = self._at = match.end()
        else:
            self._at = len(held)
        self._line -= begin
        self._keep(begin)
        return events


class JsonLines(_Buffer):
    """One JSON text a line (NDJSON); a blank line is an event without data."""

    def feed(self, data: bytes) -> list[Event]:
        """The lines that these bytes complete."""
        self._held += data
        begin, events = 0, []
        while (end := self._held.find(b"\n", self._at)) >= 0:
            events.append(line(self._cut(begin, end + 1)))
            begin = self._at = end + 1
        self._at = len(self._held)
        self._keep(begin)
        return events


def line(raw: bytes) -> Event:
    """Read one JSON line from its bytes, the last of which may lack its line end."""
    body = raw.rstrip(b"\r\n")
    spans = ((0, len(body)),) if body.strip() else ()
    return Event(raw, "", _text(body) if spans else "", spans, bare=True)


_INSIDE: Final = re.compile(rb'["\\]')
_OUTSIDE: Final = re.compile(rb'["{}\[\],]|[^\s"{}\[\],]+')


class JsonArray(_Buffer):
    """The elements of a JSON array, each with what stands before it; a lone object is one element."""

    def __init__(self, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        super().__init__(max_event_bytes)
        self._array = False  # the bracket of the array has been read
        self._depth = 0  # inside an element
        self._quoted = False
        self._start = -1  # where the element begins, -1 between elements

    def feed(self, data: bytes) -> list[Event]:
        """The elements that these bytes complete."""
        self._held += data
        begin, events = 0, []
        while (match := (_INSIDE if self._quoted else _OUTSIDE).search(self._held, self._at)) is not None:
            token = match[0]
            if token == b"\\":
                if match.end() == len(self._held):
                    break  # the escaped character is still to come
                self._at = match.end() + 1
                continue
            self._at = match.end()
            end = self._read(token, *match.span())
            if end >= 0:
                events.append(self._element(begin, end))
                begin = end
        else:
            self._at = len(self._held)
        self._start -= begin if self._start >= 0 else 0
        self._keep(begin)
        return events

    def _read(self, token: bytes, at: int, after: int) -> int:
        """Where the element ends that this token completes, or -1."""
        if token == b"," or (token in {b"]", b"}"} and not self._depth):
            return at if self._start >= 0 and not self._depth else -1
        if token in {b"]", b"}"}:
            self._depth -= 1
            return -1 if self._depth else after
        if token == b'"':
            self._quoted = not self._quoted
        elif token == b"[" and not self._array and self._start < 0:
            self._array = True
            return -1
        if self._start < 0:
            self._start = at
        self._depth += token in {b"[", b"{"}
        return -1

    def _element(self, begin: int, end: int) -> Event:
        raw = self._cut(begin, end)
        start, self._start = self._start - begin, -1
        stop = len(raw.rstrip())
        return Event(raw, "", _text(raw[start:stop]), ((start, stop),), bare=True)
