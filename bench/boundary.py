"""Whose text is it, on open packages as projects: recall of excerpts, edges, false attributions, speed, size.

Each split has ten packages as projects and others as content that is nobody's, in objects of 40 lines. The thresholds
of `gateway.boundary.evidence` were set on the development split; what counts is the held-out one. Packages share
licences, idioms and some code; nothing of it is left out.
"""

from __future__ import annotations

import json
import random
import re
import resource
import textwrap
import time
from collections.abc import Callable, Iterator, Sequence

from bench.packages import FOLDER, SPLITS, packages
from bench.table import Suite
from gateway.boundary import FingerprintIndex

KEY = b"k" * 32
LINES = (5, 8, 12, 20, 50, 200)
OBJECT_LINES = 40
PER_CELL = 25
_COPIED, _AROUND = 20, 20  # lines of a copy, and of what is not a copy on either side of it
_SAME = 5  # lines in a row that two authors do not write alike
_SMALL = 600  # characters of a small object
_MOST_PROJECT, _MOST_NEUTRAL = 3_000_000, 1_500_000

_KEYWORDS = (
    "False None True and as assert async await bool boolean break case catch class cls const continue def default"
    " del dict do elif else enum except export exports extends false finally for from function get global if import in"
    " instanceof int interface is lambda len let list module new nonlocal not null number or pass print private public"
    " raise range require return self set static str string super switch this throw true try type typeof undefined var"
    " void while with yield"
)
_KEPT_WORDS = frozenset(_KEYWORDS.split())
_WORD = re.compile(r"\b[A-Za-z_]\w*\b")


def numbered(text: str) -> str:
    return "\n".join(f"{n:6}\u2192{line}" for n, line in enumerate(text.split("\n"), 101))


def placed(text: str) -> str:
    return "\n".join(f"src/app/thing.py:{n}:{line}" for n, line in enumerate(text.split("\n"), 101))


def patched(text: str) -> str:
    return "@@ -1,9 +1,9 @@\n" + "\n".join(
        f"{'+-  '[n % 4]}{line}" for n, line in enumerate(text.split("\n"))
    )


def spaced(text: str) -> str:
    return re.sub(r" *([=,:()]) *", r" \1 ", text)


def joined(text: str) -> str:
    """Calls over several lines brought onto one, as formatters do."""
    return re.sub(r"([(,])\n\s+", r"\1 ", text)


def wrapped(text: str) -> str:
    """Every line broken at 60 columns."""
    found = []
    for line in text.split("\n"):
        indent = " " * (len(line) - len(line.lstrip()) + 4)
        found += textwrap.wrap(line, 60, subsequent_indent=indent) or [""]
    return "\n".join(found)


def three_renamed(text: str) -> str:
    """The three longest names changed throughout."""
    names = set(re.findall(r"\b(_?[a-z]{4,}(?:_[a-z]+)*)\b", text)) - _KEPT_WORDS
    for number, name in enumerate(sorted(names, key=lambda n: (len(n), n))[-3:]):
        text = re.sub(rf"\b{name}\b", f"other_{'abc'[number]}", text)
    return text


def locals_renamed(text: str) -> str:
    """Every name changed that is assigned, passed, defined or looped over: in prose, every word before a comma, too."""
    names = set(re.findall(r"\b([A-Za-z_]\w*)\s*(?:=(?!=)|:\s|,|\))", text))
    names |= set(re.findall(r"\b(?:def|class|function|var|let|const|for|as)\s+([A-Za-z_]\w*)", text))
    new = {name: f"q_{n}" for n, name in enumerate(sorted(names - _KEPT_WORDS))}
    return _WORD.sub(lambda m: new.get(m.group(), m.group()), text)


CARRIERS: dict[str, Callable[[str], str]] = {
    "plain": str,
    "re-indented": lambda t: textwrap.indent(textwrap.dedent(t), "      "),
    "numbered": numbered,
    "grep -n": placed,
    "patch": patched,
    "JSON": lambda t: json.dumps({"content": t}),
    "spaced": spaced,
    "joined": joined,
    "wrapped": wrapped,
    "3 names": three_renamed,
    "all locals": locals_renamed,
}

Corpus = dict[str, list[str]]


