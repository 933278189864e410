"""A value that is cut in two leaves in neither half: every cut, over parts, messages, turns and dialects."""

from __future__ import annotations

import base64
import json
import random
import string
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

import pytest

from gateway.classify.evaluate import Evaluation
from gateway.context.findings import ScanItem, ScanResult
from gateway.detect.engine import Engine, build
from tests.support.evaluation import Session

TOKEN = "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"  # a published dummy; its checksum holds
AWS = "AKIAJYNZX3RQ7FEHQ5WT"
CARD = "4000 0058 2318 9676"
VALUES = {
    "token": (TOKEN, TOKEN),
    "key id": (AWS, AWS),
    "password": ("db_password=Tr0ub4dor.3x9", "Tr0ub4dor.3x9"),
    "url": ("postgres://app:kI7tG5IXr1sV@db-1/app", "kI7tG5IXr1sV"),
    "card": (f"card {CARD} please", CARD),
    "ssn": ("ssn 319-30-9023", "319-30-9023"),
    "jwt": (
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJzdmMtNDEyOSIsInNjb3BlIjoiZGVwbG95In0.Qm7Zt1yNqk3V5xJcW8rLh2pTfUa9sDgEoBiXwKzYvMn",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJzdmMtNDEyOSIsInNjb3BlIjoiZGVwbG95In0.Qm7Zt1yNqk3V5xJcW8rLh2pTfUa9sDgEoBiXwKzYvMn",
    ),
}
FILL = "We looked at the build again and it is fine. " * 30


@cache
def engine() -> Engine:
    return build()


def session() -> Session:
    return Session(detector=engine())


def user(*parts: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "text", "text": part} for part in parts]}


def anthropic(*messages: dict[str, Any]) -> dict[str, Any]:
    return {"model": "claude-sonnet-4-5", "max_tokens": 64, "messages": list(messages)}


def texts(evaluation: Evaluation) -> Iterator[str]:
    """The texts that leave, in order."""
    assert evaluation.body is not None, evaluation.reason_codes

    def walk(value: Any) -> Iterator[str]:
        if isinstance(value, dict):
            for name, member in value.items():
                if name in {"text", "content"} and isinstance(member, str):
                    yield member
                else:
                    yield from walk(member)
        elif isinstance(value, list):
            for element in value:
                yield from walk(element)

    yield from walk(json.loads(evaluation.body))


def is_left(value: str, size: int, parts: list[str]) -> bool:
    """Whether so many characters of a value stand together in what leaves."""
    joined = "".join(parts)
    return any(value[at : at + size] in joined for at in range(len(value) - size + 1))


def between_parts(first: str, second: str) -> Any:
    return anthropic(user(first, second))


def between_messages(first: str, second: str) -> Any:
    return anthropic(user(first), {"role": "assistant", "content": second}, user("go on"))


def between_system_parts(first: str, second: str) -> Any:
    parts = [{"type": "text", "text": first}, {"type": "text", "text": second}]
    return {**anthropic(user("hello there")), "system": parts}


