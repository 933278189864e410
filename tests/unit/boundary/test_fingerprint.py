"""Whose text is it: excerpts of one body of code found again in another project's session.

The projects are packages of the standard library, which every machine has. Figures on larger corpora are in
docs/boundaries.md.
"""

from __future__ import annotations

import json
import keyword
import random
import re
import sysconfig
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.boundary import FingerprintIndex

KEY = b"k" * 32
STDLIB = Path(sysconfig.get_paths()["stdlib"])
OWNED = {"a": "asyncio", "e": "email", "u": "unittest"}
# Not among the others: concurrent and multiprocessing share code with asyncio, wsgiref.headers was copied from email.
# Such copies are found, and rightly so.
OTHERS = (
    "xml",
    "http",
    "logging",
    "importlib",
    "json",
    "urllib",
    "idlelib",
    "sqlite3",
    "ctypes",
    "html",
    "xmlrpc",
)


def _files(package: str) -> list[str]:
    found = sorted((STDLIB / package).rglob("*.py"))
    return [p.read_text(encoding="utf-8") for p in found if "test" not in p.parts][:40]


@pytest.fixture(scope="module")
def index() -> FingerprintIndex:
    built = FingerprintIndex(KEY)
    for project, package in OWNED.items():
        texts = [(f"{package}-{number}", built.prints(text)) for number, text in enumerate(_files(package))]
        built.add_files(project, texts)
    return built


def _numbered(text: str) -> str:
    return "\n".join(f"{n:6}\u2192{line}" for n, line in enumerate(text.split("\n"), 101))


