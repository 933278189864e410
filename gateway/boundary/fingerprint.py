"""Whose text is it: keyed fingerprints of the lines and clauses of every project, and the look-up.

A fingerprint is a keyed 64-bit BLAKE2b of a unit's letters (see `units`), so an index that is stolen says
nothing without the key. A unit that two projects have is common from then on and speaks for nobody:
licences, imports, idioms and the boilerplate of tools are learnt this way and need no list.

One unit proves little, a run of them a lot. A unit that follows its neighbour here as it does in the file
it came from counts with all its letters, a lonely one with a third; a project is named from `ENOUGH`
letters on. So an excerpt of some eight lines is enough, and so is one long sentence; a handful of idioms
from all over a project is not.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from gateway.boundary.units import Cut, Unit, cut, place, texts

ENOUGH = 60
"""Letters of evidence from which a text is attributed to a project."""
LONE_SHARE = 3
"""A unit without a neighbour from the same place counts this many times less."""
UNIT_MAX = 60
"""Letters that one unit can count for."""
PLENTY = 400
"""Letters of evidence that are counted; more makes nothing surer."""
NEAR = 4
"""How many units of the source may lie between two neighbours."""
GAP = 4
"""Lines between two matches that are taken to belong to them: short lines have no unit of their own."""

REPEATED = 8
"""Files of one project from which a unit is its boilerplate, such as a licence's head, and no file's own."""

COMMON = 0
_ORDINAL_BITS = 24
_SOURCE_BITS = 24
_ORDINALS = (1 << _ORDINAL_BITS) - 1
_SOURCES = (1 << _SOURCE_BITS) - 1
_PROJECT_SHIFT = _ORDINAL_BITS + _SOURCE_BITS

PRINT_BYTES = 8
"""Bytes of one fingerprint."""


@dataclass(frozen=True, slots=True)
class Match:
    """Text that belongs to a project. `share` is the part of the text's distinctive letters that matched (0 to 1).

    `spans` are half-open, in characters of the text as given; `sources` are the names under which the
    matched files were indexed (file digests, never paths).
    """

    project: str
    share: float
    letters: int
    spans: tuple[tuple[int, int], ...]
    sources: tuple[str, ...]


class _Hit(NamedTuple):
    unit: Unit
    source: int  # the project is part of it: number << 24 | source
    ordinal: int


class FingerprintIndex:
    """The fingerprints of all projects of one installation, in memory; about 120 bytes a fingerprint."""

    def __init__(self, key: bytes) -> None:
        """`key` is 16 to 64 secret bytes of this installation; other keys give unrelated fingerprints."""
        if not 16 <= len(key) <= 64:
            raise ValueError("a fingerprint key has 16 to 64 bytes")
        self._blank = hashlib.blake2b(digest_size=8, key=key)
        # fingerprint -> project << 48 | source << 24 | ordinal; 0 where it is common
        self._owners: dict[bytes, int] = {}
        self._projects: list[str] = [""]
        self._sources: list[str] = [""]
        self._numbers: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._owners)

    def add(self, project: str, text: str, *, source: str = "") -> int:
        """Index a text of a project (see `add_prints`); how many units that changed."""
        return len(self.add_prints(project, self.prints(text), source=source))

    def prints(self, text: str) -> list[bytes]:
        """The fingerprints of a text's units, in the order that gives them their neighbours."""
        blank, found = self._blank, []
        for letters in texts(cut(_bytes(text))):
            hashed = blank.copy()
            hashed.update(letters)
            found.append(hashed.digest())
        return found

    def add_prints(self, project: str, prints: Sequence[bytes], *, source: str = "") -> list[bytes]:
        """Make fingerprints a project's; those that changed. What another project has becomes common.

        `source` names the text in later answers: a digest, not a path. A text without one was only seen in
        traffic, and takes nothing from files that were indexed: else a project could unown another's text by
        sending it line by line.
        """
        shift = _PROJECT_SHIFT
        owner = self._number(project) << shift | self._source(source) << _ORDINAL_BITS
        owners, changed = self._owners, []
        for ordinal, print_ in enumerate(prints):
            known = owners.get(print_)
            if known is None:
                owners[print_] = owner | min(ordinal, _ORDINALS)
            elif not known or known >> shift == owner >> shift:
                continue
            elif source and not known >> _ORDINAL_BITS & _SOURCES:
                owners[print_] = owner | min(ordinal, _ORDINALS)
            elif source or not known >> _ORDINAL_BITS & _SOURCES:
                owners[print_] = COMMON
            else:
                continue
            changed.append(print_)
        return changed

    def add_files(self, project: str, files: Sequence[tuple[str, Sequence[bytes]]]) -> None:
        """Index the files of a project, (source, fingerprints) each; what stands in many of them says nothing."""
        for source, prints in files:
            self.add_prints(project, prints, source=source)
        counts = Counter(print_ for _, prints in files for print_ in set(prints))
        self._owners.update(dict.fromkeys((p for p, n in counts.items() if n >= REPEATED), COMMON))

    def add_common(self, text: str) -> None:
        """Index a text that belongs to nobody: a licence, the prompt of a tool."""
        self._owners.update(dict.fromkeys(self.prints(text), COMMON))

    def look_up(self, text: str, *, enough: int = ENOUGH) -> tuple[Match, ...]:
        """The projects that a text's lines belong to, the strongest first; empty where the evidence is thin."""
        data = _bytes(text)
        parts = cut(data)
        known = self._known(texts(parts))
        if len(known) * UNIT_MAX < enough or sum(map(len, known)) < enough:
            return ()
        by_project: dict[int, list[_Hit]] = defaultdict(list)
        for unit in place(parts, known.keys()):
            owner = known[unit.letters]
            by_project[owner >> _PROJECT_SHIFT].append(_Hit(unit, owner >> _ORDINAL_BITS, owner & _ORDINALS))
        total = _total_letters(parts)
        found = [
            self._match(number, mine, data, parts, total, letters)
            for number, mine in by_project.items()
            if (letters := evidence(mine)) >= enough
        ]
        return tuple(sorted(found, key=lambda m: (-m.letters, m.project)))

    def _known(self, units: Sequence[bytes]) -> dict[bytes, int]:
        """The owners of those units that belong to one project. The loop that every byte of traffic goes through."""
        blank, owners, known = self._blank, self._owners, {}
        for letters in units:
            hashed = blank.copy()
            hashed.update(letters)
            if owner := owners.get(hashed.digest()):
                known[letters] = owner
        return known

    def _number(self, project: str) -> int:
        if not project:
            raise ValueError("a text without a project has no owner")
        if project not in self._numbers:
            self._numbers[project] = len(self._projects)
            self._projects.append(project)
        return self._numbers[project]

    def _source(self, source: str) -> int:
        if not source:
            return 0
        if self._sources[-1] != source and len(self._sources) <= _SOURCES:
            self._sources.append(source)
        return len(self._sources) - 1

    def _match(
        self, number: int, hits: Sequence[_Hit], data: bytes, parts: Cut, total: int, letters: int
    ) -> Match:
        matched = sum(len(u) for u in {h.unit.letters for h in hits})
        return Match(
            self._projects[number],
            min(1.0, matched / max(total, 1)),
            letters,
            _characters(data, _merge([h.unit for h in hits], parts)),
            tuple(sorted({self._sources[h.source & _SOURCES] for h in hits} - {""})),
        )