def build(corpus: Corpus) -> FingerprintIndex:
    index = FingerprintIndex(KEY)
    index.load(
        (project, f"{project}-{n}", index.prints(text))
        for project, texts in corpus.items()
        for n, text in enumerate(texts)
    )
    return index


def run(rounds: int) -> Iterator[Suite]:
    """Five tables a split; `rounds` excerpts times 25 a cell. Nothing where the packages were not fetched."""
    if not FOLDER.is_dir():
        suite = Suite("boundary: not measured, run `make bench-boundary`, which fetches the packages", ("",))
        suite.add("")
        yield suite
        return
    for split in SPLITS:
        corpus = {p.name: p.texts(_MOST_PROJECT) for p in packages(split, "project")}
        neutral = {p.name: p.texts(_MOST_NEUTRAL) for p in packages(split, "neutral")}
        yield _size(split, corpus, neutral)
        index = build(corpus)
        yield _recall(split, index, corpus, rounds * PER_CELL)
        yield _edges(split, index, corpus, neutral, 3 * rounds * PER_CELL)
        yield _attributions(split, index, corpus, neutral)


def _size(split: str, corpus: Corpus, neutral: Corpus) -> Suite:
    suite = Suite(f"boundary, {split}: index and look-up", ("what", "value", "unit"))
    texts = [text for each in corpus.values() for text in each]
    size, lines = sum(len(t.encode()) for t in texts), sum(t.count("\n") for t in texts)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.thread_time()
    index = build(corpus)
    took = time.thread_time() - began
    suite.add("corpus", size / 1e6, "MB")
    suite.add("lines", lines, "")
    suite.add("index", size / 1e6 / took, "MB/s of one thread")
    suite.add("fingerprints a line", len(index) / lines, "")
    known = [part for t in texts for part in objects(t)]
    strange = [part for each in neutral.values() for t in each for part in objects(t)]
    for what, cut in (("neutral objects", strange), ("known objects", known), ("known files", texts)):
        began = time.thread_time()
        index.look_up_all(cut)
        spent = time.thread_time() - began
        suite.add(f"look-up, {what}", sum(len(p.encode()) for p in cut) / 1e6 / spent, "MB/s of one thread")
    for what, cut in (("neutral", strange), ("known", known)):
        suite.add(f"look-up, 100 {what} objects of 600 bytes", _request(index, cut), "ms a request")
    parts = index.frozen()
    held = sum(len(part) for part in parts)
    kept = 12 * sum(len(index.prints(t)) for t in texts)
    suite.add("memory, mapped and shared, a million lines", held / lines, "MB")
    suite.add("disk, a million lines", (held + kept) / lines, "MB")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    suite.add("memory at most while indexing, a million lines", (peak - before) * 1024 / lines, "MB")
    return suite


def _request(index: FingerprintIndex, cut: Sequence[str]) -> float:
    """Milliseconds of processor time for a request of new small objects, on the average of 50."""
    small = [part[:_SMALL] for part in cut if len(part) >= _SMALL]
    some = random.Random(1).sample(small, 50 * 100)
    began = time.thread_time()
    for at in range(0, len(some), 100):
        index.look_up_all(some[at : at + 100])
    return (time.thread_time() - began) / 50 * 1e3


def _recall(split: str, index: FingerprintIndex, corpus: Corpus, count: int) -> Suite:
    suite = Suite(f"boundary, {split}: recall, {count} excerpts a cell", ("lines", *CARRIERS))
    for lines in LINES:
        cut = list(_excerpts(corpus, lines, count))
        cells = []
        for carry in CARRIERS.values():
            found = index.look_up_all([carry(text) for _, text in cut])
            hits = sum(any(m.project == p for m in each) for (p, _), each in zip(cut, found, strict=True))
            cells.append(round(hits / len(cut), 3))
        suite.add(lines, *cells)
    return suite


def _excerpts(corpus: Corpus, lines: int, count: int) -> Iterator[tuple[str, str]]:
    chance = random.Random(lines)
    projects = sorted(corpus)
    while count:
        project = chance.choice(projects)
        text = chance.choice(corpus[project]).split("\n")
        if len(text) > lines + 2:
            start = chance.randrange(len(text) - lines)
            yield project, "\n".join(text[start : start + lines])
            count -= 1


