"""Where a match stands: from the bytes that fingerprints cover to what a reader would call the copied text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from gateway.boundary.evidence import Run

GAP: Final = 4
"""Lines between two matches that are taken to belong to them: not every line has a fingerprint that was kept."""
REACH: Final = 160
"""Bytes up to the end of a line that are taken along; in a longer line only the rest of the clause is."""

_CLAUSE: Final = re.compile(rb"[.;:!?](?=\s)|\n")


def widened(data: bytes, runs: Sequence[Run]) -> list[tuple[int, int]]:
    """Runs in the order of the text as spans: whole lines, and the few lines between two runs.

    A fingerprint covers several words and not each is kept, so what was copied may begin before the first and
    end after the last: a run that is not exact takes a line more on either side.
    """
    spans: list[tuple[int, int]] = []
    for run in runs:
        if spans and run.end <= spans[-1][1]:
            continue
        start, end = _before(data, run.start, run.exact), _after(data, run.end, run.exact)
        if spans and (start <= spans[-1][1] or data.count(b"\n", spans[-1][1], start) <= GAP):
            spans[-1] = (spans[-1][0], max(spans[-1][1], end))
        else:
            spans.append((start, end))
    return spans


def _before(data: bytes, start: int, exact: bool) -> int:
    line = data.rfind(b"\n", 0, start) + 1
    if start - line <= REACH:
        above = data.rfind(b"\n", 0, max(line - 1, 0)) + 1
        more = not exact and line and line - above <= REACH and data[above : line - 1].strip()
        return above if more else line
    clauses = [m.end() for m in _CLAUSE.finditer(data, start - REACH, start)]
    return clauses[-1] if clauses else start


def _after(data: bytes, end: int, exact: bool) -> int:
    line = data.find(b"\n", end)
    line = len(data) if line < 0 else line
    if line - end <= REACH:
        below = data.find(b"\n", line + 1)
        below = len(data) if below < 0 else below
        return below if not exact and below - line <= REACH and data[line:below].strip() else line
    clause = _CLAUSE.search(data, end, end + REACH)
    return clause.end() if clause else end


def characters(text: str, data: bytes, spans: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Spans of bytes of the UTF-8 form of a text as spans of its characters. `data` has the length of that form."""
    if len(data) == len(text):
        return tuple(spans)
    whole = text.encode("utf-8", "surrogatepass")
    found, byte, character = [], 0, 0
    for start, end in spans:
        character += _length(whole[byte:start])
        length = _length(whole[start:end])
        found.append((character, character + length))
        character, byte = character + length, end
    return tuple(found)


def _length(data: bytes) -> int:
    """Characters that begin in these bytes."""
    return len(data) - sum(map(data.count, _CONTINUATIONS))


_CONTINUATIONS: Final = [bytes([b]) for b in range(0x80, 0xC0)]
