"""Roles that depend on what surrounds a string: media beside its type, text in base64, data URIs, the caller's own JSON."""

import base64
import json
from typing import Any

import pytest

from gateway.context import walk
from gateway.context.objects import Block, Channel, Json, Leaf, LeafRole, Limits, ObjectKind, WalkRules
from gateway.errors import BodyError
from tests.support import pictures
from tests.unit.context.test_media import PDF, png

RULES = WalkRules(
    structural=frozenset({"type", "media_type"}),
    sealed=frozenset({"signature"}),
    media=frozenset({"data"}),
    references=frozenset({"url"}),
    free_form=frozenset({"input"}),
    known_names=frozenset({"text", "source"}),
)
PNG = base64.b64encode(png()).decode()
TEXT64 = base64.b64encode(b"password: hunter2").decode()


def leaves(value: Json, kind: ObjectKind = ObjectKind.TEXT, limits: Limits | None = None) -> list[Leaf]:
    return walk.leaves(Block((), kind, Channel.USER, value), RULES, limits or Limits())


def one(value: Json, kind: ObjectKind = ObjectKind.TEXT) -> Leaf:
    (leaf,) = [
        x
        for x in leaves(value, kind)
        if x.name in {"data", "text", "url", "result", "signature"} and "name" not in x.role
    ][:1]  # what media say in words comes after them
    return leaf


@pytest.mark.parametrize(
    ("source", "role", "text", "mime"),
    [
        ({"media_type": "image/png", "data": PNG}, LeafRole.MEDIA, PNG, "image/png"),
        ({"media_type": "image/png", "data": "no base64 at all"}, LeafRole.MEDIA, "no base64 at all", "image/png"),
        ({"media_type": "text/plain", "data": TEXT64}, LeafRole.ENCODED, "password: hunter2", "text/plain"),
        ({"media_type": "image/png", "data": TEXT64}, LeafRole.ENCODED, "password: hunter2", "image/png"),
        ({"data": TEXT64}, LeafRole.ENCODED, "password: hunter2", ""),
        ({"type": "text", "media_type": "text/plain", "data": TEXT64}, LeafRole.TEXT, TEXT64, ""),
        ({"media_type": "text/plain", "data": "not coded"}, LeafRole.TEXT, "not coded", "text/plain"),
        ({"data": "sk_live_0123456789abcdef"}, LeafRole.STRUCTURAL, "sk_live_0123456789abcdef", ""),
        ({"format": "pdf", "data": base64.b64encode(PDF).decode()}, LeafRole.MEDIA, base64.b64encode(PDF).decode(), "application/pdf"),
        ({"text": "data:image/png;base64," + PNG}, LeafRole.MEDIA, "data:image/png;base64," + PNG, "image/png"),
        ({"url": "data:text/csv;base64," + TEXT64}, LeafRole.ENCODED, "password: hunter2", "text/csv"),
        ({"url": "https://x.example/a.png"}, LeafRole.REFERENCE, "https://x.example/a.png", ""),
        ({"text": "data:,plain%20text"}, LeafRole.TEXT, "data:,plain%20text", ""),
        ({"text": "data: the figures are below"}, LeafRole.TEXT, "data: the figures are below", ""),
    ],
)  # fmt: skip
def test_media_and_text_in_base64(source: dict[str, Any], role: LeafRole, text: str, mime: str) -> None:
    leaf = one({"source": source})
    assert (leaf.role, leaf.text, leaf.mime) == (role, text, mime)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (pictures.png(text="see hunter2 there"), "hunter2"),
        (pictures.png(packed="see hunter2 there"), "hunter2"),
        (pictures.jpeg(comment="see hunter2 there"), "hunter2"),
        (pictures.pdf("see hunter2 there"), "hunter2"),
        (pictures.png(), ""),
    ],
)
def test_media_are_read_where_they_say_something(data: bytes, said: str) -> None:
    text = base64.b64encode(data).decode()
    media_leaf, *rest = leaves({"source": {"data": text}}, ObjectKind.MEDIA)
    assert (media_leaf.role, media_leaf.text) == (LeafRole.MEDIA, text)
    assert bool(rest) == bool(said)
    assert all(leaf.role is LeafRole.STRUCTURAL for leaf in rest)
    assert not said or any(said in leaf.text for leaf in rest)


def test_what_stands_in_a_place_for_files_is_a_file_however_short() -> None:
    short = base64.b64encode(b"PK\3\4 and a bit").decode()
    assert [x.role for x in leaves({"source": {"data": short}}, ObjectKind.DOCUMENT)] == [
        LeafRole.MEDIA,
        LeafRole.STRUCTURAL,
    ]
    assert [x.role for x in leaves({"source": {"data": short}})] == [LeafRole.STRUCTURAL]


