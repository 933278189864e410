"""JSON of a caller, read a second time as text: values that are told by another member than their own."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from gateway.classify.layout import layouts
from gateway.context import walk
from gateway.context.objects import Block, Channel, Leaf, Limits, ObjectKind, WalkRules
from gateway.detect.engine import Engine, build
from tests.support.evaluation import Session

RULES: Final = WalkRules(free_form=frozenset({"input"}), known_names=frozenset({"content", "input"}))
TOKEN: Final = "Rq8wVtYzP3kLm5NxC7dJ"
COPPER: Final = "Copper44x-harbor"
TOLD_BY_OTHERS: Final = {
    "a name and its value": ({"env": [{"name": "DB_PASSWORD", "value": COPPER}, {"name": "LOG", "value": "debug"}]}, COPPER),
    "a parameter": ({"Parameters": [{"ParameterKey": "DbPassword", "ParameterValue": COPPER}]}, COPPER),
    "data of a Kubernetes Secret": ({"kind": "Secret", "data": {"license": "Q29wcGVyNDR4LWhhcmJvcg=="}}, "Q29wcGVyNDR4LWhhcmJvcg=="),
    "a registry's login": ({"auths": {"registry.corp.io": {"auth": "c3ZjOkNvcHBlcjQ0eC1oYXJib3I="}}}, "c3ZjOkNvcHBlcjQ0eC1oYXJib3I="),
    "an option and its argument": ({"args": ["deploy", "--token", TOKEN]}, TOKEN),
    "the lines of a key": ({"lines": ["-----BEGIN PRIVATE KEY-----", TOKEN * 3, TOKEN[::-1] * 3, "-----END PRIVATE KEY-----"]}, TOKEN[::-1] * 3),
    "the private number of a JSON Web Key": ({"kty": "EC", "crv": "P-256", "x": TOKEN + "aB3" * 7, "d": TOKEN + "xY9" * 7 + "_-"}, TOKEN + "xY9" * 7 + "_-"),
}  # fmt: skip


@pytest.fixture(scope="module")
def detector() -> Engine:
    """The built-in rules, made once."""
    return build()


def laid_out(content: Any) -> list[str]:
    block = Block(("messages", 0), ObjectKind.TOOL_RESULT, Channel.TOOL, content)
    return [layout.text for layout in layouts(walk.leaves(block, RULES, Limits()))]


def turn(document: Any, *, as_text: bool) -> bytes:
    """A tool's result that is JSON in a string, or a tool's input that is JSON itself."""
    block: dict[str, Any] = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": document}
    if as_text:
        block = {"type": "tool_result", "tool_use_id": "toolu_1", "content": json.dumps(document)}
    role = "user" if as_text else "assistant"
    return json.dumps(
        {"model": "m", "max_tokens": 5, "messages": [{"role": role, "content": [block]}]}
    ).encode()


@pytest.mark.parametrize("as_text", [True, False], ids=["in a string", "as itself"])
@pytest.mark.parametrize(("document", "value"), TOLD_BY_OTHERS.values(), ids=TOLD_BY_OTHERS.keys())
def test_what_names_a_value_may_stand_in_another_member(
    document: Any, value: str, as_text: bool, detector: Engine
) -> None:
    session = Session(detector)
    sent = turn(document, as_text=as_text)
    result = session.send(sent)

    assert result.body is not None
    assert value not in result.body.decode()
    assert session.send(sent).body == result.body


def test_a_document_is_laid_out_as_it_would_stand_in_a_file() -> None:
    document = {
        "a": [{"n": "x", "v": "yy"}, {"k": None}],
        "b": {"c": [["p"], ["q"]]},
        "d": 12345678,
        "e": True,
    }
    expected = [
        '{"a": [{"n": "x", "v": "yy"}~{"k": null}]~"b": {"c": [["p"]~["q"]]}~"d": "12345678"~"e": null}'.replace(
            "~", ",\n" + " " * 48
        )
    ]
    assert laid_out({"content": json.dumps(document)}) == expected
    assert laid_out({"input": document}) == expected
    assert json.loads(expected[0])["b"] == document["b"]


def test_long_strings_and_those_with_lines_are_left_out() -> None:
    assert laid_out({"input": {"a": "x" * 5000, "b": "y\nz", "c": "w"}}) == [
        '{"a": "..."~"b": "..."~"c": "w"}'.replace("~", ",\n" + " " * 48)
    ]


def test_what_is_one_string_or_the_dialects_own_is_not_read_again() -> None:
    assert laid_out({"content": "plain", "other": "x"}) == []
    assert laid_out({"input": {"command": "ls"}}) == []


def test_an_element_is_not_named_by_the_one_before_it_unless_that_is_an_option(detector: Engine) -> None:
    names = {"required": ["Username", "Password", "S3Configuration", "CopyCommand"]}
    body = turn(names, as_text=True)
    assert Session(detector).send(body).body == body


UNTOLD: Final = {
    "a date that is not there": {"date_of_birth": None, "created_at": "1990-05-01", "n": "x"},
    "a date that is unknown": {"date_of_birth": "unknown", "created_at": "1990-05-01", "n": "x"},
    "a passport that is not there": {"passport_number": None, "invoice": "X1234567", "n": "x"},
    "whether there is one": {"has_passport": True, "invoice": "X1234567", "n": "x"},
    "a number that is pending": {"ssn": "pending", "order": "219099998", "n": "x"},
    "the last digits of one": {"ssn_last4": "1234", "zip": "219099998", "n": "x"},
    "no account": {"bank_account": "none on file", "order_id": "82736451", "n": "x"},
}


@pytest.mark.parametrize("document", UNTOLD.values(), ids=UNTOLD.keys())
def test_a_label_does_not_reach_into_the_next_member(document: Any, detector: Engine) -> None:
    body = turn(document, as_text=True)
    assert Session(detector).send(body).body == body


@pytest.mark.parametrize(
    "value", ["hK8x2mQz9#+14155552671#Lw", "pw:bob.k@corp.com:hK8x2mQz9Lw4", "hK8x2mQz9Lw4vT\n"]
)
def test_a_value_leaves_in_no_part(value: str, detector: Engine) -> None:
    sent = turn(
        {"env": [{"name": "DB_PASSWORD", "value": value}, {"name": "LOG", "value": "debug"}]}, as_text=True
    )
    session = Session(detector)
    result = session.send(sent)
    assert result.body is not None
    assert "hK8x2mQz9" not in result.body.decode()
    assert "Lw" not in result.body.decode()
    assert session.send(sent).body == result.body


@pytest.mark.parametrize("as_text", [True, False], ids=["in a string", "as itself"])
def test_a_layout_that_was_not_read_to_its_end_counts_as_not_read(as_text: bool, detector: Engine) -> None:
    words = [word for n in range(600) for word in ("--token", f"{n:03}aB{n * 7919 % 9973:04}xQz")]
    session = Session(detector)
    result = session.send(turn({"args": words}, as_text=as_text))

    assert {item.scanned.coverage_reason for item in result.objects} == {"", "coverage.budget_exhausted"}
    assert result.body is None


def test_a_document_of_passwords_is_read_to_its_end(detector: Engine) -> None:
    values = [f"{n:02}aB{n * 7919 % 9973:04}xQzKv{n}" for n in range(99)]
    document = {"env": [{"name": f"DB_PASSWORD_{n}", "value": value} for n, value in enumerate(values)]}
    result = Session(detector).send(turn(document, as_text=True))

    assert result.body is not None
    assert not [value for value in values if value.encode() in result.body]


def test_nothing_shows_content_in_a_repr() -> None:
    leaf = Block(("m",), ObjectKind.TOOL_RESULT, Channel.TOOL, {"input": {"a": "xx", "b": "secret"}})
    found: list[Leaf] = walk.leaves(leaf, RULES, Limits())
    assert "secret" not in repr(layouts(found))
