"""multipart/form-data, cut only at true delimiter lines (RFC 2046 §5.1.1, RFC 7578): files stay as they are.

A part's bytes are never decoded here; what may be read and changed is decided by its name and media type.
Bytes that belong to no part (a preamble, an epilogue) would pass unread, so that a body which has any is
refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, override
from urllib.parse import unquote_to_bytes

from gateway.context.objects import Limits
from gateway.errors import BodyError

_BOUNDARY: Final = re.compile(r"[0-9A-Za-z'()+_,./:=? -]{0,69}[0-9A-Za-z'()+_,./:=?-]")
_FIELD: Final = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(.*?)[ \t]*", re.DOTALL)
_PARAMETER: Final = re.compile(
    r';[ \t]*([!#$%&\'*+.^_`|~0-9A-Za-z-]+)[ \t]*=[ \t]*("(?:[^"\\]|\\.)*"|[^;"]*)[ \t]*', re.DOTALL
)
_IDENTITY: Final = frozenset({"", "7bit", "8bit", "binary"})
_MAX_HEADER_BYTES: Final = 16_384


@dataclass(frozen=True, slots=True)
class Part:
    """One part: `start..end` are its content's offsets in the body, `header_start` those of its header lines.

    `filename` is None where there is none; it is content as much as the bytes are.
    """

    name: str
    filename: str | None
    content_type: str
    headers: tuple[tuple[str, str], ...] = field(repr=False)
    header_start: int
    start: int
    end: int

    @override
    def __repr__(self) -> str:
        return f"Part({self.end - self.start} bytes)"


def boundary(content_type: str) -> str:
    """The boundary parameter of a Content-Type value; BodyError body.malformed if it is not usable."""
    kind, parameters = _parameters(content_type)
    value = parameters.get("boundary", "")
    if not kind.strip().lower().startswith("multipart/") or not _BOUNDARY.fullmatch(value):
        raise BodyError("body.malformed")
    return value


def parse(body: bytes, boundary: str, limits: Limits, *, form: bool = True) -> list[Part]:
    """The parts of a body; those of a `form` say how they are to be disposed of, others (RFC 2387) need not.

    Raises BodyError: body.malformed (no closing delimiter, bytes outside the parts, a bad header),
    body.too_many_nodes (more parts than `limits.max_objects`), encoding.unsupported (a part with a transfer
    or content coding).
    """
    mark = re.escape(b"--" + boundary.encode("ascii", "replace"))
    delimiter = re.compile(rb"(?:\r\n|\A)" + mark + rb"(--)?[ \t]*(?:\r\n|\Z)")
    parts: list[Part] = []
    match = delimiter.match(body)
    while match is not None and match[1] is None:
        begin = match.end()
        # the line end that closes this line may also open the next delimiter: an empty part has no blank
        # line then
        match = delimiter.search(body, begin - 2)
        if match is None or match.start() < begin:
            break
        if len(parts) >= limits.max_objects:
            raise BodyError("body.too_many_nodes")
        parts.append(_part(body, begin, match.start(), form=form))
    if match is None or match[1] is None or body[match.end() :].strip():
        raise BodyError("body.malformed")
    return parts


def rebuild(body: bytes, parts: Sequence[Part], contents: Mapping[int, bytes]) -> bytes:
    """The body with other contents for the parts at these indexes; every other byte stays."""
    pieces: list[bytes] = []
    at = 0
    for index, part in enumerate(parts):
        if index in contents:
            pieces += (body[at : part.start], contents[index])
            at = part.end
    pieces.append(body[at:])
    return b"".join(pieces)


def _part(body: bytes, begin: int, end: int, *, form: bool) -> Part:
    if body.startswith(b"\r\n", begin):
        raise BodyError("body.malformed")  # a part of a form has a name, so it has a header
    stop = body.find(b"\r\n\r\n", begin, end)
    if stop < 0 or stop - begin > _MAX_HEADER_BYTES:
        raise BodyError("body.malformed")
    headers = tuple(_header(line) for line in body[begin:stop].split(b"\r\n"))
    fields = dict(headers)
    if len(fields) != len(headers):
        raise BodyError("body.malformed")
    if fields.get("content-transfer-encoding", "").lower() not in _IDENTITY or "content-encoding" in fields:
        raise BodyError("encoding.unsupported")
    kind, parameters = _parameters(fields.get("content-disposition", ""))
    disposed = kind.strip().lower()
    if disposed not in {"form-data", "attachment", "file"} and (form or disposed not in {"", "inline"}):
        raise BodyError("body.malformed")
    filename = parameters.get("filename*", parameters.get("filename"))
    return Part(
        parameters.get("name", ""), filename, fields.get("content-type", ""), headers, begin, stop + 4, end
    )


def _header(line: bytes) -> tuple[str, str]:
    match = _FIELD.fullmatch(line)
    if match is None:  # folded lines too: the readers of this world do not agree on them
        raise BodyError("body.malformed")
    return match[1].decode("ascii").lower(), match[2].decode("utf-8", "surrogateescape")


def _parameters(value: str) -> tuple[str, dict[str, str]]:
    """The value and parameters of a header; a parameter that is given twice is malformed."""
    kind = value.partition(";")[0]
    at = len(kind)
    parameters: dict[str, str] = {}
    while at < len(value):
        match = _PARAMETER.match(value, at)
        if match is None or match[1].lower() in parameters:
            raise BodyError("body.malformed")
        parameters[match[1].lower()] = _unquoted(match[1], match[2].strip())
        at = match.end()
    return kind, parameters


def _unquoted(name: str, raw: str) -> str:
    if raw.startswith('"'):
        return re.sub(r"\\(.)", r"\1", raw[1:-1], flags=re.DOTALL)
    if name.endswith("*"):  # RFC 8187: charset'language'percent-encoded
        return unquote_to_bytes(raw.rpartition("'")[2]).decode("utf-8", "surrogateescape")
    return raw
