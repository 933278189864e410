"""The laws of evaluation: clean is identical, edits leave nothing and touch nothing else, turns keep their prefix."""

from __future__ import annotations

import base64
import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.classify.masked import memorable
from gateway.context.decisions import combine
from tests.support.evaluation import Session, policy, texts_of

WORDS = st.text(st.characters(codec="utf-8", exclude_characters="@="), max_size=30)
TOKENS = st.text(
    st.sampled_from("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"),
    min_size=36,
    max_size=36,
).map("ghp_".__add__)
PASSWORDS = st.from_regex(r"[A-Z][a-z]{3}[0-9]{3}[!#%][a-z]{4}", fullmatch=True).filter(memorable)
MAILS = st.from_regex(r"[a-z]{4,9}@[a-z]{4,9}\.org", fullmatch=True)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | WORDS
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3)
)


def wrapped(value: str, how: int) -> str:
    """A secret as it may stand in a text: plain, in JSON, in JSON in JSON, in base64."""
    forms = [
        value,
        json.dumps({"k": value, "n": [1, {"deep": value}]}),
        json.dumps([json.dumps({"inner": f"x {value} y"})]),
        base64.b64encode(f"echo {value} end".encode()).decode(),
    ]
    return forms[how]


SECRETS = st.tuples(TOKENS | MAILS, st.integers(0, 3)).map(lambda pair: (pair[0], wrapped(*pair)))


def message(content: Any, role: str = "user") -> dict[str, Any]:
    return {"role": role, "content": content}


@st.composite
def contents(draw: st.DrawFn) -> tuple[list[Any], list[str]]:
    """Content blocks of all kinds, and the values that were planted in them."""
    blocks: list[Any] = []
    values: list[str] = []
    for _ in range(draw(st.integers(1, 4))):
        value, form = draw(SECRETS) if draw(st.booleans()) else ("", draw(WORDS))
        text = f"{draw(WORDS)} {form} {draw(WORDS)}"
        blocks.append(
            draw(
                st.sampled_from(
                    [
                        {"type": "text", "text": text},
                        {"type": "tool_result", "tool_use_id": "t1", "content": text},
                        {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": text}},
                        {
                            "type": "tool_result",
                            "tool_use_id": "t1",
                            "content": [{"type": "text", "text": text}],
                        },
                    ]
                )
            )
        )
        values += [value] if value else []
    return blocks, values


@given(VALUES, st.sampled_from([None, 1]), st.booleans())
def test_a_body_without_findings_is_byte_identical(value: Any, indent: int | None, ascii_only: bool) -> None:
    body = json.dumps(
        {"model": "m", "messages": [message("hi")], "x": value}, indent=indent, ensure_ascii=ascii_only
    )
    data = body.encode()

    assert Session().send(data).body == data


@given(contents(), st.sampled_from([None, 2]), st.booleans())
def test_no_planted_value_is_in_any_decoded_view_and_the_rest_is_untouched(
    made: tuple[list[Any], list[str]], indent: int | None, ascii_only: bool
) -> None:
    blocks, values = made
    before = json.dumps({"model": "m", "messages": [message(blocks)]}, indent=indent, ensure_ascii=ascii_only)
    session = Session()
    result = session.send(before.encode())

    assert result.body is not None
    after = result.body.decode()
    views = texts_of(result.body)
    for value in values:
        assert not any(value in view for view in views)
        for shift in range(3):
            core = base64.b64encode(b" " * shift + value.encode())[4:-4]
            assert core not in result.body
    # What stands between the placeholders stood in the body before, in the same order.
    at, last = 0, 0
    for token_at, token_end in session.placeholders.find(after):
        piece = after[last:token_at]
        found = before.find(piece, at)
        assert found >= 0
        at, last = found + len(piece), token_end
    assert before.endswith(after[last:])


@given(st.lists(contents(), min_size=2, max_size=4))
def test_the_next_turn_keeps_the_forwarded_prefix(turns: list[tuple[list[Any], list[str]]]) -> None:
    session = Session()
    messages: list[Any] = []
    last = b""
    for blocks, _ in turns:
        messages.append(message(blocks))
        body = json.dumps({"model": "m", "messages": messages}).encode()
        result = session.send(body)
        assert result.body is not None
        assert result.body[: len(last)] == last or result.recalled is None or _newly_masked(session, last)
        last = result.body[: -len("]}")]


def _newly_masked(session: Session, last: bytes) -> bool:
    """A value that left in clear earlier and is masked since: masking goes before the prefix."""
    return any(value.encode() in last for value, _, _ in session.vault.values())


@given(PASSWORDS, WORDS, WORDS, st.integers(0, 3))
def test_a_value_masked_once_leaves_in_no_later_turn(value: str, before: str, after: str, how: int) -> None:
    session = Session()
    session.send({"model": "m", "messages": [message(f"password={value}")]})
    result = session.send({"model": "m", "messages": [message(f"{before} {wrapped(value, how)} {after}")]})

    assert result.body is not None
    assert not any(value in view for view in texts_of(result.body))


@given(st.lists(SECRETS, min_size=1, max_size=4, unique_by=lambda pair: pair[0]), st.randoms())
def test_the_same_value_gets_the_same_placeholder_in_any_order(
    pairs: list[tuple[str, str]], random: Any
) -> None:
    def placeholders(order: list[tuple[str, str]]) -> set[str]:
        body = {"model": "m", "messages": [message([{"type": "text", "text": value} for value, _ in order])]}
        return set(Session().send(body).carried)

    shuffled = list(pairs)
    random.shuffle(shuffled)

    assert placeholders(pairs) == placeholders(shuffled)


@given(contents())
@settings(max_examples=30, deadline=None)
def test_a_stricter_bundle_lets_no_more_bytes_out(made: tuple[list[Any], list[str]]) -> None:
    body = {"model": "m", "messages": [message(made[0])]}
    loose = Session(rules=policy("default")).send(body)
    strict = Session(rules=policy("strict")).send(body)

    if strict.body is not None:
        assert loose.body is not None
        for value in made[1]:
            assert value.encode() not in strict.body
        assert len(set(strict.carried)) >= len(set(loose.carried))


@given(contents(), contents())
@settings(max_examples=30, deadline=None)
def test_combining_decisions_keeps_the_order_of_nothing(
    one: tuple[list[Any], list[str]], other: tuple[list[Any], list[str]]
) -> None:
    session = Session()
    decisions = [
        item.decision
        for blocks, _ in (one, other)
        for item in session.send({"model": "m", "messages": [message(blocks)]}).objects
    ]

    assert combine(*decisions) == combine(*reversed(decisions))
    assert combine(combine(*decisions), *decisions) == combine(*decisions)
