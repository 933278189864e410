"""The law of streams: however an answer is cut, the client gets the same text, tool input and events, and values whole.

Cuts of the bytes (network reads) must not change a byte of what comes out; cuts of the text (into deltas) must not
change what it says. What is not restored leaves as it came, and nothing waits that could not begin a placeholder.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.classify.answers import AnswerRestoration, AnswerRestorer
from gateway.classify.placeholders import Placeholders
from gateway.classify.values import Values
from gateway.context import eventstream, sse
from gateway.context.objects import Limits
from gateway.providers import registry
from tests.support.streams import AWS, DIALECTS, JSON, LINES, SSE, Dialect

KEYS = Placeholders(b"k" * 32, b"m" * 32)


def ending(text: str, label: str, end: str) -> str:
    """The text with a number behind it for which the placeholder ends as every placeholder begins."""
    return next(f"{text} {n}" for n in range(100_000) if KEYS.issue(f"{text} {n}", label).endswith(end))


SECRETS = {
    KEYS.issue(value, label): value
    for value, label in (
        (ending("hunter2 swordfish", "PASSWORD", "E"), "PASSWORD"),
        ('line one\n"quoted" \\ back\u2028', "PRIVATE_KEY"),
        (ending("Größe 🚀 完了", "EMAIL", "EG"), "EMAIL"),
    )
}
A, B, C = SECRETS
LOOKALIKE = A[:-1] + ("A" if A[-1] != "A" else "B")
TEXT = f"Größe EGRESS_ {A}{B}: 🚀 {C}, E. {LOOKALIKE} and EGRESS_PASS"
ARGUMENTS = json.dumps(
    {
        "a": f"x {A} EGR",
        "b": [B, {"c": json.dumps({"d": f"{B} {C}", "e": json.dumps([B])})}],
        "n": 1.5,
        C: "E",
    },
    ensure_ascii=False,
)
SHORT = f"ü {B}."
SHORT_ARGUMENTS = json.dumps({"k": B})
PLAIN = "Every EGG, EGRESS and E 🚀"
PLAIN_ARGUMENTS = json.dumps({"a": "EGRESS_ E", "b": ["EG"], "E": 'say \\"E'}, ensure_ascii=False)
dialects = pytest.mark.parametrize("dialect", DIALECTS, ids=lambda d: d.name)


def values() -> Values:
    return Values({token: lambda v=value: v for token, value in SECRETS.items()})  # type: ignore[misc]


def restorer(dialect: Dialect, found: Values | None = None) -> AnswerRestorer:
    adapter = registry.find(registry.builtin(), dialect.host, dialect.path)
    opened = AnswerRestoration(adapter, found or values(), Limits()).open(
        200, ((b"content-type", dialect.content_type.encode()),)
    )
    assert opened is not None
    assert isinstance(opened[1], AnswerRestorer)
    return opened[1]


def through(dialect: Dialect, pieces: Sequence[bytes]) -> bytes:
    run = restorer(dialect)
    return b"".join([run.feed(piece) for piece in pieces] + [run.end()])


def cut(text: str, at: Sequence[int]) -> list[str]:
    edges = [0, *sorted(at), len(text)]
    return [text[a:b] for a, b in pairwise(edges)]


def whole(text: str) -> str:
    for token, value in SECRETS.items():
        text = text.replace(token, value)
    return text


def restored(value: object) -> object:
    """Tool input with the values in place, at every depth of JSON in strings."""
    if isinstance(value, dict):
        return {whole(k): restored(v) for k, v in value.items()}
    if isinstance(value, list):
        return [restored(v) for v in value]
    if isinstance(value, str) and value[:1] in ("{", "["):
        return json.dumps(restored(json.loads(value)), ensure_ascii=False)
    return whole(value) if isinstance(value, str) else value


def same(a: object, b: object) -> bool:
    """Equality of tool input, with JSON in strings compared as what it says."""
    if isinstance(a, str) and isinstance(b, str) and a[:1] in ("{", "["):
        return same(json.loads(a), json.loads(b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b


def check(dialect: Dialect, answer: bytes) -> None:
    """Everything that a client of this dialect must get, whatever the pieces were."""
    before, after = dialect.read(answer), dialect.read(through(dialect, [answer]))
    assert after.text == whole(TEXT)
    assert same(json.loads(after.arguments), restored(json.loads(ARGUMENTS)))
    assert after.types == before.types
    assert after.numbers == before.numbers == sorted(set(before.numbers))
    for snapshot in after.snapshots:
        assert snapshot == after.text or same(json.loads(snapshot), json.loads(after.arguments))


@dialects
def test_one_piece(dialect: Dialect) -> None:
    check(dialect, dialect.write([TEXT], [ARGUMENTS]))


@dialects
def test_every_character_by_itself(dialect: Dialect) -> None:
    check(dialect, dialect.write(list(TEXT), list(ARGUMENTS)))


@dialects
def test_every_cut_into_two_deltas(dialect: Dialect) -> None:
    longest = max(len(TEXT), len(ARGUMENTS))
    for at in range(1, longest):
        check(
            dialect, dialect.write(cut(TEXT, [min(at, len(TEXT))]), cut(ARGUMENTS, [min(at, len(ARGUMENTS))]))
        )


@dialects
@settings(max_examples=15, deadline=None)
@given(st.sets(st.integers(0, len(TEXT)), max_size=12), st.sets(st.integers(0, len(ARGUMENTS)), max_size=12))
def test_any_cuts_into_deltas(dialect: Dialect, text: set[int], arguments: set[int]) -> None:
    check(dialect, dialect.write(cut(TEXT, list(text)), cut(ARGUMENTS, list(arguments))))


@dialects
def test_every_cut_of_the_bytes(dialect: Dialect) -> None:
    answer = dialect.write(cut(SHORT, [8, 20]), cut(SHORT_ARGUMENTS, [12]))
    expected = through(dialect, [answer])
    assert expected != answer
    for at in range(len(answer) + 1):
        assert through(dialect, [answer[:at], answer[at:]]) == expected, at


@dialects
def test_many_cuts_of_the_bytes(dialect: Dialect) -> None:
    answer = dialect.write(cut(TEXT, [3, 20, 40, 77]), cut(ARGUMENTS, [5, 30, 90, 200]))
    expected = through(dialect, [answer])
    chance = random.Random(7)
    assert through(dialect, [answer[i : i + 1] for i in range(len(answer))]) == expected
    for _ in range(20):
        edges = [0, *sorted(chance.choices(range(len(answer)), k=chance.randrange(2, 40))), len(answer)]
        assert through(dialect, [answer[a:b] for a, b in pairwise(edges)]) == expected


@dialects
def test_what_is_not_restored_leaves_byte_for_byte(dialect: Dialect) -> None:
    for text, arguments in (([PLAIN], [PLAIN_ARGUMENTS]), (list(PLAIN), list(PLAIN_ARGUMENTS))):
        answer = dialect.write(text, arguments)
        assert through(dialect, [answer[i : i + 7] for i in range(0, len(answer), 7)]) == answer


@dialects
def test_an_event_waits_only_for_what_may_begin_a_placeholder(dialect: Dialect) -> None:
    """After each event everything so far has been given on, unless its text ends as a placeholder begins."""
    pieces = ["One ", "two ", "three E", "x ", A[:9], A[9:30], A[30:], " EGRESS_", "PASS ", "done"]
    may_wait = {"three E", A[:9], A[9:30], " EGRESS_"}
    answer = dialect.write(pieces, ['{"a": ', '"b"}'])
    run, waiting, held = restorer(dialect), False, 0
    for event in raw_events(dialect, answer):
        text = dialect.read(event if dialect.content_type != JSON else element(event)).text
        waiting = text in may_wait or (waiting and not text)  # what is behind a held event waits with it
        out, held = len(run.feed(event)), held + len(event)
        assert (out == 0) == waiting, text
        assert waiting or text == A[30:] or A.encode() in event or out == held
        held *= waiting
    assert not waiting


def raw_events(dialect: Dialect, answer: bytes) -> list[bytes]:
    """The bytes of each event; of an array each element with what stands before it."""
    decoder: Any = {SSE: sse.Decoder, AWS: eventstream.Decoder, LINES: sse.JsonLines, JSON: sse.JsonArray}
    run = decoder[dialect.content_type]()
    return [event.raw for event in run.feed(answer)]


def element(raw: bytes) -> bytes:
    """One element of an array as an array."""
    return b"[" + raw.strip().lstrip(b"[,").strip() + b"]"


@dialects
def test_text_that_is_json_stays_json(dialect: Dialect) -> None:
    """An answer that was asked for as JSON is parsed by its client: a value in it is escaped; prose is not."""
    text = json.dumps({"k": f"{B} {A}", "deep": json.dumps([B])})
    for pieces in ([text], list(text)):
        heard = dialect.read(through(dialect, [dialect.write(pieces, ["{}"])]))
        assert same(json.loads(heard.text), restored(json.loads(text)))
    prose = f'[1] He said "{B}" and {{"left": {B}'
    heard = dialect.read(through(dialect, [dialect.write(list(prose), ["{}"])]))
    assert heard.text == whole(prose)


@dialects
def test_a_stream_that_breaks_off_gives_what_it_had(dialect: Dialect) -> None:
    answer = dialect.write(cut(TEXT, [3, 20, 40, 77]), cut(ARGUMENTS, [5, 30, 90, 200]))
    for at in range(0, len(answer), 11):
        out = through(dialect, [answer[:at]])
        assert out or not at or dialect.content_type == "application/json" or at < 60
