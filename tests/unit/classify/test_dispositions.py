"""Every disposition on whole requests: what leaves, in which shape, and the same again on the next turn."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from gateway.classify.evaluate import Evaluation
from gateway.contract import ContextDispositionV1 as D
from tests.support.evaluation import Session, rules_of, texts_of

SECRET = "ghp_" + "aB3dE5fG7h" * 3 + "aB3dE5"
SIGNATURE = base64.b64encode(bytes(range(200))).decode()
TOOL = 'when = { kind = "tool_result" }\nthen = { disposition = "DISPOSITION", reason_codes = ["x.y"] MORE }'


def rule(disposition: str, more: str = "") -> str:
    return TOOL.replace("DISPOSITION", disposition).replace("MORE", more)


def cut(minimiser: str, **parameters: object) -> str:
    given = json.dumps({"minimiser": minimiser, **parameters})
    inside = given[1:-1].replace('": ', '" = ')
    return rule("allow_minimized", f', transformations = ["selection"], parameters = {{ {inside} }}')


def conversation(content: Any, *later: Any) -> dict[str, Any]:
    return {
        "model": "m",
        "messages": [
            {"role": "user", "content": "run it"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "Bash", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": content}]},
            *later,
        ],
    }


def result_of(evaluation: Evaluation) -> Any:
    assert evaluation.body is not None
    return json.loads(evaluation.body)["messages"][2]["content"][0]


def lines(count: int, prefix: str = "line") -> str:
    return "".join(f"{prefix} {n}\n" for n in range(count))


@pytest.mark.parametrize(
    "content",
    [
        "hidden words",
        [{"type": "text", "text": "hidden words"}, {"type": "text", "text": "more hidden"}],
        json.dumps({"hidden": ["words", 12345678901]}),
    ],
)
def test_a_quarantined_result_is_a_stub_that_still_answers_its_call(content: Any) -> None:
    session = Session(rules=rules_of(rule("quarantine")))
    body = json.dumps(conversation(content))
    first = session.send(body.encode())
    stubbed = result_of(first)

    assert b"hidden" not in (first.body or b"")
    assert b"12345678901" not in (first.body or b"")
    assert stubbed["tool_use_id"] == "t1"
    assert stubbed["type"] == "tool_result"
    assert any("quarantine" in text for text in texts_of(json.dumps(stubbed["content"]).encode()))
    assert first.rewritten
    assert "quarantine.held" in first.reason_codes
    start = body.index('{"type": "tool_result"')
    assert (first.body or b"")[:start] == body.encode()[:start]
    assert (first.body or b"").endswith(b"}]}]}")


def test_a_resend_is_stubbed_the_same_way_and_a_release_carries_the_object() -> None:
    session = Session(rules=rules_of(rule("quarantine")))
    body = conversation("hidden words")
    first = session.send(body)
    following = conversation("hidden words", {"role": "assistant", "content": "ok"})
    second = session.send(following)
    held = next(item for item in second.objects if item.decision.disposition is D.QUARANTINE)
    session.reviews[f"quarantine-{held.digest.hex()[:12]}"] = "released"
    third = session.send(following)
    fourth = session.send(following)

    assert (second.body or b"").startswith((first.body or b"")[:-2])
    assert third.body == json.dumps(following).encode()
    assert fourth.body == third.body
    assert "quarantine.released" in third.reason_codes


def test_a_released_object_is_still_masked() -> None:
    session = Session(rules=rules_of(rule("quarantine")))
    session.send(conversation(f"key {SECRET}"))
    held = next(i for i in session.send(conversation(f"key {SECRET}")).objects if i.treatment)
    session.reviews[f"quarantine-{held.digest.hex()[:12]}"] = "released"
    released = session.send(conversation(f"key {SECRET}"))

    assert result_of(released)["content"].startswith("key EGRESS_GITHUB_TOKEN_")
    assert SECRET.encode() not in (released.body or b"")


def test_lifting_a_quarantine_does_not_lift_the_approval_beneath() -> None:
    session = Session(rules=rules_of(rule("quarantine"), rule("allow_with_approval")))
    held = next(i for i in session.send(conversation("words")).objects if i.treatment)
    name = held.digest.hex()[:12]
    session.reviews[f"quarantine-{name}"] = "released"
    waiting = session.send(conversation("words"))
    session.reviews[f"allow_with_approval-{name}"] = "released"
    approved = session.send(conversation("words"))

    assert waiting.body is None
    assert "approval.pending" in waiting.reason_codes
    assert result_of(approved)["content"] == "words"


def test_a_rule_can_ask_to_refuse_the_whole_request() -> None:
    refused = Session(rules=rules_of(rule("quarantine", ', parameters = { stub = "refuse" }'))).send(
        conversation("words")
    )

    assert refused.body is None
    assert "quarantine.held" in refused.reason_codes


@pytest.mark.parametrize(
    ("host", "target", "body", "place"),
    [
        (
            "api.openai.com",
            "/v1/chat/completions",
            {"model": "m", "messages": [{"role": "tool", "tool_call_id": "c", "content": "hidden"}]},
            ["messages", 0, "content"],
        ),
        (
            "api.openai.com",
            "/v1/responses",
            {"model": "m", "input": [{"type": "function_call_output", "call_id": "c", "output": "hidden"}]},
            ["input", 0, "output"],
        ),
        (
            "generativelanguage.googleapis.com",
            "/v1beta/models/gemini-x:generateContent",
            {"contents": [{"role": "user", "parts": [
                {"functionResponse": {"name": "f", "response": {"hidden": "words"}}}]}]},
            ["contents", 0, "parts", 0, "functionResponse", "response", "withheld"],
        ),
    ],
)  # fmt: skip
def test_stubs_have_the_shape_of_their_dialect(
    host: str, target: str, body: dict[str, Any], place: list[Any]
) -> None:
    sent = Session(rules=rules_of(rule("quarantine"))).send(body, host=host, target=target)

    assert sent.body is not None
    assert b"hidden" not in sent.body
    found: Any = json.loads(sent.body)
    for token in place:
        found = found[token]
    assert "Withheld by your organisation's egress gateway" in found


def test_a_call_with_arguments_as_json_text_keeps_json_text() -> None:
    held = 'when = { kind = "tool_call" }\nthen = { disposition = "quarantine", reason_codes = ["x.y"] }'
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a": "hidden"}'}}
    body = {"model": "m", "messages": [{"role": "assistant", "content": None, "tool_calls": [call]}]}
    sent = Session(rules=rules_of(held)).send(body, host="api.openai.com", target="/v1/chat/completions")

    assert sent.body is not None
    function = json.loads(sent.body)["messages"][0]["tool_calls"][0]["function"]
    assert function["name"] == "f"
    assert json.loads(function["arguments"]).keys() == {"withheld"}


def test_a_picture_that_is_held_becomes_a_text_part() -> None:
    held = 'when = { kind = "media" }\nthen = { disposition = "quarantine", reason_codes = ["x.y"] }'
    png = base64.b64encode(
        base64.b64decode(
            "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
        )
    ).decode()
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": png}}
    body = {"model": "m", "messages": [{"role": "user", "content": [image, {"type": "text", "text": "see"}]}]}
    sent = Session(rules=rules_of(held)).send(body)

    assert sent.body is not None
    first, second = json.loads(sent.body)["messages"][0]["content"]
    assert first["type"] == "text"
    assert second == {"type": "text", "text": "see"}


def thinking(*later: Any) -> dict[str, Any]:
    signed = {"type": "thinking", "thinking": f"the key is {SECRET}", "signature": SIGNATURE}
    said = [signed, {"type": "text", "text": "done"}]
    return {
        "model": "m",
        "messages": [{"role": "user", "content": "go"}, {"role": "assistant", "content": said}, *later],
    }


def test_thinking_with_a_secret_goes_as_a_whole_block_once_its_turn_is_over() -> None:
    session = Session()
    over = session.send(thinking({"role": "user", "content": "and now?"}))
    going_on = Session().send(
        thinking({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "x"}]})
    )

    assert over.body is not None
    assert json.loads(over.body)["messages"][1]["content"] == [{"type": "text", "text": "done"}]
    assert going_on.body is None
    assert "egress.sealed_content" in going_on.reason_codes


@pytest.mark.parametrize(
    ("minimiser", "content", "left"),
    [
        (cut("head_tail", head_lines=1, tail_lines=1), lines(10), "line 0\n[8 lines cut by the egress gateway]\nline 9\n"),
        (cut("head_tail", line_chars=10), "a" * 30, "aaaaa[20 characters cut by the egress gateway]aaaaa"),
        (cut("head_tail"), "short", "short"),
        (
            cut("match_lines", pattern="ERROR", before=1, after=0),
            "a\nb\nERROR x\nc\n",
            "[1 line cut by the egress gateway]\nb\nERROR x\n[1 line cut by the egress gateway]\n",
        ),
        (
            cut("drop_fields", fields="log, trace"),
            '{"id": 1, "log": ["x"], "deep": {"trace": "y"}}',
            '{"id": 1, "log": "[cut by the egress gateway]", "deep": {"trace": "[cut by the egress gateway]"}}',
        ),
        (cut("drop_fields", fields="log"), '{"a": 1}\n{"log": 2}\n', '{"a": 1}\n{"log": "[cut by the egress gateway]"}\n'),
        (cut("drop_fields", fields="log"), "no json", "[7 characters cut by the egress gateway]"),
    ],
)  # fmt: skip
def test_minimisers_keep_parts_and_say_what_they_cut(minimiser: str, content: str, left: str) -> None:
    session = Session(rules=rules_of(minimiser))
    first, again = session.send(conversation(content)), session.send(conversation(content))

    assert result_of(first)["content"] == left
    assert again.body == first.body


def test_what_an_earlier_message_said_is_not_sent_twice() -> None:
    session = Session(rules=rules_of(cut("deduplicate", min_lines=5)))
    body = conversation("new\n" + lines(12) + "end\n")
    body["messages"][0]["content"] = "look:\n" + lines(12)

    assert result_of(session.send(body))["content"] == "new\n[12 lines cut by the egress gateway]\nend\n"


def test_cuts_and_masks_meet_in_one_text() -> None:
    session = Session(rules=rules_of(cut("head_tail", head_lines=2, tail_lines=1)))
    sent = session.send(conversation(f"key {SECRET}\n{lines(5)}last {SECRET}\n"))
    text = result_of(sent)["content"]

    assert SECRET not in text
    assert text.count("EGRESS_GITHUB_TOKEN_") == 2
    assert "4 lines cut" in text
    assert {"allow_redacted"} == {str(i.decision.disposition) for i in sent.objects if i.edits}


def test_two_minimisers_leave_what_each_of_them_leaves() -> None:
    one = cut("head_tail", head_lines=2, tail_lines=0)
    two = cut("match_lines", pattern="[13]", before=0, after=0)
    both = result_of(Session(rules=rules_of(one, two)).send(conversation(lines(5))))["content"]

    kept = [line for line in both.splitlines() if line.startswith("line")]
    assert kept == ["line 1"]
    assert both == result_of(Session(rules=rules_of(two, one)).send(conversation(lines(5))))["content"]


SUMMARY = rule("allow_summary_only", ', parameters = { summariser = "NAME" }')


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("auto", json.dumps({"users": [{"mail": "x", "age": 7}], "a b": 1}), ["users: array of 1", "mail: string", "age: integer", "1 other members"]),
        ("auto", "id,name\n1,Ann\n2,Bob\n", ["table of 2 columns, 2 rows", "id: integer", "name: text"]),
        ("auto", "import os\nclass A:\n  def f(self, x=1):\n    'doc'\n    return 'hush'\n", ["import os", "class A", "def f(self, x)"]),
        ("code_outline", "export class Foo {\n  let hush = 1\n}\nfunc bar() {}\n", ["class Foo", "func bar"]),
        ("log_templates", "".join(f"2026 Connected user hush{n} ok\n" for n in range(3)), ["3 x * Connected user * ok"]),
        ("csv_schema", "no table", []),
        ("counts", "hush", []),
        ("python_outline", "def (:", []),
    ],
)  # fmt: skip
def test_summaries_say_shape_and_counts_and_no_values(name: str, content: str, said: list[str]) -> None:
    session = Session(rules=rules_of(SUMMARY.replace("NAME", name)))
    first, again = session.send(conversation(content)), session.send(conversation(content))
    text = result_of(first)["content"]

    assert text.startswith("[extract by the egress gateway; withheld: ")
    assert all(part in text for part in said)
    for value in ("Ann", "hush", "'doc'"):
        assert value not in text
    assert again.body == first.body
    assert first.reason_codes == ("x.y",)


def test_a_summary_that_names_a_secret_does_not_leave() -> None:
    session = Session(rules=rules_of(SUMMARY.replace("NAME", "python_outline")))
    sent = session.send(conversation(f"def {SECRET}(a): pass\n"))

    assert sent.body is not None
    assert SECRET.encode() not in sent.body


def test_two_different_summaries_say_only_how_much_was_withheld() -> None:
    rules = rules_of(SUMMARY.replace("NAME", "auto"), SUMMARY.replace("NAME", "json_schema"))
    text = result_of(Session(rules=rules).send(conversation('{"a": 1}')))["content"]

    assert text == "[extract by the egress gateway; withheld: 1 lines, 8 characters]"


def test_what_cannot_be_summarised_in_its_place_is_denied() -> None:
    rules = rules_of(
        'when = { kind = "parameters" }\nthen = { disposition = "allow_summary_only", reason_codes = ["x.y"] }'
    )
    refused = Session(rules=rules).send(conversation("x"))

    assert refused.body is None
    assert "transform.impossible" in refused.reason_codes


def test_what_waits_for_a_person_keeps_everything_here_until_approved() -> None:
    session = Session(rules=rules_of(rule("allow_with_approval")))
    waiting = session.send(conversation("words"))
    held = next(i for i in waiting.objects if i.decision.disposition is D.ALLOW_WITH_APPROVAL)
    session.reviews[f"allow_with_approval-{held.digest.hex()[:12]}"] = "refused"
    declined = session.send(conversation("words"))
    session.reviews[f"allow_with_approval-{held.digest.hex()[:12]}"] = "released"
    approved = session.send(conversation("words"))

    assert waiting.body is None
    assert waiting.reason_codes == ("approval.pending", "x.y")
    assert declined.reason_codes == ("approval.denied", "x.y")
    assert approved.body == json.dumps(conversation("words")).encode()


def test_local_only_is_denied_for_a_remote_model() -> None:
    refused = Session(rules=rules_of(rule("allow_local_model_only"))).send(conversation("words"))

    assert refused.body is None
    assert "destination.remote_restricted" in refused.reason_codes


def test_what_a_quarantined_object_gives_away_is_masked_elsewhere() -> None:
    body = conversation("password=Nvrm-4711-kRt")
    body["messages"][0]["content"] = "try Nvrm-4711-kRt"
    sent = Session(rules=rules_of(rule("quarantine"))).send(body)

    assert sent.body is not None
    assert b"Nvrm-4711-kRt" not in sent.body
    assert b"EGRESS_PASSWORD_" in sent.body


def test_reasoning_that_messages_name_is_never_dropped_alone() -> None:
    reasoning = {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": f"key {SECRET}"}],
        "encrypted_content": SIGNATURE,
    }
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}", "id": "fc_1"}
    items = [reasoning, call, {"role": "user", "content": "on"}]
    sent = Session().send({"model": "m", "input": items}, host="api.openai.com", target="/v1/responses")

    assert sent.body is None
    assert "egress.sealed_content" in sent.reason_codes