def _tabbed(text: str) -> str:
    return re.sub(r"(?m)^ +", lambda m: "\t" * (len(m.group()) // 4), text)


def _spaced(text: str) -> str:
    return re.sub(r" *([=,:()]) *", r" \1 ", text)


def _renamed(text: str) -> str:
    """The three longest names changed throughout."""
    names = sorted(set(re.findall(r"\b_?[a-z]{5,}\b", text)) - set(keyword.kwlist), key=lambda n: (len(n), n))
    for number, name in enumerate(names[-3:]):
        text = re.sub(rf"\b{name}\b", f"renamed_{'abc'[number]}", text)
    return text


def _wrapped(text: str) -> str:
    return "\n".join(part for line in text.split("\n") for part in textwrap.wrap(line, 50) or [""])


CARRIERS: dict[str, Callable[[str], str]] = {
    "plain": str,
    "numbered": _numbered,
    "indented": lambda t: textwrap.indent(t, "        "),
    "tabs": _tabbed,
    "patch": lambda t: textwrap.indent(t, "+", lambda _: True),
    "quoted": lambda t: textwrap.indent(t, "> "),
    "json": lambda t: json.dumps({"content": t}),
    "json twice": lambda t: json.dumps(json.dumps({"content": t})),
    "spaced": _spaced,
    "renamed": _renamed,
    "wrapped": _wrapped,
    "grep": lambda t: "\n".join(f"src/x.py:{n}:{line}" for n, line in enumerate(t.split("\n"), 1)),
    "crlf": lambda t: t.replace("\n", "\r\n"),
    "upper case": str.upper,
}


def _excerpts(lines: int, count: int) -> list[tuple[str, str]]:
    chance = random.Random(lines)
    files = {p: [f.split("\n") for f in _files(package)] for p, package in OWNED.items()}
    found: list[tuple[str, str]] = []
    while len(found) < count:
        project = chance.choice(sorted(files))
        text = chance.choice(files[project])
        if len(text) > lines + 2:
            start = chance.randrange(len(text) - lines)
            found.append((project, "\n".join(text[start : start + lines])))
    return found


@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize(("lines", "recall"), [(20, 0.95), (50, 0.98)])
def test_excerpts_are_found_in_every_carrier(
    index: FingerprintIndex, carrier: str, lines: int, recall: float
) -> None:
    excerpts = _excerpts(lines, 80)
    found = sum(
        any(m.project == project for m in index.look_up(CARRIERS[carrier](text)))
        for project, text in excerpts
    )
    assert found / len(excerpts) >= recall


@pytest.mark.parametrize("carrier", ["plain", "json", "renamed", "wrapped"])
def test_short_excerpts_are_found_mostly(index: FingerprintIndex, carrier: str) -> None:
    excerpts = _excerpts(8, 200)
    found = sum(any(m.project == p for m in index.look_up(CARRIERS[carrier](t))) for p, t in excerpts)
    assert found / len(excerpts) >= 0.80


def test_a_table_of_numbers_is_found() -> None:
    chance = random.Random(1)
    rows = ["\t".join(f"{chance.random():.4f}" for _ in range(6)) for _ in range(60)]
    index = FingerprintIndex(KEY)
    index.add("a", "\n".join(rows), source="aa")
    assert [m.project for m in index.look_up("\n".join(rows[20:32]))] == ["a"]
    assert index.look_up("\n".join(rows[n][::-1] for n in range(12))) == ()


def test_many_texts_at_once_are_as_one_by_one(index: FingerprintIndex) -> None:
    """Neither neighbours in a batch nor pieces of a long text change what a text is."""
    texts = [t for _, t in _excerpts(12, 40)] + ["", "x", "\n" * 50, "self.a = a\n" * 3]
    long = "\n".join(text for text in _files("asyncio")[:8])
    assert index.look_up_all([*texts, long, *texts]) == [
        *(alone := [index.look_up(t) for t in texts]),
        index.look_up(long),
        *alone,
    ]


def test_an_index_that_was_frozen_answers_the_same(index: FingerprintIndex) -> None:
    thawed = FingerprintIndex.thaw(KEY, memoryview(b"".join(index.frozen())))
    for _, text in _excerpts(20, 20):
        assert thawed.look_up(text) == index.look_up(text)
    thawed.add("z", BLOCK)
    assert [m.project for m in thawed.look_up(BLOCK)] == ["z"]


def test_what_is_learnt_is_the_same_once_it_is_merged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.boundary.fingerprint._RECENT", 8)
    index = FingerprintIndex(KEY)
    index.add("a", NOTE)
    index.add("b", BLOCK, source="bb")
    index.add("c", BLOCK)  # a file is not unowned by traffic, merged or not
    index.add("c", NOTE)
    assert [m.project for m in index.look_up(BLOCK)] == ["b"]
    assert index.look_up(NOTE) == ()


def test_other_code_is_hardly_ever_attributed(index: FingerprintIndex) -> None:
    objects = [
        "\n".join(lines[start : start + 40])
        for package in OTHERS
        for text in _files(package)
        if (lines := text.split("\n"))
        for start in range(0, len(lines), 40)
    ]
    wrong = sum(bool(index.look_up(o)) for o in objects)
    assert len(objects) > 400
    assert wrong / len(objects) <= 0.005


NOTE = (
    "Note: Project Kestrel: settlement engine for Brightwater, cut-over on 14 March, "
    "fee schedule in fees/brightwater_2027.csv. Always run make fmt."
)
MEMORY = """## Memory
Notes kept from earlier sessions:
- Project Kestrel: settlement engine for Brightwater, cut-over on 14 March, fee schedule in fees/brightwater_2027.csv
- Always run make fmt."""
OWN_MEMORY = """## Memory
Notes kept from earlier sessions:
- The navbar lives in src/nav.tsx
- Always run make fmt."""


def test_a_sentence_of_memory_is_found_and_covered() -> None:
    index = FingerprintIndex(KEY)
    index.add("a", NOTE)
    (match,) = index.look_up(MEMORY)
    assert match.project == "a"
    covered = "".join(MEMORY[start:end] for start, end in match.spans)
    assert "Project Kestrel: settlement engine for Brightwater" in covered
    assert "Notes kept from earlier sessions" not in covered


def test_shared_advice_alone_is_nobodys() -> None:
    index = FingerprintIndex(KEY)
    index.add("a", NOTE)
    assert index.look_up(OWN_MEMORY) == ()


def test_a_heading_that_went_by_is_nobodys_yet() -> None:
    """Of what was only seen in traffic more is asked for than of files: tools write headings into every project."""
    index = FingerprintIndex(KEY)
    index.add("b", OWN_MEMORY)
    assert index.look_up("## Memory\nNotes kept from earlier sessions:\n- " + NOTE) == ()
    assert [m.project for m in index.look_up(OWN_MEMORY)] == ["b"]


def test_what_two_projects_have_is_common_from_then_on() -> None:
    index = FingerprintIndex(KEY)
    prompt = "You are a careful coding agent that works in a terminal and answers briefly.\n" * 2
    index.add("a", prompt)
    assert [m.project for m in index.look_up(prompt)] == ["a"]
    index.add("b", prompt)
    assert index.look_up(prompt) == ()
    index.add("a", prompt)
    assert index.look_up(prompt) == ()


def test_common_text_can_be_taught() -> None:
    index = FingerprintIndex(KEY)
    licence = "Permission is hereby granted, free of charge, to any person obtaining a copy\nof this software"
    index.add("a", licence)
    index.add_common(licence)
    assert index.look_up(licence) == ()


BLOCK = """def settle(batch, fee_schedule):
    for position in batch.open_positions():
        position.charge(fee_schedule.rate_for(position.counterparty))
    return batch.close(reason="cut-over")
"""


@pytest.mark.parametrize("around", ["", "é ü 漢字 🎈\n", "before\n" * 7])
@pytest.mark.parametrize("carrier", ["plain", "numbered", "crlf"])
def test_spans_are_in_characters_of_the_text_as_given(around: str, carrier: str) -> None:
    index = FingerprintIndex(KEY)
    index.add("a", BLOCK, source="sha256:aa")
    text = around + CARRIERS[carrier](BLOCK) + around
    (match,) = index.look_up(text)
    (span,) = match.spans
    assert "rate_for(position.counterparty)" in text[slice(*span)]
    assert text[slice(*span)].strip() in CARRIERS[carrier](BLOCK)
    assert match.sources == ("sha256:aa",)
    assert 0 < match.share <= 1


def test_a_match_inside_a_json_string_is_in_place() -> None:
    index = FingerprintIndex(KEY)
    index.add("a", BLOCK)
    text = json.dumps({"file": "x", "content": BLOCK})
    ((start, end),) = index.look_up(text)[0].spans
    assert "open_positions" in text[start:end]
    assert "rate_for(position.counterparty)" in text[start:end]


def test_lone_surrogates_and_odd_text_do_no_harm() -> None:
    index = FingerprintIndex(KEY)
    index.add("a", BLOCK + "\ud83d")
    text = "\ud83d\n" + BLOCK
    ((start, _),) = index.look_up(text)[0].spans
    assert start >= 2
    for odd in ("", "\n" * 1000, "\x00\x01\x02", "x" * 100_000, "\\n" * 1000):
        assert index.look_up(odd) == ()


def test_scattered_idioms_of_one_project_are_not_enough() -> None:
    index = FingerprintIndex(KEY)
    lines = [f"common_idiom_number_{'abcdefghijklmnop'[n]} = build()" for n in range(16)]
    index.add("a", "\n".join(f"{line}\n" + "something_else_entirely()\n" * n for n, line in enumerate(lines)))
    scattered = "\n\n\n\n\n\n\n\n".join(reversed(lines[:3]))
    assert index.look_up(scattered) == ()


def test_the_key_decides() -> None:
    one, two = FingerprintIndex(KEY), FingerprintIndex(b"q" * 32)
    one.add("a", BLOCK)
    two.add("a", BLOCK)
    assert not {*one.prints(BLOCK)["print"].tolist()} & {*two.prints(BLOCK)["print"].tolist()}
    with pytest.raises(ValueError):
        FingerprintIndex(b"short")


def test_an_index_is_rebuilt_from_its_fingerprints() -> None:
    one, two = FingerprintIndex(KEY), FingerprintIndex(KEY)
    one.add("a", BLOCK, source="aa")
    assert two.add_prints("a", one.prints(BLOCK), source="aa").tolist() == one.prints(BLOCK).tolist()
    assert two.look_up(BLOCK) == one.look_up(BLOCK)


@pytest.mark.parametrize("first", ["indexed", "seen"])
def test_traffic_takes_nothing_from_files_that_were_indexed(first: str) -> None:
    """Neither by being first nor by sending another project's file line by line."""
    index = FingerprintIndex(KEY)
    for what in ("indexed", "seen") if first == "indexed" else ("seen", "indexed"):
        if what == "indexed":
            index.add("a", BLOCK, source="aa")
        else:
            for line in BLOCK.split("\n"):
                index.add("b", line)
    assert [m.project for m in index.look_up(BLOCK)] == ["a"]


@pytest.mark.parametrize("sources", [("", ""), ("aa", "bb")])
def test_what_two_projects_have_alike_is_nobodys(sources: tuple[str, str]) -> None:
    index = FingerprintIndex(KEY)
    index.add("a", BLOCK, source=sources[0])
    index.add("b", BLOCK, source=sources[1])
    assert index.look_up(BLOCK) == ()


def test_a_text_without_a_project_cannot_be_added() -> None:
    with pytest.raises(ValueError):
        FingerprintIndex(KEY).add("", BLOCK)


def test_nothing_of_the_text_shows_in_a_repr() -> None:
    index = FingerprintIndex(KEY)
    index.add("a", BLOCK)
    assert "settle" not in repr(index.look_up(BLOCK))


def test_copies_inside_the_standard_library_are_found(index: FingerprintIndex) -> None:
    text = (STDLIB / "wsgiref/headers.py").read_text(encoding="utf-8")
    assert index.look_up(text)[0].project == "e"