@pytest.mark.parametrize(
    "head", ["data:text/plain;charset=utf-7;base64,", "data:text/plain;charset=UTF-16LE;base64,"]
)
def test_text_in_other_charsets_is_no_text(head: str) -> None:
    first, *_ = leaves({"url": head + TEXT64})
    assert first.role is LeafRole.MEDIA
    assert one({"url": "data:text/plain;charset=utf-8;base64," + TEXT64}).role is LeafRole.ENCODED


def test_the_type_may_stand_further_up() -> None:
    assert one({"format": "png", "source": {"data": PNG}}).mime == "image/png"


def test_pictures_in_tool_results_are_media_only_when_they_prove_it() -> None:
    def inside(**members: str) -> Leaf:
        (leaf,) = [
            x
            for x in leaves({"input": {"text": json.dumps(members)}})
            if x.name == "data" and x.role is not LeafRole.NAME
        ]
        return leaf

    assert inside(mimeType="image/png", data=PNG).role is LeafRole.MEDIA
    assert inside(mimeType="text/plain", data=TEXT64).role is LeafRole.ENCODED
    assert inside(mimeType="image/png", data=PNG + "AAAA").role is LeafRole.TEXT
    assert inside(mimeType="image/png", data="Z2hwXw==").role is LeafRole.TEXT
    assert inside(data=PNG).role is LeafRole.TEXT


def test_kinds_that_change_roles() -> None:
    sealed = base64.b64encode(bytes(range(100))).decode()
    assert one({"data": sealed}, ObjectKind.SEALED).role is LeafRole.SEALED
    assert one({"data": "prose in a sealed block"}, ObjectKind.SEALED).role is LeafRole.STRUCTURAL
    assert one({"text": "hm"}, ObjectKind.THINKING).role is LeafRole.THINKING
    assert one({"result": PNG}, ObjectKind.MEDIA).role is LeafRole.MEDIA
    assert one({"result": "a picture of a cat"}, ObjectKind.MEDIA).role is LeafRole.TEXT
    assert one({"signature": sealed}).role is LeafRole.SEALED
    assert [x.role for x in leaves({"input": {"signature": sealed}})] == [LeafRole.NAME, LeafRole.TEXT]


def test_documents_that_are_not_json_stay_text() -> None:
    for text in ("{not json}", '{"a": 1, "a": 2}', "[section]\nkey = 1", "{", '{"a": NaN}', '"{}"'):
        assert [x.text for x in leaves({"text": text})] == [text]
    assert leaves({"text": "{}"}) == []


def test_encoded_documents_are_read_inside() -> None:
    coded = base64.b64encode(b'{"k": "v"}').decode()
    name, value = leaves({"source": {"media_type": "application/json", "data": coded}})[1:]
    assert (name.role, value.text) == (LeafRole.NAME, "v")
    assert value.outer is not None
    assert (value.outer.role, value.outer.text) == (LeafRole.ENCODED, '{"k": "v"}')


def test_numbers() -> None:
    found = leaves({"input": [1234567, 123456, -1234567, 0.1234567, True, None, 12.5, 10**30]})
    assert [x.text for x in found] == ["1234567", "-1234567", "0.1234567", str(10**30)]
    assert {x.role for x in found} == {LeafRole.NUMBER}


def test_documents_in_strings_cannot_multiply_values() -> None:
    many = json.dumps([json.dumps([1] * 50)] * 50)
    with pytest.raises(BodyError, match=r"body\.too_many_nodes"):
        leaves({"text": many}, limits=Limits(max_nodes=2000))


def test_scalars_as_blocks() -> None:
    block = Block(("messages", 0, "content"), ObjectKind.TEXT, Channel.USER, "hi")
    (leaf,) = walk.leaves(block, RULES, Limits())
    assert (leaf.path, leaf.text, leaf.name) == ((), "hi", "content")
    assert leaves(None) == []


def test_nothing_of_the_content_is_shown() -> None:
    block = Block((), ObjectKind.TEXT, Channel.USER, {"text": "secret"})
    assert "secret" not in repr(block) + repr(walk.leaves(block, RULES, Limits()))


@pytest.mark.parametrize("text", ["It is hunter2.", "hunter2pass", TEXT64, '{"result": "hunter2"}'])
@pytest.mark.parametrize("name", ["document", "documents"])
def test_the_data_of_a_document_without_a_type_is_text(name: str, text: str) -> None:
    """Cohere's tool results and documents hold text under the name that others use for base64."""
    found = [
        leaf
        for leaf in leaves({name: {"data": text}})
        if leaf.name in {"data", "result"} and leaf.role != LeafRole.NAME
    ]

    assert {leaf.role for leaf in found} == {LeafRole.TEXT}
    assert any("hunter2" in leaf.text or leaf.text == TEXT64 for leaf in found)


def test_the_data_of_a_document_with_a_type_is_what_the_type_says() -> None:
    declared = {"document": {"data": TEXT64, "media_type": "text/plain"}}

    assert [leaf.role for leaf in leaves(declared) if leaf.name == "data"] == [LeafRole.ENCODED]
