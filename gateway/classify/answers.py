"""Whole answers while they stream: content coding undone, framing understood, placeholders restored.

`open_answer` decides from the head of an answer how its body is read: server-sent events, JSON lines, one JSON
document, or plain text; anything else passes untouched. A restorer never raises: what it cannot read it passes on.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, override

from gateway.classify.restore import EventRestorer, restore_json
from gateway.classify.values import Values
from gateway.context import encoding, eventstream, sse
from gateway.context.objects import Limits
from gateway.errors import BodyError
from gateway.ports import BodyRestorer, Headers, ProviderAdapter


class _Framing(Protocol):
    def feed(self, data: bytes) -> bytes: ...

    def end(self) -> bytes: ...


@dataclass(slots=True)
class _Events:
    """A stream of events. `last` reads what stands after the last whole one; None passes it as it is."""

    decoder: Any  # the decoders of gateway.context share feed(bytes) -> events and end() -> bytes
    restorer: EventRestorer
    usage: dict[str, int]
    last: Callable[[bytes], Any] | None = None

    def feed(self, data: bytes) -> bytes:
        return b"".join([self._event(event) for event in self.decoder.feed(data)])

    def _event(self, event: Any) -> bytes:
        if '"usage' in event.data:
            note_usage(event.data, self.usage)
        return self.restorer.event(event) if self.restorer.values else bytes(event.raw)

    def end(self) -> bytes:
        rest = self.decoder.end()
        if not rest or self.last is None:
            return self.restorer.flush() + bytes(rest)
        return self._event(self.last(rest)) + self.restorer.flush()


@dataclass(slots=True)
class _WholeJson:
    adapter: ProviderAdapter
    values: Values
    usage: dict[str, int]
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
        out = bytes(self.data)
        self.data.clear()
        return out

    def end(self) -> bytes:
        body = bytes(self.data)
        if b'"usage' in body:
            note_usage(body.decode("utf-8", "replace"), self.usage)
        return restore_json(body, self.adapter, self.values)


@dataclass(slots=True)
class _JsonBody:
    """JSON that is one document, or an array sent element by element: the first character tells."""

    whole: _WholeJson
    elements: _Events
    chosen: _Framing | None = None

    def feed(self, data: bytes) -> bytes:
        if self.chosen is None and data.strip():
            self.chosen = self.elements if data.lstrip()[:1] == b"[" else self.whole
        return self.chosen.feed(data) if self.chosen is not None else data  # blanks before it go ahead

    def end(self) -> bytes:
        return self.chosen.end() if self.chosen is not None else b""


@dataclass(slots=True)
class _Text:
    values: Values
    held: bytes = b""

    def feed(self, data: bytes) -> bytes:
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
    """A BodyRestorer over one framing, with the content coding undone first."""

    framing: _Framing
    values: Values
    usage_found: dict[str, int]
    inflaters: list[Any] = field(default_factory=list)
    broken: bool = False

    def feed(self, data: bytes) -> bytes:
        """See ports.BodyRestorer."""
        if self.broken:
            return b""
        try:
            for inflater in self.inflaters:
                data = inflater.feed(data)
            return self.framing.feed(data)
        except BodyError:
            # The coding does not hold: nothing true can be said about the rest, so the answer ends here, visibly cut.
            self.broken = True
            return b""

    def end(self) -> bytes:
        """See ports.BodyRestorer."""
        if self.broken:
            return b""
        try:
            data = b""
            for inflater in self.inflaters:
                data = (inflater.feed(data) if data else b"") + inflater.end()
            return self.framing.feed(data) + self.framing.end() if data else self.framing.end()
        except BodyError:
            self.broken = True
            return b""

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
        return self.usage_found or None


@dataclass(frozen=True, slots=True)
class AnswerRestoration:
    """ports.Restoration for one admitted request."""

    adapter: ProviderAdapter
    values: Values = field(repr=False)
    limits: Limits

    def open(self, status: int, headers: Headers) -> tuple[Headers, BodyRestorer] | None:
        """See ports.Restoration."""
        kind = _header(headers, b"content-type").partition(";")[0].strip().lower()
        usage: dict[str, int] = {}
        framing = self._framing(kind, usage)
        codings = [c.strip() for c in _header(headers, b"content-encoding").lower().split(",") if c.strip()]
        codings = [c for c in codings if c != "identity"]
        if framing is None or status in (101, 204, 304) or (not self.values and codings):
            return None
        try:
            inflaters = [encoding.Inflater(coding, self.limits) for coding in reversed(codings)]
        except BodyError:
            return None
        dropped = {b"content-encoding", b"content-length"} if codings or self.values else set()
        kept = tuple((k, v) for k, v in headers if k.lower() not in dropped)
        return kept, AnswerRestorer(framing, self.values, usage, inflaters)

    def _framing(self, kind: str, usage: dict[str, int]) -> _Framing | None:
        events = EventRestorer(self.adapter, self.values)
        if kind == "text/event-stream":
            return _Events(sse.Decoder(), events, usage, sse.event)
        if kind in ("application/x-ndjson", "application/jsonl", "application/stream+json"):
            return _Events(sse.JsonLines(), events, usage, sse.line)
        if kind == "application/vnd.amazon.eventstream":
            return _Events(eventstream.Decoder(), events, usage)
        if kind == "application/json" or kind.endswith("+json"):
            whole = _WholeJson(self.adapter, self.values, usage, self.limits.max_body_bytes)
            return _JsonBody(whole, _Events(sse.JsonArray(), events, usage))
        if kind.startswith("text/") and self.values:
            return _Text(self.values)
        return None

    @override
    def __repr__(self) -> str:
        return f"AnswerRestoration({self.adapter.id})"


def _header(headers: Headers, name: bytes) -> str:
    return ", ".join(v.decode("latin-1") for k, v in headers if k.lower() == name)


def note_usage(text: str, usage: dict[str, int]) -> None:
    """Take the token figures of an answer or event into `usage`; the last ones stand."""
    found = _usage_of(text)
    if isinstance(found, dict):
        usage.update({name: number for name, number in found.items() if _is_count(name, number)})


def _is_count(name: str, number: object) -> bool:
    # Names are the provider's; one that does not look like a name is not kept.
    plain = name.isascii() and name.replace("_", "").isalnum() and len(name) < 64
    return plain and isinstance(number, int) and not isinstance(number, bool) and 0 <= number < 1 << 53


def _usage_of(text: str) -> Any:
    try:
        data = json.loads(text)
    except ValueError:
        return None
    for holder in (data, *(data.get(k) for k in ("message", "response") if isinstance(data, dict))):
        if isinstance(holder, dict):
            for name in ("usage", "usageMetadata"):
                if isinstance(holder.get(name), dict):
                    return holder[name]
    return None
