"""Placeholders of one request turned back into values, in text and in tool arguments, wherever an answer is cut.

Only placeholders that stand in the forwarded request are restored. Per channel of a stream (one content block, one
tool call) at most one possible placeholder is held back, and it is flushed before the event that ends the channel.
Bytes in which nothing is restored are passed on as they came.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from gateway.classify.placeholders import PREFIX, has_form
from gateway.context import jsontext
from gateway.context.objects import Json, Path
from gateway.ports import Delta, EventReading, ProviderAdapter

_MAX_QUEUE = 256  # events that wait behind a held one
_REMEMBERED_ARGUMENTS = (
    1 << 20
)  # characters of one tool call's arguments that are kept to know the escape depth


class Values:
    """The values behind a request's placeholders, opened when an answer first holds one.

    `open_value` returns None where a value cannot be had any more; the placeholder then stays.
    """

    def __init__(self, tokens: Mapping[str, Callable[[], str | None]]) -> None:
        self._open = dict(tokens)
        self._known: dict[str, str | None] = {}
        self._starts = {token[:n] for token in tokens for n in range(1, len(token))}
        self._longest = max((len(t) for t in tokens), default=0)
        self.restored = 0
        self.withheld = 0

    def __bool__(self) -> bool:
        return bool(self._open)

    def held_length(self, text: str) -> int:
        """How many characters at the end of a text could be the start of a placeholder."""
        for n in range(min(self._longest - 1, len(text)), 0, -1):
            if text[-n] == PREFIX[0] and text[-n:] in self._starts:
                return n
        return 0

    def substitute(self, text: str, before: str | None = None, *, bytewise: bool = False) -> str:
        """The text with values in place.

        `before` is the JSON text that precedes it in the same tool arguments: then a value is escaped as deep as the
        string that it stands in. `bytewise`: the text is bytes read as Latin-1.
        """
        at = text.find(PREFIX)
        if at < 0:
            return text
        out, done = [], 0
        while at >= 0:
            token = self._token_at(text, at)
            value = self._value(token) if token else None
            if token and value is not None:
                depth = 0 if before is None else escape_depth(before + text[:at])
                if bytewise:
                    value = value.encode("utf-8", "surrogatepass").decode("latin-1")
                out += [text[done:at], escaped(value, depth)]
                done = at + len(token)
                self.restored += 1
            elif has_form(text, at):
                self.withheld += 1
            at = text.find(PREFIX, done if done > at else at + 1)
        return "".join([*out, text[done:]])

    def _token_at(self, text: str, at: int) -> str | None:
        return next((t for t in self._open if text.startswith(t, at)), None)

    def _value(self, token: str) -> str | None:
        if token not in self._known:
            self._known[token] = self._open[token]()
        return self._known[token]


def escaped(value: str, depth: int) -> str:
    """A value as it is written inside `depth` nested JSON strings."""
    for _ in range(depth):
        value = json.dumps(value, ensure_ascii=False)[1:-1]
    return value


def escape_depth(prefix: str) -> int:
    """How many nested JSON strings are open at the end of a piece of JSON text; at most four are looked at.

    A string counts as JSON itself when it begins with a brace or bracket.
    """
    depth = 0
    for _ in range(4):
        start = _open_string(prefix)
        if start < 0:
            break
        depth += 1
        inner = _decoded(prefix[start:])
        if inner.lstrip()[:1] not in ("{", "["):
            break
        prefix = inner
    return depth


def _open_string(text: str) -> int:
    """Where the content of a string that is still open at the end begins; -1 where none is."""
    at, start = 0, -1
    while True:
        at = text.find('"', at)
        if at < 0:
            return start
        if start < 0:
            start = at + 1
        else:
            back = at - 1
            while back >= start and text[back] == "\\":
                back -= 1
            if (at - back) % 2 == 1:  # an even number of backslashes: the quote closes the string
                start = -1
        at += 1


def _decoded(raw: str) -> str:
    """The text of an unfinished JSON string; an escape that is cut at the end is left out."""
    for cut in range(7):
        try:
            return str(json.loads(f'"{raw[: len(raw) - cut]}"', strict=False))
        except ValueError:
            continue
    return ""


@dataclass(slots=True)
class _Channel:
    held: str = ""
    before: str | None = None  # tool arguments so far, None for plain text
    template: tuple[Any, Path] | None = None  # the last event and the path of its text


@dataclass(frozen=True, slots=True)
class _Pending:
    """A numbered event whose end could be the start of a placeholder: sent short if that goes on, else whole."""

    key: str
    short: bytes
    whole: bytes


@dataclass(slots=True)
class EventRestorer:
    """Restores the events of one stream; `adapter` knows where their text stands.

    What is held at the end of a channel is sent as one more event of the shape it came in. Where events are numbered
    (`sequence_number`) an event may not be added, so there the event itself waits for the next one.
    """

    adapter: ProviderAdapter
    values: Values
    channels: dict[str, _Channel] = field(default_factory=dict)
    pending: _Pending | None = None
    queue: list[bytes] = field(default_factory=list)

    def event(self, event: Any) -> bytes:
        """Bytes for the client for one event (gateway.context.sse.Event)."""
        data = _parsed(event.data)
        if not isinstance(data, dict | list):
            return (self.flush() if event.data.strip() == "[DONE]" else b"") + bytes(event.raw)
        reading = self.adapter.read_event(event.name, data)
        waiting = self._resolve(reading)
        if waiting is None:
            self.queue.append(self._rewritten(event, data, reading))
            return b""
        flushed = b"".join(self._end(key) for key in self._ending(reading))
        return waiting + flushed + self._rewritten(event, data, reading)

    def _resolve(self, reading: EventReading) -> bytes | None:
        """What waited and may go now; None while this event must queue behind it."""
        pending = self.pending
        if pending is None:
            return b""
        goes_on = any(delta.key == pending.key for delta in reading.deltas)
        if not goes_on and pending.key not in self._ending(reading) and len(self.queue) < _MAX_QUEUE:
            return None
        return self._release(pending.short if goes_on else pending.whole, pending.key, keep=goes_on)

    def _release(self, first: bytes, key: str, *, keep: bool) -> bytes:
        if not keep and key in self.channels:
            self.channels[key].held = ""
        out = b"".join([first, *self.queue])
        self.pending = None
        self.queue.clear()
        return out

    def _ending(self, reading: EventReading) -> list[str]:
        return [key for key in self.channels if any(_is_ended(key, end) for end in reading.ends)]

    def _rewritten(self, event: Any, data: Json, reading: EventReading) -> bytes:
        found: dict[Path, str] = {}
        for delta in reading.deltas:
            old = at_path(data, delta.path)
            if isinstance(old, str):
                new = self._delta(event, delta, old)
                if new != old:
                    found[delta.path] = new
        if reading.whole:
            skip = {delta.path for delta in reading.deltas}
            for path, old in string_leaves(data):
                if PREFIX in old and path not in skip and not _is_under(path, reading.sealed):
                    found[path] = self.values.substitute(old, _before(old, path, self.adapter))
        rewritten = event.with_data(replaced(event.data, found)) if found else bytes(event.raw)
        return self._hold_numbered(event, data, reading, found, rewritten)

    def _hold_numbered(
        self, event: Any, data: Json, reading: EventReading, found: dict[Path, str], rewritten: bytes
    ) -> bytes:
        holding = [d for d in reading.deltas if (c := self.channels.get(d.key)) is not None and c.held]
        numbered = isinstance(data, dict) and "sequence_number" in data
        if not holding or not numbered or self.pending is not None:
            return rewritten
        delta = holding[0]
        held = self.channels[delta.key].held
        whole = {**found, delta.path: found.get(delta.path, "") + held}
        self.pending = _Pending(delta.key, rewritten, event.with_data(replaced(event.data, whole)))
        return b""

    def _delta(self, event: Any, delta: Delta, text: str) -> str:
        channel = self.channels.get(delta.key)
        if channel is None:
            channel = self.channels[delta.key] = _Channel(before="" if delta.json_string else None)
        channel.template = (event, delta.path)
        joined = channel.held + text
        held = self.values.held_length(joined)
        ready = joined[: len(joined) - held]
        channel.held = joined[len(joined) - held :]
        new = self.values.substitute(ready, channel.before)
        if channel.before is not None and len(channel.before) < _REMEMBERED_ARGUMENTS:
            channel.before += new
        return new

    def _end(self, key: str) -> bytes:
        channel = self.channels.pop(key)
        if not channel.held or channel.template is None:
            return b""
        event, path = channel.template
        return bytes(event.with_data(replaced(event.data, {path: channel.held})))

    def flush(self) -> bytes:
        """What is still held, at the end of the stream."""
        pending = self.pending
        waiting = self._release(pending.whole, pending.key, keep=False) if pending is not None else b""
        return waiting + b"".join(self._end(key) for key in list(self.channels))


def _before(text: str, path: Path, adapter: ProviderAdapter) -> str | None:
    """What precedes a whole string for `substitute`: an empty text where it is JSON itself, so that values are escaped."""
    return "" if adapter.arguments(path) or text.lstrip()[:1] in ("{", "[") else None


def _is_ended(key: str, end: str) -> bool:
    """Whether a name in `ends` speaks of a channel; one with a star at its end speaks of all that begin so."""
    return key.startswith(end[:-1]) if end.endswith("*") else key == end


def _is_under(path: Path, sealed: tuple[Path, ...]) -> bool:
    """Whether a place lies in what the provider signed: the client must send that back exactly as it came."""
    return any(path[: len(prefix)] == prefix for prefix in sealed)


def _parsed(text: str) -> Json:
    try:
        value: Json = json.loads(text) if text else None
    except ValueError:
        return None
    return value


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


def string_leaves(value: Json) -> Iterator[tuple[Path, str]]:
    """All strings of a value with their paths."""
    stack: list[tuple[Path, Json]] = [((), value)]
    while stack:
        path, item = stack.pop()
        if isinstance(item, str):
            yield path, item
        elif isinstance(item, dict):
            stack += [((*path, k), v) for k, v in item.items()]
        elif isinstance(item, list):
            stack += [((*path, i), v) for i, v in enumerate(item)]


def replaced(text: str, replacements: Mapping[Path, str]) -> str:
    """A JSON text with other strings at some paths; everything else keeps its characters."""
    spans = jsontext.locate(text, list(replacements))
    for path, (start, end) in sorted(spans.items(), key=lambda entry: -entry[1][0]):
        text = text[:start] + json.dumps(replacements[path], ensure_ascii=False) + text[end:]
    return text


def restore_json(body: bytes, adapter: ProviderAdapter, values: Values) -> bytes:
    """A whole JSON answer with its values back; the same bytes where nothing is restored or it is no JSON."""
    if PREFIX.encode() not in body and b"\\u00" not in body:
        return body
    try:
        text = body.decode("utf-8")
        data = json.loads(text)
    except ValueError:
        return body
    replacements = {}
    sealed = adapter.read_event("", data).sealed
    for path, old in string_leaves(data):
        if _is_under(path, sealed):
            continue
        new = values.substitute(old, _before(old, path, adapter))
        if new != old:
            replacements[path] = new
    return replaced(text, replacements).encode("utf-8", "surrogatepass") if replacements else body
