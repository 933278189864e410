"""Old history that may not leave is withheld as a block: a session goes on, and what is refused says how."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from gateway.classify.evaluate import Evaluation
from gateway.classify.history import history_end
from gateway.contract import ContextDispositionV1 as D
from tests.support.evaluation import Session, rules_of, texts_of

SECRET = "ghp_" + "aB3dE5fG7h" * 3 + "aB3dE5"
SIGNATURE = base64.b64encode(bytes(range(200))).decode()
DENY = (
    'when = { category = "secret" }\nthen = { disposition = "deny", reason_codes = ["secret.blocked"] MORE }'
)
RULES = rules_of(DENY.replace("MORE", ""))
ANSWER = {"role": "assistant", "content": "ok"}
ON = {"role": "user", "content": "and now?"}


def ask(*messages: Any, **more: Any) -> dict[str, Any]:
    return {"model": "m", "messages": list(messages), **more}


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def signed(text: str) -> dict[str, Any]:
    return {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": SIGNATURE},
            {"type": "text", "text": text},
        ],
    }


def said(evaluation: Evaluation) -> list[str]:
    assert evaluation.body is not None
    return texts_of(evaluation.body)


def test_what_the_model_answered_after_is_withheld_and_the_rest_goes_on() -> None:
    sent = Session(rules=RULES).send(ask(user(f"key {SECRET}"), ANSWER, ON))
    first = next(item for item in sent.objects if item.treatment)

    assert sent.body is not None
    assert SECRET.encode() not in sent.body
    assert any(text.startswith("[Withheld by your organisation's egress gateway") for text in said(sent))
    assert "and now?" in said(sent)
    assert first.decision.disposition is D.DENY
    assert {"history.withheld", "secret.blocked"} <= {*first.decision.reason_codes}


def test_what_is_said_now_is_refused_however_often_and_withheld_once_the_client_says_something_else() -> None:
    session = Session(rules=RULES)
    refused = [session.send(ask(user(f"key {SECRET}"))) for _ in range(2)]
    on = session.send(ask(user(f"key {SECRET}"), ON))
    later = session.send(ask(user(f"key {SECRET}"), ON, ANSWER, user("more")))

    assert [r.body for r in refused] == [None, None]
    assert "message 1 of 1" in refused[0].way_on
    assert "Go on with another message" in refused[0].way_on
    assert on.body is not None
    assert SECRET.encode() not in on.body
    assert (later.body or b"").startswith(on.body[:-2])


def test_a_tool_result_of_this_turn_is_withheld_once_something_else_follows_in_its_message() -> None:
    session = Session(rules=RULES)
    call = {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": "t1", "name": "Bash", "input": {}}],
    }
    result = {"type": "tool_result", "tool_use_id": "t1", "content": f"key {SECRET}"}
    refused = session.send(ask(user("go"), call, user([result])))
    on = session.send(ask(user("go"), call, user([result, {"type": "text", "text": "leave it"}])))

    assert refused.body is None
    assert "message 3 of 3 (a tool result)" in refused.way_on
    assert on.body is not None
    stub = json.loads(on.body)["messages"][2]["content"][0]
    assert (stub["type"], stub["tool_use_id"]) == ("tool_result", "t1")
    assert SECRET.encode() not in on.body


def test_a_value_that_a_withheld_object_gives_away_leaves_from_no_other() -> None:
    """`password=` gives a value away that nothing else does: it must not leave where the model is told it again."""
    value = "Zq8vN2xLp0"
    session = Session(rules=RULES)
    session.send(ask(user(f"password={value}")))
    on = session.send(ask(user(f"password={value}"), user(f"it begins with {value}")))

    assert on.body is None
    assert "message 2 of 2" in on.way_on


@pytest.mark.parametrize("turn", ["first", "later"])
def test_a_rule_can_ask_that_a_request_is_refused_whatever_is_old(turn: str) -> None:
    session = Session(rules=rules_of(DENY.replace("MORE", ', parameters = { stub = "refuse" }')))
    messages = [user(f"key {SECRET}"), *([ANSWER, ON] if turn == "later" else [])]
    refused = session.send(ask(*messages))

    assert refused.body is None


def test_an_answer_that_is_to_be_continued_makes_nothing_history() -> None:
    assert Session(rules=RULES).send(ask(user(f"key {SECRET}"), ANSWER)).body is None


def test_prompts_and_parameters_are_never_history() -> None:
    refused = Session(rules=RULES).send(ask(user("a"), ANSWER, ON, system=f"key {SECRET}"))

    assert refused.body is None
    assert "the system prompt" in refused.way_on
    assert "Take it out" in refused.way_on


def test_a_finding_that_a_stub_would_leave_in_its_place_keeps_the_request_here() -> None:
    call = {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": f"t{SECRET}", "name": "Bash", "input": {}}],
    }
    result = {"type": "tool_result", "tool_use_id": f"t{SECRET}", "content": "x"}
    assert Session().send(ask(user("go"), call, user([result]), ANSWER, ON)).body is None


def test_a_body_that_the_client_signed_is_refused_as_it_cannot_have_a_stub() -> None:
    refused = Session(rules=RULES).send(ask(user(f"key {SECRET}"), ANSWER, ON), rewritable=False)

    assert refused.body is None
    assert "Take it out, or start a new conversation" in refused.way_on


def test_what_waits_for_a_person_is_withheld_from_history_and_carried_once_approved() -> None:
    rule = 'when = { kind = "tool_result" }\nthen = { disposition = "allow_with_approval", reason_codes = ["x.y"] }'
    session = Session(rules=rules_of(rule))
    call = {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": "t1", "name": "Bash", "input": {}}],
    }
    result = user([{"type": "tool_result", "tool_use_id": "t1", "content": "words"}])
    waiting = session.send(ask(user("go"), call, result))
    on = session.send(ask(user("go"), call, result, ON))
    held = next(i for i in on.objects if i.decision.disposition is D.ALLOW_WITH_APPROVAL)
    session.reviews[f"allow_with_approval-{held.digest.hex()[:12]}"] = "released"
    approved = session.send(ask(user("go"), call, result, ON))

    assert waiting.body is None
    assert "once it is approved" in waiting.way_on
    assert any("allow_with_approval-" in text and "release" in text for text in said(on))
    assert "words" not in said(on)
    assert "words" in said(approved)


def test_signed_answers_after_what_changed_go_with_it_also_the_one_just_received() -> None:
    """What the provider signed was made over what it was sent then; a tightened rule changes that."""
    lax, tight = Session(), Session(rules=rules_of('when = { kind = "text", channel = "user", pointer = "/messages/0/**" }\nthen = { disposition = "quarantine", reason_codes = ["x.y"] }'))  # fmt: skip
    sent = lax.send(ask(user("hello there")))
    tight.chains, tight.cache = lax.chains, lax.cache
    over = tight.send(ask(user("hello there"), signed("hi"), ON))
    going_on = tight.send(
        ask(
            user("hello there"),
            {"role": "assistant", "content": [*signed("hi")["content"], {"type": "tool_use", "id": "t", "name": "B", "input": {}}]},
            user([{"type": "tool_result", "tool_use_id": "t", "content": "x"}]),
        )
    )  # fmt: skip

    assert sent.body is not None
    assert over.body is not None
    assert json.loads(over.body)["messages"][1]["content"] == [{"type": "text", "text": "hi"}]
    assert going_on.body is None
    assert "conversation.signed_prefix" in going_on.reason_codes
    assert "Start a new conversation" in going_on.way_on


@pytest.mark.parametrize(
    ("channels", "end"),
    [
        ([], 0),
        (["user"], 0),
        (["user", "assistant"], 0),
        (["user", "assistant", "user"], 2),
        (["user", "assistant", "tool", "tool"], 2),
        (["assistant", "user", "assistant"], 1),
        (["user", "assistant", "user", "assistant", "assistant"], 2),
    ],
)
def test_history_ends_with_the_last_answer(channels: list[str], end: int) -> None:
    assert history_end(channels) == end
