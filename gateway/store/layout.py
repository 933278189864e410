"""A record as a list of parts that are stored once.

Agents resend their history, so record N+1 repeats nearly all parts of record N. Parts of at least
`SHARED` bytes lie in a table of their own and are named by number; numbers of one request are handed out
in order, so that long stretches of old parts shrink to one *run* (first number, count, separator). A
record of turn N+1 therefore costs a few bytes for its whole history and the bytes of what is new.

Layout grammar, integers as LEB128: `0 length bytes` text as it is; `1 first count length separator` the
parts first..first+count-1 with the separator between them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from gateway.errors import VerificationError

SHARED = 64
"""Bytes from which a part is worth a row of its own."""

type Piece = bytes | int
"""Text that stands in the layout itself, or the number of a shared part."""

_TEXT, _RUN = 0, 1


def _number(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _merge(pieces: Sequence[Piece]) -> list[Piece]:
    """The same pieces with neighbouring texts joined and empty ones gone."""
    merged: list[Piece] = []
    for piece in pieces:
        if isinstance(piece, bytes) and merged and isinstance(merged[-1], bytes):
            merged[-1] += piece
        elif piece != b"":
            merged.append(piece)
    return merged


def encode(pieces: Sequence[Piece]) -> bytes:
    """The layout of a record."""
    merged, out, at = _merge(pieces), bytearray(), 0
    while at < len(merged):
        piece = merged[at]
        if isinstance(piece, bytes):
            out += bytes([_TEXT]) + _number(len(piece)) + piece
            at += 1
            continue
        count, separator, at = _run(merged, at, piece)
        out += bytes([_RUN]) + _number(piece) + _number(count) + _number(len(separator)) + separator
    return bytes(out)


def _run(merged: Sequence[Piece], at: int, first: int) -> tuple[int, bytes, int]:
    """(count, separator, index behind it) of the longest run that starts at `at`."""
    following = merged[at + 1] if at + 1 < len(merged) else 0
    separator, step = (following, 2) if isinstance(following, bytes) else (b"", 1)
    count, end = 1, at + 1
    while at + step * count < len(merged) and merged[at + step * count] == first + count:
        if separator and merged[at + step * count - 1] != separator:
            break
        count, end = count + 1, at + step * count + 1
    return (count, separator, end) if count > 1 else (1, b"", at + 1)


def decode(layout: bytes, part: Callable[[int], bytes]) -> bytes:
    """The record that a layout describes; VerificationError where it is damaged. `part` gives a shared part."""
    out: list[bytes] = []
    at = 0
    try:
        while at < len(layout):
            code, at = layout[at], at + 1
            if code == _TEXT:
                text, at = _text(layout, at)
                out.append(text)
            elif code == _RUN:
                first, at = _read(layout, at)
                count, at = _read(layout, at)
                separator, at = _text(layout, at)
                out.append(separator.join(part(number) for number in range(first, first + count)))
            else:
                raise VerificationError("layout.damaged", "a stored record has an unknown part")
    except IndexError as error:
        raise VerificationError("layout.damaged", "a stored record ends early") from error
    return b"".join(out)


def runs(layout: bytes) -> Iterator[tuple[int, int]]:
    """(first, count) of every run of shared parts; VerificationError where the layout is damaged."""
    found: list[tuple[int, int]] = []

    def note(number: int) -> bytes:
        found.append((number, 1))
        return b""

    decode(layout, note)
    yield from found


def _read(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 56:
            raise VerificationError("layout.damaged", "a stored record holds a number that is too large")


def _text(data: bytes, at: int) -> tuple[bytes, int]:
    length, at = _read(data, at)
    if at + length > len(data):
        raise VerificationError("layout.damaged", "a stored record ends early")
    return data[at : at + length], at + length
