"""Whole answers while they stream: content coding undone, framing understood, placeholders restored, figures noted.

`AnswerRestoration.open` decides from the head of an answer how its body is read: server-sent events, JSON lines, an AWS
event stream, one JSON document or plain text; where the head does not say, its first bytes do. A restorer never raises:
what it cannot read it passes on, and a content coding that does not hold ends the answer, visibly cut.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, override

from gateway.classify.hearing import Listener
from gateway.classify.restore import EventRestorer, parsed, restore_json
from gateway.classify.values import Values
from gateway.context import encoding, eventstream, sse
from gateway.context.objects import Limits
from gateway.errors import BodyError
from gateway.ports import BodyRestorer, Headers, ProviderAdapter

_LINES: Final = frozenset({"application/x-ndjson", "application/jsonl", "application/stream+json"})
_UNTOLD: Final = frozenset({"", "text/plain", "application/octet-stream", "binary/octet-stream"})
_FIELDS: Final = (b"data:", b"event:", b"id:", b"retry:", b":")
_LONGEST_FIELD: Final = max(map(len, _FIELDS))
_MARK: Final = b"\xef\xbb\xbf"


class _Framing(Protocol):
    def feed(self, data: bytes) -> bytes: ...

    def end(self) -> bytes: ...


@dataclass(slots=True)
class _Events:
    """A stream of events. `last` reads what stands after the last whole one; None passes it as it is."""

    decoder: Any  # the decoders of gateway.context share feed(bytes) -> events and end() -> bytes
    restorer: EventRestorer
    listener: Listener
    last: Callable[[bytes], Any] | None = None

    def feed(self, data: bytes) -> bytes:
        return b"".join([self._event(event) for event in self.decoder.feed(data)])

    def _event(self, event: Any) -> bytes:
        restorer, listener = self.restorer, self.listener
        # Where nothing can be restored, a placeholder from elsewhere still counts as withheld.
        concerned = bool(restorer.values) or restorer.values.may_hold(event.data)
        if not listener.wants(event.data):
            return restorer.event(event) if concerned else bytes(event.raw)
        data = parsed(event.data)
        reading = restorer.read(event, data) if concerned or listener.heard is not None else None
        listener.event(event.data, data, reading, restorer.adapter)
        return restorer.take(event, data, reading) if concerned else bytes(event.raw)

    def end(self) -> bytes:
        rest = self.decoder.end()
        if not rest or self.last is None:
            return self.restorer.flush() + bytes(rest)
        return self._event(self.last(rest)) + self.restorer.flush()


@dataclass(slots=True)
class _WholeJson:
    adapter: ProviderAdapter
    values: Values
    listener: Listener
    limit: int
    data: bytearray = field(default_factory=bytearray)
    passing: bool = False

    def feed(self, data: bytes) -> bytes:
        if self.passing:
            return data
        self.data += data
        if len(self.data) <= self.limit:
            return b""
        self.passing = True  # too large to be held: it goes on as it is, with its placeholders
        self.listener.lost()
        out = bytes(self.data)
        self.data.clear()
        return out

    def end(self) -> bytes:
        body = bytes(self.data)
        text = body.decode("utf-8", "replace")
        if self.listener.wants(text):
            data = parsed(text)
            reading = self.adapter.read_event("", data) if self.listener.heard is not None else None
            self.listener.answer(text, data, reading, self.adapter)
        return restore_json(body, self.adapter, self.values)


@dataclass(slots=True)
class _JsonBody:
    """JSON that is one document, an array sent element by element, or one document a line: its beginning tells."""

    whole: _WholeJson
    elements: _Events
    lines: _Events
    chosen: _Framing | None = None
    first: bytearray = field(default_factory=bytearray)  # an object, as far as its first line end
    line_end: int = -1

    def feed(self, data: bytes) -> bytes:
        if self.chosen is not None:
            return self.chosen.feed(data)
        if not self.first:
            if not data.strip():
                return data  # blanks before it go ahead
            if data.lstrip()[:1] == b"[":
                return self._choose(self.elements, data)
        before = len(self.first)
        self.first += data
        if self.line_end < 0:
            self.line_end = self.first.find(b"\n", before)
            if self.line_end < 0:
                return b"" if len(self.first) <= self.whole.limit else self._choose(self.whole)
            if not isinstance(parsed(self.first[: self.line_end].decode("utf-8", "replace")), dict):
                return self._choose(self.whole)
        # A line end may be the last byte of one document; what follows it tells.
        return self._choose(self.lines) if self.first[self.line_end :].strip() else b""

    def _choose(self, framing: _Framing, data: bytes = b"") -> bytes:
        self.chosen, data = framing, bytes(self.first) + data
        self.first.clear()
        return framing.feed(data)

    def end(self) -> bytes:
        rest = self._choose(self.whole) if self.chosen is None and self.first else b""
        return rest + self.chosen.end() if self.chosen is not None else rest


@dataclass(slots=True)
class _Untold:
    """A body whose head does not say what it is: its first bytes do; what is neither is plain text."""

    events: _Events
    document: _JsonBody
    text: _Framing
    chosen: _Framing | None = None
    first: bytes = b""

    def feed(self, data: bytes) -> bytes:
        if self.chosen is not None:
            return self.chosen.feed(data)
        self.first += data
        begin = self.first.removeprefix(_MARK).lstrip()
        if begin[:1] in {b"{", b"["}:
            return self._choose(self.document)
        if begin.startswith(_FIELDS):
            return self._choose(self.events)
        undecided = _MARK.startswith(self.first) or (
            len(begin) < _LONGEST_FIELD and any(name.startswith(begin) for name in _FIELDS)
        )
        return b"" if undecided else self._choose(self.text)

    def _choose(self, framing: _Framing) -> bytes:
        self.chosen, data, self.first = framing, self.first, b""
        return framing.feed(data)

    def end(self) -> bytes:
        rest = self._choose(self.text) if self.chosen is None and self.first else b""
        return rest + self.chosen.end() if self.chosen is not None else rest


@dataclass(slots=True)
class _Text:
    values: Values
    listener: Listener
    held: bytes = b""

    def feed(self, data: bytes) -> bytes:
        if self.listener.heard is not None:
            self.listener.heard.text(data)
        if not self.values:
            return data
        # Latin-1 keeps every byte, and placeholders are ASCII.
        text = (self.held + data).decode("latin-1")
        keep = self.values.held_length(text)
        self.held = text[len(text) - keep :].encode("latin-1") if keep else b""
        return self._substituted(text[: len(text) - keep])

    def _substituted(self, text: str) -> bytes:
        return self.values.substitute(text, bytewise=True).encode("latin-1")

    def end(self) -> bytes:
        rest, self.held = self.held, b""
        return rest


@dataclass(slots=True)
class AnswerRestorer:
    """A BodyRestorer over one framing, with the content coding undone first.

    `aside`: the bytes go on as they came, and are decoded beside that only to be read.
    """

    framing: _Framing
    values: Values
    listener: Listener
    inflaters: list[Any] = field(default_factory=list)
    aside: bool = False
    failed: bool = False

    def feed(self, data: bytes) -> bytes:
        """See ports.BodyRestorer."""
        if self.failed:
            return data if self.aside else b""
        try:
            read = data
            for inflater in self.inflaters:
                read = inflater.feed(read)
            out = self.framing.feed(read)
        except BodyError:
            # Nothing true can be said about the rest, so what was decoded here ends here, visibly cut.
            self.failed = True
            out = b""
        return data if self.aside else out

    def end(self) -> bytes:
        """See ports.BodyRestorer."""
        if self.failed:
            return b""
        try:
            data = b""
            for inflater in self.inflaters:
                data = (inflater.feed(data) if data else b"") + inflater.end()
            out = self.framing.feed(data) + self.framing.end() if data else self.framing.end()
        except BodyError:
            self.failed = True
            out = b""
        return b"" if self.aside else out

    @property
    def alters(self) -> bool:
        """See ports.BodyRestorer."""
        return not self.aside

    @property
    def broken(self) -> bool:
        """See ports.BodyRestorer."""
        return self.failed and not self.aside

    @property
    def restored(self) -> int:
        """See ports.BodyRestorer."""
        return self.values.restored

    @property
    def withheld(self) -> int:
        """See ports.BodyRestorer."""
        return self.values.foreign

    @property
    def refused(self) -> int:
        """See ports.BodyRestorer."""
        return self.values.withheld

    @property
    def usage(self) -> Mapping[str, int] | None:
        """See ports.BodyRestorer."""
        return self.listener.usage.tokens


@dataclass(frozen=True, slots=True)
class AnswerRestoration:
    """ports.Restoration for one admitted request."""

    adapter: ProviderAdapter
    values: Values = field(repr=False)
    limits: Limits
    listener: Listener = field(default_factory=Listener, repr=False)
    holds: bool = False

    def open(
        self, status: int, headers: Headers, *, decode: bool = False
    ) -> tuple[Headers, BodyRestorer] | None:
        """See ports.Restoration. `decode`: undo the content coding also where nothing can be restored."""
        kind = _header(headers, b"content-type").partition(";")[0].strip().lower()
        self.listener.usage.head(headers)
        framing = self._framing(kind)
        codings = [c.strip() for c in _header(headers, b"content-encoding").lower().split(",") if c.strip()]
        codings = [c for c in codings if c != "identity"]
        if framing is None or status in (101, 204, 304):
            return None
        try:
            inflaters = [encoding.Inflater(coding, self.limits) for coding in reversed(codings)]
        except BodyError:
            return None
        aside = not self.values and not decode
        dropped = set() if aside else {b"content-encoding", b"content-length"}
        kept = tuple((k, v) for k, v in headers if k.lower() not in dropped)
        return kept, AnswerRestorer(framing, self.values, self.listener, inflaters, aside)

    def _framing(self, kind: str) -> _Framing | None:
        if kind == "text/event-stream":
            return self._events(sse.Decoder(), sse.event)
        if kind in _LINES:
            return self._events(sse.JsonLines(), sse.line)
        if kind == "application/vnd.amazon.eventstream":
            return self._events(eventstream.Decoder(), None)
        if kind == "application/json" or kind.endswith("+json"):
            return self._document()
        if kind in _UNTOLD:
            return _Untold(self._events(sse.Decoder(), sse.event), self._document(), self._text())
        is_wanted = bool(self.values) or self.listener.heard is not None
        return self._text() if kind.startswith("text/") and is_wanted else None

    def _text(self) -> _Text:
        return _Text(self.values, self.listener)

    def _events(self, decoder: Any, last: Callable[[bytes], Any] | None) -> _Events:
        return _Events(decoder, EventRestorer(self.adapter, self.values), self.listener, last)

    def _document(self) -> _JsonBody:
        whole = _WholeJson(self.adapter, self.values, self.listener, self.limits.max_body_bytes)
        return _JsonBody(whole, self._events(sse.JsonArray(), None), self._events(sse.JsonLines(), sse.line))

    @override
    def __repr__(self) -> str:
        return f"AnswerRestoration({self.adapter.id})"


def _header(headers: Headers, name: bytes) -> str:
    return ", ".join(v.decode("latin-1") for k, v in headers if k.lower() == name)
