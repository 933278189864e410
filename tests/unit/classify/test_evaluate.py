"""The evaluation of whole requests: what leaves, what is decided, what is remembered."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from gateway.contract import ContextDispositionV1
from tests.support.evaluation import Session, policy, texts_of

SECRET = "ghp_" + "aB3dE5fG7h" * 3 + "aB3dE5"
OTHER = "ghp_" + "zY9xW8vU7t" * 3 + "zY9xW8"
MAIL = "alice@corp.org"


def anthropic(*content: Any, **more: Any) -> dict[str, Any]:
    return {
        "model": "claude-x",
        "max_tokens": 5,
        "messages": [{"role": "user", "content": list(content)}],
        **more,
    }


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


def test_a_clean_request_leaves_as_it_came_and_is_a_plain_allow() -> None:
    body = b'{ "model" : "m", "messages":[{"role":"user","content":"hel\\u006co 1.50"}], "x": 1e5 }'
    result = Session().send(body)

    assert result.body == body
    assert not result.rewritten
    assert {item.decision.disposition for item in result.objects} == {ContextDispositionV1.ALLOW}
    assert result.reason_codes == ()


def test_a_secret_is_replaced_and_nothing_else_changes() -> None:
    body = json.dumps(anthropic(text(f"key {SECRET} and {MAIL}"), text("untouched"))).encode()
    result = Session().send(body)

    assert result.body is not None
    assert SECRET not in result.body.decode()
    assert MAIL not in result.body.decode()
    changed = json.loads(result.body)
    assert changed["messages"][0]["content"][0]["text"] == "key {} and {}".format(*result.carried)
    changed["messages"][0]["content"][0]["text"] = f"key {SECRET} and {MAIL}"
    assert json.dumps(changed).encode() == body
    assert result.reason_codes == ("pii.redacted", "secret.redacted")


@pytest.mark.parametrize(
    "content",
    [
        {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": f"curl -H {SECRET}"}},
        {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {SECRET: 1}},
        {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"a": json.dumps({"b": [SECRET]})}},
        {"type": "tool_result", "tool_use_id": "toolu_1", "content": SECRET},
        {"type": "tool_result", "tool_use_id": "toolu_1", "content": [text(json.dumps({"k": SECRET}))]},
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": SECRET}},
        {"type": "unheard_of", "payload": {"deep": [[{"x": SECRET}]]}},
        text(base64.b64encode(SECRET.encode()).decode()),
    ],
)
def test_a_secret_in_any_place_that_can_be_rewritten_is_replaced(content: dict[str, Any]) -> None:
    result = Session().send(anthropic(text("look"), content))

    assert result.body is not None
    assert result.rewritten
    assert not any(SECRET in t for t in texts_of(result.body))
    assert base64.b64encode(SECRET.encode()) not in result.body


@pytest.mark.parametrize(
    "body",
    [
        anthropic(text("hi"), model=SECRET),
        anthropic(text("hi"), metadata={SECRET: "1"}),
        anthropic(text("hi"), tools=[{"name": SECRET, "description": "d", "input_schema": {}}]),
        anthropic({"type": "tool_result", "tool_use_id": SECRET, "content": "x"}),
        anthropic({"type": "thinking", "thinking": f"the key is {SECRET}", "signature": "c2ln" * 20}),
    ],
)
def test_a_secret_where_nothing_may_be_rewritten_denies(body: dict[str, Any]) -> None:
    result = Session().send(body)

    assert result.body is None
    assert result.maskings == ()


def test_personal_data_in_an_identifier_is_said_and_passes() -> None:
    result = Session().send(anthropic(text(f"mail {MAIL}"), metadata={"user_id": MAIL}))

    assert result.body is not None
    assert json.loads(result.body)["metadata"]["user_id"] == MAIL
    assert MAIL not in json.dumps(json.loads(result.body)["messages"])
    assert "pii.flagged" in result.reason_codes


def test_a_signed_body_is_never_edited() -> None:
    clean = Session().send(anthropic(text("hi")), rewritable=False)
    dirty = Session().send(anthropic(text(SECRET)), rewritable=False)

    assert clean.body is not None
    assert dirty.body is None


@pytest.mark.parametrize(
    "target", [f"/v1/messages?trace={SECRET}", f"/v1/{SECRET}", f"/v1/messages?{SECRET}"]
)
def test_a_secret_in_the_target_denies(target: str) -> None:
    assert Session().send(anthropic(text("hi")), target=target).body is None


def test_the_calls_own_key_in_the_query_is_no_finding() -> None:
    session = Session()
    body = {"contents": [{"parts": [{"text": "hi"}]}]}
    target = f"/v1beta/models/gemini-x:generateContent?key={SECRET}"

    assert session.send(body, host="generativelanguage.googleapis.com", target=target).body is not None


def test_headers_are_looked_at_and_credentials_are_not() -> None:
    body = anthropic(text("hi"))

    assert Session().send(body, headers=[(b"X-Api-Key", SECRET.encode())]).body is not None
    assert Session().send(body, headers=[(b"X-Note", SECRET.encode())]).body is None


def test_a_value_once_masked_is_masked_without_its_context() -> None:
    session = Session()
    value = "Zq8!mettle-crane"
    first = session.send(anthropic(text(f"password={value}")))
    second = session.send(
        anthropic(text(f"is {value} strong?"), text(base64.b64encode(value.encode()).decode()))
    )

    assert first.body is not None
    assert second.body is not None
    assert value not in second.body.decode()
    assert base64.b64encode(value.encode()) not in second.body
    assert set(first.carried) == set(second.carried)


def test_a_value_masked_in_one_object_is_masked_in_all_objects_of_the_request() -> None:
    value = "Zq8!mettle-crane"
    result = Session().send(
        anthropic(text(f"earlier: {value}"), text(f"password={value}"), text(value[::-1]))
    )

    assert result.body is not None
    assert value not in result.body.decode()
    assert value[::-1] not in result.body.decode()


def test_old_objects_are_neither_scanned_nor_read_again() -> None:
    session = Session()
    history = [text(f"line {i} {SECRET if i == 3 else ''}") for i in range(30)]
    first = session.send(anthropic(*history))
    before = session.scanned_texts
    second = session.send(anthropic(*history, text("new")))

    assert session.scanned_texts - before < 10
    assert first.body is not None
    assert second.body is not None
    cut = first.body.rindex(b'"line 29')
    assert second.body[:cut] == first.body[:cut]


def test_a_loosened_policy_does_not_reach_back_into_a_conversation() -> None:
    session = Session()
    history = anthropic(text(f"key {SECRET}"))
    first = session.send(history)
    session.rules = policy(enforcement="shadow")
    again = session.send(
        {**history, "messages": [*history["messages"], {"role": "user", "content": "go on"}]}
    )

    assert again.body is not None
    assert SECRET not in again.body.decode()
    assert first.carried == again.carried


def test_a_tightened_policy_does_not_edit_under_a_signature() -> None:
    session = Session(rules=policy(enforcement="shadow"))
    signed = {"type": "thinking", "thinking": "hm", "signature": base64.b64encode(bytes(range(200))).decode()}
    turn = {
        "model": "m",
        "messages": [
            {"role": "user", "content": f"key {SECRET}"},
            {"role": "assistant", "content": [signed, text("done")]},
        ],
    }
    assert session.send(turn).body is not None
    session.rules = policy()
    going_on = {"type": "tool_result", "tool_use_id": "t", "content": "on"}
    refused = session.send({**turn, "messages": [*turn["messages"], {"role": "user", "content": [going_on]}]})
    result = session.send({**turn, "messages": [*turn["messages"], {"role": "user", "content": "on"}]})

    assert refused.body is None  # the provider insists on the thinking of the turn that is going on
    assert "conversation.signed_prefix" in refused.reason_codes
    assert result.body is not None
    assert SECRET.encode() not in result.body
    assert json.loads(result.body)["messages"][1]["content"] == [text("done")]
    assert "conversation.signed_prefix" in result.reason_codes


def test_only_placeholders_of_this_project_are_left_alone() -> None:
    ours, theirs = Session(), Session(project="other")
    token = ours.placeholders.issue("x", "PASSWORD")
    result = theirs.send(anthropic(text(f"password={token}")))

    assert result.body is not None
    assert token not in result.body.decode()
    assert ours.send(anthropic(text(f"password={token}"))).carried == (token,)


def test_nothing_shows_content_in_a_repr() -> None:
    result = Session().send(anthropic(text(f"key {SECRET}")))

    assert SECRET not in repr(result)
    assert SECRET not in repr(result.objects)
    assert SECRET not in repr([item.leaves for item in result.objects])