def inside_a_tool_result(first: str, second: str) -> Any:
    call = {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {}}
    content = [{"type": "text", "text": first}, {"type": "text", "text": second}]
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": content}
    return anthropic(
        user("read it"), {"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}
    )


def between_chat_messages(first: str, second: str) -> Any:
    return {
        "model": "gpt-5",
        "messages": [{"role": "user", "content": first}, {"role": "user", "content": second}],
    }


PLACES: dict[str, tuple[Callable[[str, str], Any], str, str]] = {
    "parts": (between_parts, "api.anthropic.com", "/v1/messages"),
    "messages": (between_messages, "api.anthropic.com", "/v1/messages"),
    "system": (between_system_parts, "api.anthropic.com", "/v1/messages"),
    "tool result": (inside_a_tool_result, "api.anthropic.com", "/v1/messages"),
    "chat": (between_chat_messages, "api.openai.com", "/v1/chat/completions"),
}


CASES = [(kind, "parts") for kind in sorted(VALUES)] + [
    (kind, place) for place in sorted(PLACES) if place != "parts" for kind in ("password", "token")
]


@pytest.mark.parametrize(("kind", "place"), CASES)
def test_no_cut_lets_a_value_through(kind: str, place: str) -> None:
    carrier, value = VALUES[kind]
    make, host, target = PLACES[place]
    for cut in range(1, len(carrier)):
        work = session()
        body = make(FILL + carrier[:cut], carrier[cut:] + " " + FILL)
        sent = work.send(body, host=host, target=target)
        assert not is_left(value, 4, list(texts(sent))), cut - carrier.index(value)
        before = work.scanned_texts
        again = work.send(body, host=host, target=target)
        assert again.body == sent.body
        assert work.scanned_texts == before + 1  # the request target, which is read every time


@pytest.mark.parametrize(
    "codes",
    [
        ", ".join(str(ord(c)) for c in TOKEN),
        " ".join(f"{ord(c):02x}" for c in TOKEN),
        "".join(f"&#{ord(c)};" for c in TOKEN),
    ],
    ids=["decimal", "hex", "entities"],
)
def test_no_cut_lets_a_list_of_codes_through(codes: str) -> None:
    for cut in range(1, len(codes), 5):
        body = between_parts(FILL + codes[:cut], codes[cut:] + " " + FILL)
        sent = session().send(body, host="api.anthropic.com", target="/v1/messages")
        assert codes not in "".join(texts(sent)), cut


@pytest.mark.parametrize("kind", sorted(VALUES))
def test_what_has_left_before_stays_as_it_left(kind: str) -> None:
    carrier, value = VALUES[kind]
    start = carrier.index(value)
    for cut in range(start + 1, start + len(value), 3):
        work = session()
        first = anthropic(user(FILL + carrier[:cut]))
        sent = next(texts(work.send(first)))
        asked = [*first["messages"], {"role": "assistant", "content": "go on"}]
        second = anthropic(*asked[:1], user(carrier[cut:] + " is the rest. " + FILL))
        parts = list(texts(work.send(second)))
        assert parts[0] == sent
        assert value[cut - start :] not in parts[1] or len(value) - (cut - start) < 4
        assert list(texts(work.send(second))) == parts


def test_a_value_in_many_parts_is_whole_in_none() -> None:
    for size in (1, 3, 7):
        pieces = [TOKEN[at : at + size] for at in range(0, len(TOKEN), size)]
        sent = list(texts(session().send(anthropic(user("the token: ", *pieces, " and so on.")))))
        assert not is_left(TOKEN, 4, sent)


def test_placeholders_of_the_pieces_restore_to_what_was_there() -> None:
    work = session()
    sent = list(texts(work.send(between_parts(f"{FILL}token {TOKEN[:15]}", f"{TOKEN[15:]} {FILL}"))))
    joined = "".join(sent)
    for token, (value, _, _) in work.vault.items():
        joined = joined.replace(token, value)
    assert joined == f"{FILL}token {TOKEN} {FILL}"


def test_a_key_longer_than_a_run_is_masked_on_both_sides() -> None:
    rng = random.Random(4)
    body = "".join(rng.choice(string.ascii_letters + string.digits + "+/") for _ in range(1600))
    lines = "\n".join(body[at : at + 64] for at in range(0, len(body), 64))
    pem = f"-----BEGIN RSA PRIVATE KEY-----\n{lines}\n-----END RSA PRIVATE KEY-----\n"
    for cut in (40, 500, 1000, 1500, len(pem) - 70):
        sent = list(texts(session().send(between_parts(f"{FILL}\n{pem[:cut]}", f"{pem[cut:]}{FILL}"))))
        assert not is_left(lines, 70, sent), cut
    claims = base64.urlsafe_b64encode(json.dumps({"sub": "svc-4129", "data": body[:700]}).encode())
    jwt = f"eyJhbGciOiJSUzI1NiJ9.{claims.decode().rstrip('=')}.{body[900:1242].replace('+', '-').replace('/', '_')}"
    for cut in (10, 30, 400, 900):
        sent = list(texts(session().send(between_parts(f"{FILL}{jwt[:cut]}", f"{jwt[cut:]} {FILL}"))))
        assert not is_left(jwt, 40, sent), cut


def test_neighbours_that_hold_nothing_leave_as_they_came() -> None:
    talk = [
        user("What is the token budget?", "The key: see below."),
        {"role": "assistant", "content": "It is 4096. Password rules:"},
        user("Use at least twelve characters", "AKIA is a prefix", "sha256:", "0" * 64),
    ]
    body = json.dumps(anthropic(*talk), ensure_ascii=False).encode()
    work = session()
    assert work.send(body).body == body
    before = work.scanned_texts
    assert work.send(body).body == body
    assert work.scanned_texts == before + 1


WHOLE = {
    **{kind: carrier for kind, (carrier, _) in VALUES.items()},
    "gitlab": "glpat-q7ZkT2mXw9LpRv4BnHsY",
    "anthropic": f"sk-ant-api03-{'q7ZkT2mX-w9LpRv4B_' * 5}AAA",
    "header": "Authorization: Bearer q7ZkT2mXw9LpRv4BnHsYc3Jd8GfKaQe5Wu6V",
    "assigned": f"GITHUB_TOKEN={TOKEN}",
    "mail": "oskar.lindqvist@nordhavn-klinik.se",
    "phone": "+44 7911 123456",
}
NEIGHBOURS = (
    "Understood. I will use it.", "OK", f"GITHUB_TOKEN={TOKEN}", "GITHUB_TOKEN=x", "name: web", "ls -la", "total 48", "# Title",
    "123 files changed", "/home/dev/project", "src/app.py:12: error", "diff --git a/x b/x", '{"a":1}', "UserService()",
)  # fmt: skip


WHOLE_CASES = [
    *((kind, "messages") for kind in sorted(WHOLE)),
    *(("gitlab", place) for place in sorted(PLACES)),
]


@pytest.mark.parametrize(("kind", "place"), WHOLE_CASES)
def test_a_whole_value_takes_no_word_of_its_neighbours_along(kind: str, place: str) -> None:
    shape, host, target = PLACES[place]
    for word in NEIGHBOURS:
        for pair in ((f"here: {WHOLE[kind]}", word), (f"{word} is", WHOLE[kind])):
            alone = session()
            expected = [next(texts(alone.send(anthropic(user(text))))) for text in pair]
            left = list(texts(session().send(shape(*pair), host=host, target=target)))
            assert [text for text in left if text in expected] == expected, pair


def test_a_turn_more_looks_at_one_seam_more() -> None:
    work = session()
    talk = [user(f"turn {n}. {FILL}") for n in range(40)]
    work.send(anthropic(*talk))
    before = work.scanned_texts
    work.send(anthropic(*talk, user(f"the last one. {FILL}")))
    assert work.scanned_texts == before + 4  # the target, type and text of the new part, and its seam


class Late:
    """The engine with a second detector beside it that does not answer for texts in which the value stands whole."""

    id, version, revision = "late", "1", "late 1"
    is_late = True

    def scan(self, items: Sequence[ScanItem]) -> list[ScanResult]:
        results = engine().scan(items)
        lost = ScanResult((), complete=False, reason="detector.timed_out")
        return [
            lost if self.is_late and TOKEN in item.text else result
            for item, result in zip(items, results, strict=True)
        ]


@pytest.mark.parametrize("place", sorted(PLACES))
def test_a_seam_that_a_detector_did_not_look_over_is_not_taken_for_clean(place: str) -> None:
    shape, host, target = PLACES[place]
    body = shape(FILL + TOKEN[:20], TOKEN[20:] + " " + FILL)
    detector = Late()
    over = Session(detector=detector)

    refused = over.send(body, host=host, target=target)
    detector.is_late = False
    sent = over.send(body, host=host, target=target)

    assert not refused.delivered
    assert "detector.timed_out" in refused.reason_codes
    assert not is_left(TOKEN, 20, list(texts(sent)))


def test_a_change_that_a_detector_did_not_look_at_whole_is_refused() -> None:
    class Second(Late):
        def scan(self, items: Sequence[ScanItem]) -> list[ScanResult]:
            lost = ScanResult((), complete=False, reason="detector.timed_out")
            return [
                lost if "EGRESS_" in item.text else result
                for item, result in zip(items, engine().scan(items), strict=True)
            ]

    result = Session(detector=Second()).send(anthropic(user(f"the key is {AWS}")))
    assert not result.delivered
    assert "redaction.incomplete" in result.reason_codes
