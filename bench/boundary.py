"""Whose text is it, on installed packages as projects: recall of excerpts, false attributions, speed, size.

The projects are packages that share no code, with the licences and idioms that such packages have in common; neutral
content is every other package, in objects of 40 lines. Nothing is left out of either but files in folders of tests.
"""

from __future__ import annotations

import json
import random
import re
import sysconfig
import textwrap
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.table import Suite
from gateway.boundary import FingerprintIndex

KEY = b"k" * 32
SITE = Path(sysconfig.get_paths()["purelib"])
PROJECTS = (
    "mitmproxy",
    "openai",
    "hypothesis",
    "rich",
    "tornado",
    "urwid",
    "werkzeug",
    "mypy",
    "h2",
    "jinja2",
)
NEUTRAL = (
    "aioquic", "asgiref", "coverage", "cffi", "flask", "hatchling", "httpcore", "itsdangerous", "jsonschema",
    "markdown_it", "packaging", "pluggy", "prometheus_client", "pyparsing", "pydantic", "sortedcontainers", "starlette",
    "stdnum", "tomlkit", "uvicorn", "websockets", "wsproto", "yaml", "click", "anyio", "httpx", "h11",
)  # fmt: skip
LINES = (5, 8, 12, 20, 50, 200)
OBJECT_LINES = 40
PER_CELL = 25


def files(package: str) -> list[str]:
    """The text of a package's own Python files."""
    paths = sorted((SITE / package).rglob("*.py"))
    own = [p for p in paths if not {"test", "tests", "_vendor", "contrib"} & set(p.relative_to(SITE).parts)]
    return [p.read_text(encoding="utf-8", errors="replace") for p in own]


def numbered(text: str) -> str:
    return "\n".join(f"{n:6}\u2192{line}" for n, line in enumerate(text.split("\n"), 101))


def patched(text: str) -> str:
    return "@@ -1,9 +1,9 @@\n" + "\n".join(
        f"{'+-  '[n % 4]}{line}" for n, line in enumerate(text.split("\n"))
    )


def spaced(text: str) -> str:
    return re.sub(r" *([=,:()]) *", r" \1 ", text)


def joined(text: str) -> str:
    """Calls over several lines brought onto one, as formatters do."""
    return re.sub(r"([(,])\n\s+", r"\1 ", text)


def renamed(text: str) -> str:
    names = sorted(set(re.findall(r"\b(_?[a-z]{4,}(?:_[a-z]+)*)\b", text)), key=len)[-3:]
    for number, name in enumerate(names):
        text = re.sub(rf"\b{name}\b", f"other_{'abc'[number]}", text)
    return text


CARRIERS: dict[str, Callable[[str], str]] = {
    "plain": str,
    "re-indented": lambda t: textwrap.indent(textwrap.dedent(t), "      "),
    "numbered": numbered,
    "patch": patched,
    "JSON": lambda t: json.dumps({"content": t}),
    "spaced": spaced,
    "joined": joined,
    "3 names changed": renamed,
}


def build(corpus: dict[str, list[str]]) -> FingerprintIndex:
    index = FingerprintIndex(KEY)
    for project, texts in corpus.items():
        index.add_files(project, [(f"{project}-{n}", index.prints(text)) for n, text in enumerate(texts)])
    return index


def run(rounds: int) -> Iterator[Suite]:
    """Three tables; `rounds` excerpts times 25 a cell."""
    corpus = {name: files(name) for name in PROJECTS if (SITE / name).is_dir()}
    yield _size(corpus)
    index = build(corpus)
    yield _recall(index, corpus, rounds * PER_CELL)
    yield _attributions(index, corpus)


def _size(corpus: dict[str, list[str]]) -> Suite:
    suite = Suite("boundary: index and look-up", ("what", "value", "unit"))
    texts = [text for each in corpus.values() for text in each]
    size, lines = sum(len(t.encode()) for t in texts), sum(t.count("\n") for t in texts)
    began = time.thread_time()
    index = build(corpus)
    took = time.thread_time() - began
    neutral = [t for name in NEUTRAL if (SITE / name).is_dir() for t in files(name)]
    suite.add("corpus", size / 1e6, "MB")
    suite.add("lines", lines, "")
    suite.add("index", size / 1e6 / took, "MB/s of one thread")
    suite.add("fingerprints a line", len(index) / lines, "")
    for what, some in (("neutral", neutral), ("known", texts)):
        cut = [part for t in some for part in objects(t)]
        began = time.thread_time()
        for part in cut:
            index.look_up(part)
        spent = time.thread_time() - began
        suite.add(
            f"look-up, {what} objects", sum(len(p.encode()) for p in cut) / 1e6 / spent, "MB/s of one thread"
        )
    tracemalloc.start()
    again = build(corpus)
    memory = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    suite.add("memory", memory / len(again), "bytes a fingerprint")
    suite.add("memory, a million lines", memory / lines, "MB")
    suite.add("disk, a million lines", 8 * len(again) / lines, "MB")
    return suite


def _recall(index: FingerprintIndex, corpus: dict[str, list[str]], count: int) -> Suite:
    suite = Suite(f"boundary: recall, {count} excerpts a cell", ("lines", *CARRIERS))
    for lines in LINES:
        cut = list(_excerpts(corpus, lines, count))
        cells = []
        for carry in CARRIERS.values():
            hits = sum(any(m.project == owner for m in index.look_up(carry(text))) for owner, text in cut)
            cells.append(round(hits / len(cut), 3))
        suite.add(lines, *cells)
    return suite


def _excerpts(corpus: dict[str, list[str]], lines: int, count: int) -> Iterator[tuple[str, str]]:
    chance = random.Random(lines)
    projects = sorted(corpus)
    while count:
        project = chance.choice(projects)
        text = chance.choice(corpus[project]).split("\n")
        if len(text) > lines + 2:
            start = chance.randrange(len(text) - lines)
            yield project, "\n".join(text[start : start + lines])
            count -= 1


def _attributions(index: FingerprintIndex, corpus: dict[str, list[str]]) -> Suite:
    suite = Suite(
        "boundary: attributions to a project that is not the owner", ("content", "objects", "wrong", "share")
    )
    for name in NEUTRAL:
        if (SITE / name).is_dir():
            parts = [part for text in files(name) for part in objects(text)]
            wrong = sum(bool(index.look_up(part)) for part in parts)
            suite.add(name, len(parts), wrong, wrong / max(len(parts), 1))
    total, all_wrong = sum(r[1] for r in suite.rows), sum(r[2] for r in suite.rows)
    suite.add("all neutral", total, all_wrong, all_wrong / max(total, 1))
    own = [(p, part) for p, texts in corpus.items() for text in texts for part in objects(text)]
    crossed = sum(any(m.project != p for m in index.look_up(part)) for p, part in own)
    suite.add("the projects' own", len(own), crossed, crossed / max(len(own), 1))
    return suite


def objects(text: str) -> list[str]:
    """A file as tools give it back: pieces of 40 lines."""
    lines = text.split("\n")
    return ["\n".join(lines[at : at + OBJECT_LINES]) for at in range(0, len(lines), OBJECT_LINES)]