def _edges(split: str, index: FingerprintIndex, corpus: Corpus, neutral: Corpus, count: int) -> Suite:
    """What of a copy inside other text is covered, of the objects in which it was found, and what beside it.

    Lines without a letter or a digit do not count. A foreign line is left where one of either is not covered, an own
    one is covered where one is.
    """
    suite = Suite(
        f"boundary, {split}: {_COPIED} copied lines between {2 * _AROUND} own ones, {count} objects",
        ("copy", "found", "own lines covered an object", "share of foreign lines left"),
    )
    chance = random.Random(7)
    strange = [t.split("\n") for each in neutral.values() for t in each if t.count("\n") > 2 * _AROUND + 5]
    cut = []
    for project, text in _excerpts(corpus, _COPIED, count):
        lines = chance.choice(strange)
        start = chance.randrange(len(lines) - 2 * _AROUND)
        cut.append((project, text, lines[start : start + 2 * _AROUND]))
    for name in ("plain", "3 names", "all locals"):
        mixed = [(p, o[:_AROUND], CARRIERS[name](text).split("\n"), o[_AROUND:]) for p, text, o in cut]
        found = index.look_up_all(["\n".join(a + f + b) for _, a, f, b in mixed])
        counts = [
            _covered(a, f, b, [span for m in each for span in m.spans])
            for (p, a, f, b), each in zip(mixed, found, strict=True)
            if any(m.project == p for m in each)
        ]
        own, left, copied = (sum(column) for column in zip(*counts, strict=True))
        suite.add(name, len(counts) / count, own / len(counts), left / copied)
    return suite


def _covered(
    above: list[str], copy: list[str], below: list[str], spans: Sequence[tuple[int, int]]
) -> tuple[int, int, int]:
    """Lines of one's own that are covered, lines of the copy that are left, and lines of the copy."""
    own = left = copied = at = 0
    for number, line in enumerate([*above, *copy, *below]):
        places = [at + n for n, character in enumerate(line) if character.isalnum()]
        covered = [any(start <= place < end for start, end in spans) for place in places]
        if places and len(above) <= number < len(above) + len(copy):
            copied += 1
            left += not all(covered)
        else:
            own += any(covered)
        at += len(line) + 1
    return own, left, copied


def _attributions(split: str, index: FingerprintIndex, corpus: Corpus, neutral: Corpus) -> Suite:
    suite = Suite(
        f"boundary, {split}: attributions to a project that is not the owner",
        ("content", "objects", "wrong", "share", f"of them with {_SAME} lines in a row of that project"),
    )
    files = {project: [_said(text) for text in texts] for project, texts in corpus.items()}
    for name, texts in neutral.items():
        parts = [part for text in texts for part in objects(text)]
        wrong = [(part, m[0].project) for part, m in zip(parts, index.look_up_all(parts), strict=True) if m]
        _count(suite, name, parts, len(wrong), sum(_shared(part, files[project]) for part, project in wrong))
    total, all_wrong, same = (sum(row[column] for row in suite.rows) for column in (1, 2, 4))
    suite.add("all neutral", total, all_wrong, all_wrong / max(total, 1), same)
    own = [(p, part) for p, texts in corpus.items() for text in texts for part in objects(text)]
    found = index.look_up_all([part for _, part in own])
    crossed = sum(any(m.project != p for m in each) for (p, _), each in zip(own, found, strict=True))
    _count(suite, "the projects' own", own, crossed, "")
    return suite


def _count(suite: Suite, what: str, parts: Sequence[object], wrong: int, same: int | str) -> None:
    suite.add(what, len(parts), wrong, wrong / max(len(parts), 1), same)


def _said(text: str) -> str:
    """The lines of a text that have a letter or a digit, without the blanks around them."""
    lines = (line.strip() for line in text.split("\n"))
    return "\n".join(["", *(line for line in lines if any(c.isalnum() for c in line)), ""])


def _shared(part: str, files: Sequence[str]) -> bool:
    """Whether lines in a row stand in a file word for word: generated code, and what one took from the other."""
    lines = _said(part).split("\n")[1:-1]
    runs = ["\n".join(["", *lines[at : at + _SAME], ""]) for at in range(len(lines) - _SAME + 1)]
    return any(run in text for run in runs for text in files)


def objects(text: str) -> list[str]:
    """A file as tools give it back: pieces of 40 lines."""
    lines = text.split("\n")
    return ["\n".join(lines[at : at + OBJECT_LINES]) for at in range(0, len(lines), OBJECT_LINES)]