def evidence(hits: Sequence[_Hit]) -> int:
    """Letters of evidence that hits of one project are worth, counted up to PLENTY; the same unit twice is one."""
    worth: dict[bytes, int] = {}
    total, before, last = 0, False, len(hits) - 1
    for position, hit in enumerate(hits):
        after = position < last and _neighbours(hit, hits[position + 1])
        letters = hit.unit.letters
        full = min(len(letters), UNIT_MAX)
        value = full if before or after or full == UNIT_MAX else full // LONE_SHARE
        before = after
        had = worth.get(letters, 0)
        if value > had:
            worth[letters] = value
            total += value - had
            if total >= PLENTY:
                break
    return total


def _neighbours(a: _Hit, b: _Hit) -> bool:
    """Whether two hits stand near each other in the order of their source, here and there."""
    here = b.unit.start - a.unit.start
    there = b.ordinal - a.ordinal
    return (
        a.source == b.source
        and a.unit.letters != b.unit.letters
        and abs(a.unit.line - b.unit.line) <= GAP + 1
        and 0 < abs(there) <= NEAR
        and (here > 0) == (there > 0)
    )


def _total_letters(parts: Cut) -> int:
    return sum(len(line) for line in set(parts.letters) if len(line) >= 12)


def _merge(units: Sequence[Unit], parts: Cut) -> list[tuple[int, int]]:
    """Byte spans of matches, joined where only a few lines, or only part of one line, lie between."""
    spans: list[tuple[int, int]] = []
    last_line = -1
    for unit in sorted(units, key=lambda u: u.start):
        if spans and unit.line - last_line <= GAP:
            spans[-1] = (spans[-1][0], max(spans[-1][1], unit.end))
        else:
            spans.append((unit.start, unit.end))
        last_line = unit.line
    return spans


def _characters(data: bytes, spans: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    if data.isascii():
        return tuple(spans)
    found, byte, character = [], 0, 0
    for start, end in spans:
        character += len(data[byte:start].decode("utf-8", "surrogatepass"))
        length = len(data[start:end].decode("utf-8", "surrogatepass"))
        found.append((character, character + length))
        character, byte = character + length, end
    return tuple(found)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
