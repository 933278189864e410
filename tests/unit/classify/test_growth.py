"""What twice as many values cost is about twice as much, whatever they stand in: nothing compares all with all.

Counted in calls, as a machine that is busy does not change those.
"""

from __future__ import annotations

import cProfile
import json
import pstats
from collections.abc import Callable
from typing import Any, Final

import pytest

from gateway.detect.engine import Engine, build
from tests.support.evaluation import Session

FEW: Final = 150
MOST: Final = 2.4  # times the calls for twice the values; 4 where each meets each


def told(n: int) -> str:
    """Two values, other ones for each number."""
    return f"mail p{n}x@corp-mail.io and TOKEN={n:04}aB{n * 7919 % 9973:04}xQzKv{n * 31 % 97:02}Rw ok"


def person(n: int) -> dict[str, Any]:
    return {
        "id": n,
        "mail": f"p{n}x@corp-mail.io",
        "phone": f"+4915112{n * 7919 % 99991:05}",
        "api_token": told(n)[-24:-3],
    }


def said(content: Any) -> list[dict[str, Any]]:
    return [{"role": "user", "content": content}]


def result(content: str) -> list[dict[str, Any]]:
    return said([{"type": "tool_result", "tool_use_id": "toolu_1", "content": content}])


def uses(count: int) -> list[dict[str, Any]]:
    calls = [
        {"type": "tool_use", "id": f"toolu_{n}", "name": "f", "input": {"a": told(n)}} for n in range(count)
    ]
    return [{"role": "assistant", "content": calls}]


CONVERSATIONS: Final[dict[str, Callable[[int], list[dict[str, Any]]]]] = {
    "lines of one text": lambda count: said("\n".join(told(n) for n in range(count))),
    "parts of one message": lambda count: said([{"type": "text", "text": told(n)} for n in range(count)]),
    "messages": lambda count: [each for n in range(count) for each in said(told(n))],
    "members of JSON": lambda count: result(
        json.dumps({f"S_{n}_TOKEN": told(n)[-24:-3] for n in range(count)})
    ),
    "records in JSON": lambda count: result(json.dumps([person(n) for n in range(count)])),
    "names and values in JSON": lambda count: result(
        json.dumps([{"name": "DB_PASSWORD", "value": told(n)[-24:-3]} for n in range(count)])
    ),
    "calls of tools": uses,
}


@pytest.fixture(scope="module")
def detector() -> Engine:
    """The built-in rules, made once."""
    return build()


@pytest.mark.parametrize("conversation", CONVERSATIONS.values(), ids=CONVERSATIONS.keys())
def test_twice_the_values_are_twice_the_work(
    conversation: Callable[[int], list[dict[str, Any]]], detector: Engine
) -> None:
    first, again = zip(*(_calls(conversation(count), detector) for count in (FEW, 2 * FEW)), strict=True)

    assert first[1] < MOST * first[0]
    assert again[1] < MOST * again[0]


def _calls(messages: list[dict[str, Any]], detector: Engine) -> tuple[int, int]:
    """Calls for a request whose values are new, and for the same one a second time."""
    body = json.dumps({"model": "m", "max_tokens": 5, "messages": messages}).encode()
    session, found = Session(detector), []
    for _ in range(2):
        profile = cProfile.Profile()
        sent = profile.runcall(session.send, body)
        assert sent.body is not None
        assert sent.body != body
        found.append(int(pstats.Stats(profile).total_calls))  # type: ignore[attr-defined]
    return found[0], found[1]
