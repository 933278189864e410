"""Whose text is it: the fingerprints of every project's files and traffic, and the look-up.

What two projects have is common from then on and speaks for nobody: licences, idioms and the boilerplate of tools are
learnt this way and need no list. See `shingles` for what a fingerprint is, `evidence` for when a text is attributed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import orjson
from numpy.typing import NDArray

from gateway.boundary.evidence import Diagonals, Found, diagonals, enough, weigh
from gateway.boundary.reading import Reader, batches
from gateway.boundary.shingles import Printer, PrintKey
from gateway.boundary.spans import characters, lines_of
from gateway.boundary.table import (
    COMMON,
    MISSING,
    PrintTable,
    as_part,
    enter,
    filter_of,
    merged,
    owner_of,
    owners_at,
    passes,
    project_of,
    source_of,
    sources_of,
)
from gateway.boundary.words import U64, Hashes, lowered

Prints = NDArray[np.void]
"""Fingerprints of a text, of `shingles.PRINT`."""

_RECENT: Final = 200_000  # fingerprints learnt one by one until they are merged into the table
_COVERED: Final = 0.8  # share of a text's words from which names need not be looked past
_STRETCHES: Final = (1 << 23) - 1
_WORD_GAP, _SHAPE_GAP = 48, 96


@dataclass(frozen=True, slots=True)
class Match:
    """Text that belongs to a project, by so many `bits` of evidence; the spans cover a `share` of it (0 to 1).

    `spans` are half-open, in characters of the text as given; `sources` are the names under which the
    matched files were indexed (file digests, never paths).
    """

    project: str
    share: float
    bits: int
    spans: tuple[tuple[int, int], ...]
    sources: tuple[str, ...]


class FingerprintIndex:
    """The fingerprints of all projects of one installation: 17 bytes each, and some 150 for those of this day."""

    def __init__(self, key: bytes) -> None:
        """`key` is 16 to 64 secret bytes of this installation; other keys give unrelated fingerprints."""
        self._printer = Printer(PrintKey(key))
        self._table = PrintTable()  # of files; may be mapped
        self._traffic = PrintTable()
        self._recent: dict[int, int] = {}  # counts before both
        self._fresh = filter_of(np.zeros(0, U64), 1 << 19)
        self._projects: list[str] = [""]
        self._sources: list[str] = [""]
        self._numbers: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._table) + len(self._traffic) + len(self._recent)

    # -- kept and shared ---------------------------------------------------------------------------------------------

    def frozen(self) -> list[bytes | memoryview]:
        """What was loaded of files, in parts that `thaw` reads: to be written down, and mapped by many processes."""
        names = orjson.dumps([self._projects, self._sources])
        names += b" " * (-len(names) % 8)
        return [
            len(names).to_bytes(8, "little"),
            len(self._table).to_bytes(8, "little"),
            names,
            *self._table.parts(),
        ]

    @classmethod
    def thaw(cls, key: bytes, data: memoryview) -> FingerprintIndex:
        """The index whose `frozen` parts these bytes are. Nothing is copied; they must stay as they are."""
        index = cls(key)
        size, count = int.from_bytes(data[:8], "little"), int.from_bytes(data[8:16], "little")
        index._projects, index._sources = orjson.loads(data[16 : 16 + size])
        index._numbers = {name: n for n, name in enumerate(index._projects) if name}
        index._table = PrintTable.of(data[16 + size :], count)
        return index

    # -- what is known -----------------------------------------------------------------------------------------------

    def prints(self, text: str) -> Prints:
        """The fingerprints of a text, as they are kept."""
        return self._printer.prints(text)

    def add(self, project: str, text: str, *, source: str = "") -> int:
        """Index a text of a project (see `add_prints`); how many fingerprints that changed."""
        return len(self.add_prints(project, self.prints(text), source=source))

    def add_prints(self, project: str, prints: Prints, *, source: str = "") -> Prints:
        """Make fingerprints a project's; those that changed. What another project has becomes common.

        `source` names the text in later answers: a digest, not a path. A text without one was only seen in
        traffic, and takes nothing from files that were indexed.
        """
        owner = owner_of(self._number(project), self._source(source))
        known = self._find(prints["print"])
        # Nothing changes what is common, nor what the project has already.
        open_ = np.flatnonzero((known != COMMON) & (known >> U64(24) != U64(owner >> 24)))
        owners = owners_at(owner, _places(prints, source))
        recent, changed = self._recent, []
        for n, print_ in zip(open_.tolist(), prints["print"][open_].tolist(), strict=True):
            if (after := _after(recent.get(print_, int(known[n])), int(owners[n]))) is not None:
                recent[print_] = after
                changed.append(n)
        found = prints[changed]
        enter(self._fresh, found["print"])
        if len(recent) >= _RECENT:
            self._settle()
        return found

    def add_files(self, project: str, files: Sequence[tuple[str, Prints]]) -> None:
        """Index the files of a project, (source, fingerprints) each; what stands in many of them says nothing."""
        self.load([(project, source, prints) for source, prints in files])

    def load(self, texts: Iterable[tuple[str, str, Prints]]) -> None:
        """Index many texts at once: (project, source, fingerprints); those without a source were seen in traffic."""
        files, traffic = (
            [(self._table.prints, self._table.owners)],
            [(self._traffic.prints, self._traffic.owners)],
        )
        for project, source, prints in texts:
            owner = owner_of(self._number(project), self._source(source))
            part = (prints["print"].astype(U64), owners_at(owner, _places(prints, source)))
            (files if source else traffic).append(part)
        self._table = merged(files) if len(files) > 1 else self._table
        self._traffic = merged(traffic) if len(traffic) > 1 else self._traffic
        self._settle()

    def _settle(self) -> None:
        """Merge what was learnt one by one into the table of traffic, but for what files have, which counts first."""
        prints, owners = as_part(self._recent)
        free = self._table.find(prints) == U64(MISSING)
        self._traffic = merged([(prints[free], owners[free]), (self._traffic.prints, self._traffic.owners)])
        self._recent = dict(zip(prints[~free].tolist(), owners[~free].tolist(), strict=True))

    def add_common(self, text: str) -> None:
        """Index a text that belongs to nobody: a licence, the prompt of a tool."""
        prints = self.prints(text)["print"]
        self._recent.update(dict.fromkeys(prints.tolist(), COMMON))
        enter(self._fresh, prints)

    def _find(self, prints: Hashes) -> Hashes:
        """The owner of each fingerprint; what was learnt last counts."""
        found = self._table.find(prints)
        if len(self._traffic):
            strange = np.flatnonzero(found == U64(MISSING))
            found[strange] = self._traffic.find(prints[strange])
        recent = self._recent
        if recent:
            likely = np.flatnonzero(passes(self._fresh, prints))
            for n, print_ in zip(likely.tolist(), prints[likely].tolist(), strict=True):
                if (owner := recent.get(print_)) is not None:
                    found[n] = owner
        return found

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
        if self._sources[-1] != source:
            self._sources.append(source)
        return len(self._sources) - 1

    # -- the look-up -------------------------------------------------------------------------------------------------

    def look_up(self, text: str, *, least: float = 0.0) -> tuple[Match, ...]:
        """The projects that a text belongs to, the strongest first; empty where the evidence is thin.

        `least` replaces the bits that are asked for, where it is given.
        """
        return self.look_up_all([text], least=least)[0]

    def look_up_all(self, texts: Sequence[str], *, least: float = 0.0) -> list[tuple[Match, ...]]:
        """`look_up` of many texts, which costs less than one by one."""
        found: list[tuple[Match, ...]] = [()] * len(texts)
        if not len(self):
            return found
        data = [lowered(text) for text in texts]
        for numbers in batches(data):
            some = [texts[n] for n in numbers]
            for place, matches in self._look_up(some, [data[n] for n in numbers], least).items():
                matches.sort(key=lambda match: (-match.bits, match.project))
                found[numbers[place]] = tuple(matches)
        return found

    def _look_up(self, texts: Sequence[str], data: Sequence[bytes], least: float) -> dict[int, list[Match]]:
        reader = Reader(self._printer, self._find, data)
        kinds = [diagonals(reader.words(), _WORD_GAP)]
        undecided = reader.uncovered() > 1 - _COVERED
        if undecided.any():
            kinds.append(diagonals(reader.shapes(undecided), _SHAPE_GAP))
        found = weigh(kinds, np.full(len(texts), least) if least else enough(reader.counts))
        matches: dict[int, list[Match]] = {}
        if not len(found.text):
            return matches
        spans = lines_of(found, kinds, reader)
        sources = self._sources_of(found, kinds)
        members = zip(
            found.text.tolist(), found.project.tolist(), found.bits.tolist(), spans, sources, strict=True
        )
        for text, project, bits, covered, names in members:
            size = sum(end - start for start, end in covered)
            match = Match(
                self._projects[project],
                min(1.0, size / max(len(data[text]), 1)),
                round(bits),
                characters(texts[text], data[text], covered),
                names,
            )
            matches.setdefault(text, []).append(match)
        return matches

    def _sources_of(self, found: Found, kinds: Sequence[Diagonals]) -> list[tuple[str, ...]]:
        """The names of what each finding was matched with."""
        pairs = [
            of << 24 | sources_of(kind.owner[marked])
            for of, marked, kind in zip(found.of, found.marked, kinds, strict=True)
        ]
        names: list[set[str]] = [set() for _ in found.text]
        for pair in np.unique(np.concatenate(pairs)).tolist():
            names[pair >> 24].add(self._sources[pair & 0xFFFFFF])
        return [tuple(sorted(some - {""})) for some in names]


def _places(prints: Prints, source: str) -> NDArray[np.uint32]:
    """The places of fingerprints in their source.

    What traffic brought has no source of its own: each text gets a stretch of places by its first fingerprint, so that
    two texts do not look like one.
    """
    places: NDArray[np.uint32] = prints["at"]
    if source or not len(prints):
        return places
    return places + np.uint32(int(prints["print"][0]) >> 16 & _STRETCHES)


def _after(known: int, owner: int) -> int | None:
    """What a fingerprint's owner is once another text has it too; None where that changes nothing."""
    if known == MISSING:
        return owner
    if known == COMMON or project_of(known) == project_of(owner):
        return None
    if source_of(owner) and not source_of(known):
        return owner
    return COMMON if source_of(owner) or not source_of(known) else None
