"""A process that reads the text of one PDF and ends: the document on standard input, JSON on standard output.

`{"text": str, "whole": bool}`: everything that the document says in words, and whether that is all there is. Pictures,
embedded files, forms of another format and scripts are not read; a document that has any is not whole, nor is one with
streams that no table leads to (earlier revisions) or with more text than is given out. What cannot be parsed gives
`{"text": "", "whole": false}`.
"""

from __future__ import annotations

import io
import json
import logging
import re
import resource
import sys
from typing import Any, Final

MAX_PAGES: Final = 2000
MAX_CHARACTERS: Final = 8 << 20
_MEMORY: Final = 1 << 30
_RUNS: Final = re.compile(rb"[\t\n\r\x20-\x7e]{6,}")
_WIDE: Final = re.compile(rb"(?:[\x20-\x7e]\x00){6,}|(?:\x00[\x20-\x7e]){6,}")  # UTF-16 of either order
_UNREAD: Final = frozenset(
    {"/EmbeddedFiles", "/EmbeddedFile", "/XFA", "/JavaScript", "/JS", "/RichMedia", "/Movie", "/Image"}
)
_NUMBERS: Final = re.compile(rb"\[[\d\s.+-]+\]|\d{10} \d{5} [nf]")  # widths and tables: never words
_STREAM_END: Final = re.compile(rb"endstream\b")
_CROSS_REFERENCES: Final = re.compile(rb"/Type\s*/XRef\b")


def read(data: bytes) -> tuple[str, bool]:
    """(text, whether it is all) of a PDF. Raises whatever the library raises."""
    from pypdf import PdfReader  # noqa: PLC0415 - the extra is installed where this process is started

    reader = PdfReader(io.BytesIO(data), strict=True)
    if reader.is_encrypted or len(reader.pages) > MAX_PAGES:
        return "", False
    pieces: list[str] = []
    whole = True
    for number, page in enumerate(reader.pages):
        pieces.append(page.extract_text() or "")
        whole &= not _pictures(page) and sum(map(len, pieces)) <= MAX_CHARACTERS
        if sum(map(len, pieces)) > MAX_CHARACTERS:
            break
        whole &= number < MAX_PAGES
    names, strings, streams = _objects(reader)
    beside = len(_STREAM_END.findall(data)) - len(_CROSS_REFERENCES.findall(data)) > streams
    text = "\n".join([*pieces, *strings, *_runs(_NUMBERS.sub(b"", data))])  # comments, what no table leads to
    whole = whole and len(text) <= MAX_CHARACTERS and not beside and not names & _UNREAD
    return text[:MAX_CHARACTERS], whole


def _runs(data: bytes) -> list[str]:
    """What of bytes reads like text."""
    wide = [run.replace(b"\0", b"") for run in _WIDE.findall(data)] if b"\0" in data else []
    return [run.decode("ascii") for run in (*_RUNS.findall(data), *wide)]


def _pictures(page: Any) -> bool:
    return any(True for _ in page.images.keys())  # noqa: SIM118 - a mapping of its own that is costly to look into


def _objects(reader: Any) -> tuple[set[str], list[str], int]:
    """Names of members and every string in all objects (annotations, metadata, unused ones); how many are streams."""
    from pypdf.generic import IndirectObject  # noqa: PLC0415 - as above

    names: set[str] = set()
    strings: list[str] = []
    streams = 0
    for generation, numbers in reader.xref.items():
        for number in numbers:
            found = reader.get_object(IndirectObject(number, generation, reader))
            streams += hasattr(found, "get_data")
            _visit(found, names, strings)
    for number in reader.xref_objStm:
        _visit(reader.get_object(IndirectObject(number, 0, reader)), names, strings)
    _visit(reader.trailer, names, strings)
    return names, strings, streams


def _visit(found: Any, names: set[str], strings: list[str]) -> None:
    todo = [found]
    while todo:
        value = todo.pop()
        if isinstance(value, dict):
            names.update(map(str, value.keys()))
            names.update(str(v) for v in value.values() if isinstance(v, str) and str(v).startswith("/"))
            todo += list(dict.values(value))
            if hasattr(value, "get_data") and value.get("/Subtype") != "/Image":
                strings += _runs(value.get_data())  # streams that no page shows hold text as well
        elif isinstance(value, list):
            todo += list(value)
        elif isinstance(value, (str, bytes)) and not str(value).startswith("/"):
            strings.append(value.decode("latin-1") if isinstance(value, bytes) else str(value))


def main(source: Any, sink: Any) -> None:
    """Read, answer, end."""
    logging.disable(logging.CRITICAL)  # the library's messages quote the document
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    try:
        text, whole = read(source.read())
    except Exception:  # noqa: BLE001 - whatever it is, the document counts as unread
        text, whole = "", False
    sink.write(json.dumps({"text": text, "whole": whole}).encode())


if __name__ == "__main__":
    main(sys.stdin.buffer, sys.stdout.buffer)
