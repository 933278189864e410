"""Messages and their frames.

```
4 bytes   length of everything behind these eight
4 bytes   length of the head
head      JSON: [number, word, arguments, [length of each blob]]
blobs     one after the other
```

Lengths are big-endian. A frame is read whole or not at all; one that does not add up ends its connection.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from struct import Struct
from typing import Any, Final, override

import orjson

_LENGTHS: Final = Struct(">II")
MAX_FRAME: Final = 64 << 20


class FrameError(Exception):
    """A frame that is too large or does not add up; its connection is of no more use."""


class NoJsonError(ValueError):
    """Arguments of a message that JSON cannot say: lone surrogates, bytes."""


@dataclass(frozen=True, slots=True)
class Message:
    """`number` pairs a call with its answer and is 0 in a notice; `word` says what is asked, or how it ended."""

    number: int
    word: str
    args: Sequence[Any] = field(default=(), repr=False)
    blobs: Sequence[bytes] = field(default=(), repr=False)

    @override
    def __repr__(self) -> str:
        return f"Message({self.number}, {self.word}, {sum(map(len, self.blobs))} bytes)"


def pack(message: Message) -> list[bytes]:
    """The frame of a message in pieces; NoJsonError where its arguments are none."""
    blobs = message.blobs
    try:
        head = orjson.dumps([message.number, message.word, message.args, [len(blob) for blob in blobs]])
    except TypeError as error:
        raise NoJsonError("arguments are no JSON") from error
    size = len(head) + sum(map(len, blobs))
    return [_LENGTHS.pack(size, len(head)) + head, *blobs]


class FrameReader:
    """Bytes in, messages out; `bound` is the largest frame that is read."""

    def __init__(self, bound: int = MAX_FRAME) -> None:
        self._bound = bound
        self._held = bytearray()

    def feed(self, data: bytes) -> Iterator[tuple[Message, int]]:
        """The messages that are whole now, each with its size; FrameError where one cannot be."""
        self._held += data
        at = 0
        while len(self._held) - at >= _LENGTHS.size:
            size, head = _LENGTHS.unpack_from(self._held, at)
            if size > self._bound or head > size:
                raise FrameError("a frame over its bounds")
            start, end = at + _LENGTHS.size, at + _LENGTHS.size + size
            if len(self._held) < end:
                break
            with memoryview(self._held) as view:
                message = _message(view[start : start + head], view[start + head : end])
            at = end
            yield message, size
        if at:
            del self._held[:at]


def _message(head: memoryview, rest: memoryview) -> Message:
    try:
        number, word, args, lengths = orjson.loads(head)
        sizes = [int(length) for length in lengths]
    except (ValueError, TypeError) as error:
        raise FrameError("a head that cannot be read") from error
    if not isinstance(number, int) or not isinstance(word, str) or not isinstance(args, list):
        raise FrameError("a head of another shape")
    if any(size < 0 for size in sizes) or sum(sizes) != len(rest):
        raise FrameError("blobs that do not add up")
    blobs, at = [], 0
    for size in sizes:
        blobs.append(bytes(rest[at : at + size]))
        at += size
    return Message(number, word, args, tuple(blobs))
