"""Bodies that are no single JSON document: forms, files, JSON lines, text, and requests for tokens."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlencode

import pytest

from gateway.context.objects import ObjectKind
from gateway.errors import BodyError
from gateway.policy import load_policy
from tests.support.evaluation import Session, bundle, texts_of
from tests.unit.providers.test_dialects import PIXEL

TOKEN = "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"
FORM = "multipart/form-data; boundary=edge7MA4YWx"
PICTURE = __import__("base64").b64decode(PIXEL)
EVERY_BYTE = bytes(range(256)) + b"\r\n--edge7MA4YW\r\n--edge7MA4YWxx\r\n"


def part(data: bytes | str, name: str = "file", filename: str = "", kind: str = "") -> bytes:
    head = f'Content-Disposition: form-data; name="{name}"' + (f'; filename="{filename}"' if filename else "")
    lines = [head, *([f"Content-Type: {kind}"] if kind else [])]
    body = data if isinstance(data, bytes) else data.encode()
    return b"--edge7MA4YWx\r\n" + "\r\n".join(lines).encode() + b"\r\n\r\n" + body + b"\r\n"


def form(*parts: bytes) -> bytes:
    return b"".join(parts) + b"--edge7MA4YWx--\r\n"


def send(body: bytes, kind: str = FORM, session: Session | None = None, **more: Any) -> Any:
    return (session or Session()).send(
        body, host="api.openai.com", target=more.pop("target", "/v1/files"), content_type=kind, **more
    )


def flagging() -> Session:
    """A policy that lets through what cannot be read, and says so."""
    layers = [bundle("examples/uploads")]
    return Session(rules=load_policy(layers, mode="governed", enforcement="enforce"))


def test_a_clean_form_leaves_byte_for_byte() -> None:
    body = form(part("assistants", "purpose"), part("hello,\r\nworld", filename="a.txt", kind="text/plain"))
    result = send(body)

    assert result.body == body
    assert not result.rewritten
    assert [o.block.kind for o in result.objects if o.pointer.startswith("/parts")] == [
        ObjectKind.FORM_PART
    ] * 4


@pytest.mark.parametrize(
    ("data", "filename", "kind"),
    [
        (f"see {TOKEN} there", "a.txt", "text/plain"),
        (f"see {TOKEN} there", "a.bin", "application/octet-stream"),
        (f"see {TOKEN} there", "", ""),
        (f'{{"a": {{"b": ["{TOKEN}"]}}, "n": 1.50}}', "a.json", "application/json"),
        (f'{{"a": "x\\u0067{TOKEN}"}}', "a.json", ""),
        (f'{{"{TOKEN}": 1}}', "a.json", "application/json"),
        (f'{{"a": 1}}\n{{"b": "{TOKEN}"}}\n', "a.jsonl", ""),
        (f'{{"a": 1}}\n{{"b": "{TOKEN}"}}\n', "a.log", "text/plain"),
        (f"a,b\n1,{TOKEN}\n", "a.csv", "text/csv"),
        (f'{{"a": not json, "b": "{TOKEN}"}}', "a.json", "application/json"),
    ],
)
def test_a_secret_in_a_part_is_replaced_and_nothing_else_changes(data: str, filename: str, kind: str) -> None:
    before, after = part("assistants", "purpose"), part(PICTURE, "p", "p.png", "image/png")
    result = send(form(before, part(data, filename=filename, kind=kind), after))
    placeholder = result.maskings[0].token

    assert result.rewritten
    assert result.body == form(
        before, part(data.replace(TOKEN, placeholder), filename=filename, kind=kind), after
    )
    assert result.carried == (placeholder,)


def test_a_file_of_every_byte_follows_the_policy() -> None:
    body = form(
        part("user_data", "purpose"),
        part(EVERY_BYTE, filename="Größe — 1.bin", kind="application/octet-stream"),
    )
    refused, passed = send(body), send(body, session=flagging())

    assert refused.body is None
    assert "coverage.opaque" in refused.reason_codes
    assert passed.body == body
    (unread,) = [o for o in passed.objects if o.block.kind is ObjectKind.OPAQUE]
    assert (unread.scanned.coverage, unread.scanned.opaque_bytes) == ("unsupported", len(EVERY_BYTE))


@pytest.mark.parametrize(
    ("data", "kind", "expected", "coverage"),
    [
        (PICTURE, "image/png", ObjectKind.MEDIA, ("unsupported", "coverage.unsupported_media")),
        (PICTURE, "", ObjectKind.MEDIA, ("unsupported", "coverage.unsupported_media")),
        (PICTURE + TOKEN.encode(), "image/png", ObjectKind.MEDIA, ("failed", "media.malformed")),
        (b"\x00\x01" + PICTURE, "image/png", ObjectKind.MEDIA, ("failed", "media.malformed")),
        (b"%PDF-1.7\n\x00\xff\n%%EOF\n", "application/pdf", ObjectKind.DOCUMENT, ("unsupported", "coverage.unsupported_document")),
        (b"%PDF-1.4\nall of it can be read\n%%EOF\n", "text/plain", ObjectKind.FORM_PART, ("complete", "")),
        (b"PK\x03\x04\x00\xff", "application/zip", ObjectKind.OPAQUE, ("unsupported", "coverage.opaque")),
        (b"\x00\xff" + TOKEN.encode(), "image/unheard-of", ObjectKind.OPAQUE, ("unsupported", "coverage.opaque")),
    ],
)  # fmt: skip
def test_what_bytes_are_said_to_be(data: bytes, kind: str, expected: str, coverage: tuple[str, str]) -> None:
    result = send(form(part(data, filename="f", kind=kind)))
    item = next(o for o in result.objects if o.pointer == "/parts/0")

    assert item.block.kind is expected
    assert (item.scanned.coverage, item.scanned.coverage_reason) == coverage


@pytest.mark.parametrize(
    "body",
    [
        form(part("x", TOKEN)),
        form(part("x", filename=f"{TOKEN}.txt")),
        form(part("x", filename="a", kind=f"text/plain; x={TOKEN}")),
        form(part("x").replace(b"\r\n\r\n", f"\r\nX-More: {TOKEN}\r\n\r\n".encode(), 1)),
    ],
)
def test_a_secret_in_a_name_is_refused(body: bytes) -> None:
    result = send(body)

    assert result.body is None
    assert "secret.blocked" in result.reason_codes
    assert not any(TOKEN in o.pointer for o in result.objects)


def test_what_is_no_form_is_refused() -> None:
    for body in (b"x", form(part("x")) + b"epilogue", b"preamble\r\n" + form(part("x"))):
        with pytest.raises(BodyError, match=r"body\.malformed"):
            send(body)


def line(url: str, body: dict[str, Any], number: int = 1) -> str:
    return json.dumps({"custom_id": f"task-{number}", "method": "POST", "url": url, "body": body})


CHAT = {"model": "m", "messages": [{"role": "user", "content": f"see {TOKEN}"}]}
RESPONSES = {
    "model": "m",
    "input": [{"role": "user", "content": [{"type": "input_text", "text": f"and {TOKEN}"}]}],
}


def test_a_batch_is_read_line_by_line_in_the_dialect_of_each() -> None:
    lines = [
        line("/v1/chat/completions", CHAT),
        "",
        line("/v1/responses", RESPONSES).replace('", "', '",  "'),
        "{}\r",
    ]
    data = "\n".join(lines) + "\n"
    result = send(form(part("batch", "purpose"), part(data, filename="b.jsonl")))
    placeholder = result.maskings[0].token

    assert result.body == form(
        part("batch", "purpose"), part(data.replace(TOKEN, placeholder), filename="b.jsonl")
    )
    kinds = {o.pointer: (o.block.kind, o.dialect) for o in result.objects}
    assert kinds["/parts/1/lines/0/body/messages/0/content"] == (ObjectKind.TEXT, "openai_chat.batch/1")
    assert kinds["/parts/1/lines/2/body/input/0/content/0"] == (ObjectKind.TEXT, "openai_responses.batch/1")
    assert kinds["/parts/1/lines/2"] == (ObjectKind.PARAMETERS, "openai_responses.batch/1")


def test_a_secret_in_the_envelope_of_a_line_is_refused() -> None:
    result = send(form(part(line("/v1/chat/completions", {"model": TOKEN}), filename="b.jsonl")))

    assert result.body is None
    assert "secret.blocked" in result.reason_codes


def test_a_line_that_is_not_json_is_refused() -> None:
    with pytest.raises(BodyError, match=r"body\.malformed"):
        send(form(part('{"a": 1}\nsee it', filename="b.jsonl")))


def test_lines_of_gemini_and_of_nobody() -> None:
    gemini = json.dumps({"key": "k", "request": {"contents": [{"parts": [{"text": f"a {TOKEN}"}]}]}})
    own = json.dumps({"messages": [{"role": TOKEN}], "id": TOKEN})
    result = send(f"{gemini}\n{own}\n".encode(), "application/jsonl")

    assert result.body is not None
    assert TOKEN.encode() not in result.body
    assert [o.block.kind for o in result.objects[:3]] == [
        ObjectKind.TEXT,
        ObjectKind.PARAMETERS,
        ObjectKind.FORM_PART,
    ]


def test_a_long_batch_has_an_object_a_line() -> None:
    lines = [
        line("/v1/chat/completions", {"model": "m", "messages": [{"role": "user", "content": f"n {n}"}]}, n)
        for n in range(1500)
    ]
    clean = "\n".join(lines).encode()
    lines[700] = line("/v1/chat/completions", CHAT, 700)
    result = send("\n".join(lines).encode(), "application/jsonl")

    assert send(clean, "application/jsonl").body == clean
    assert [o.block.kind for o in result.objects[:-1]] == [ObjectKind.FORM_PART] * 1500
    assert result.body == "\n".join(lines).replace(TOKEN, result.maskings[0].token).encode()
    lines[700] = line(TOKEN, CHAT, 700)
    assert send("\n".join(lines).encode(), "application/jsonl").body is None


def test_too_many_lines_are_refused() -> None:
    with pytest.raises(BodyError) as caught:
        send(b'{"a": 1}\n' * 5000, "application/jsonl")
    assert (caught.value.code, caught.value.status) == ("body.too_many_objects", 413)


def test_text_bodies_are_read_and_rewritten() -> None:
    result = send(f"see {TOKEN}, \u00e4".encode(), "text/plain; charset=utf-8")

    assert result.body == f"see {result.maskings[0].token}, \u00e4".encode()


def test_json_is_read_as_json_whatever_it_is_called() -> None:
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": TOKEN}]}).encode()
    for kind in ("", "text/plain", "application/x-www-form-urlencoded", "application/octet-stream"):
        result = send(body, kind, target="/v1/chat/completions")
        assert result.rewritten
        assert result.objects[0].pointer == "/messages/0/content"


def test_forms_are_read_and_never_rewritten() -> None:
    clean = urlencode({"q": "hello world", "n": "1"}).encode()
    for pairs in ({"q": f"a {TOKEN}"}, {TOKEN: "1"}, {"q": "x", "r": TOKEN[:6] + "%"}):
        body = urlencode(pairs).encode()
        result = send(body, "application/x-www-form-urlencoded")
        assert (result.body is None) is (TOKEN in pairs or f"a {TOKEN}" in pairs.values())
    assert send(clean, "application/x-www-form-urlencoded").body == clean


@pytest.mark.parametrize("kind", ["application/grpc", "application/connect+proto", "application/x-protobuf"])
def test_protobuf_is_never_counted_as_read(kind: str) -> None:
    result = send(b"\n\x05hello", kind)

    assert result.body is None
    assert result.objects[0].scanned.coverage == "unsupported"


@pytest.mark.parametrize("kind", ["application/json", "application/x-www-form-urlencoded"])
@pytest.mark.parametrize(
    ("host", "target"),
    [("platform.claude.com", "/v1/oauth/token"), ("auth.openai.com", "/oauth/token"), ("oauth2.googleapis.com", "/token")],
)  # fmt: skip
def test_a_refresh_token_goes_to_the_one_who_issued_it(host: str, target: str, kind: str) -> None:
    def body(**more: str) -> bytes:
        pairs = {"grant_type": "refresh_token", "client_id": "app", "refresh_token": TOKEN, **more}
        return (json.dumps(pairs) if kind.endswith("json") else urlencode(pairs)).encode()

    def ask(data: bytes, host: str = host) -> Any:
        return Session().send(data, host=host, target=target, content_type=kind)

    own, elsewhere, hidden = ask(body()), ask(body(), "api.cohere.com"), ask(body(note=TOKEN))

    assert own.body == body()
    assert elsewhere.body is None or TOKEN.encode() not in elsewhere.body
    assert hidden.body is None or hidden.body.count(TOKEN.encode()) == 1
    assert ask(body(refresh_token=f"see {TOKEN} there")).body is None or TOKEN not in str(
        texts_of(ask(body(refresh_token=f"see {TOKEN} there")).body)
    )


def test_embeddings_by_token_ids_follow_the_policy() -> None:
    for tokens in ([1, 2, 3], [[1, 2], [3]]):
        body = {"model": "m", "input": tokens}
        result = Session().send(body, host="api.openai.com", target="/v1/embeddings")
        assert result.body is None
        assert "coverage.opaque" in result.reason_codes


def test_a_placeholder_inside_base64_is_carried() -> None:
    import base64

    document = {
        "type": "base64",
        "media_type": "text/plain",
        "data": base64.b64encode(f"k={TOKEN}".encode()).decode(),
    }
    body = {"messages": [{"role": "user", "content": [{"type": "document", "source": document}]}]}
    result = Session().send(body)

    assert result.rewritten
    assert result.carried == (result.maskings[0].token,)
