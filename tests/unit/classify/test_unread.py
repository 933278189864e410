"""Bytes that cannot be read are what their structure says, and the policy's switch for that decides wherever they stand."""

from __future__ import annotations

import base64
import json

import pytest

from gateway.classify import unread
from gateway.context.objects import ObjectKind
from tests.support.evaluation import Session
from tests.support.pictures import jpeg, pdf, png

ZIP = b"PK\x03\x04" + bytes(range(200))
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
M, D, O = ObjectKind.MEDIA, ObjectKind.DOCUMENT, ObjectKind.OPAQUE  # noqa: E741


@pytest.mark.parametrize(
    ("data", "mime", "where", "expected"),
    [
        (png(), "image/png", M, (M, "unsupported", unread.MEDIA)),
        (png(), "", M, (M, "unsupported", unread.MEDIA)),
        (png(), "", O, (M, "unsupported", unread.MEDIA)),
        (jpeg(), "application/octet-stream", O, (M, "unsupported", unread.MEDIA)),
        (png() + b"x", "image/png", M, (M, "failed", "media.malformed")),
        (png()[:-4], "image/png", O, (M, "failed", "media.malformed")),
        (b"\x01\x02" * 50, "", M, (M, "unsupported", unread.MEDIA)),  # sound without a head
        (b"\x01\x02" * 50, "", O, (O, "unsupported", unread.OPAQUE)),
        (b"\x01\x02" * 50, "image/tiff", O, (O, "unsupported", unread.OPAQUE)),
        (ZIP, "", M, (O, "unsupported", unread.OPAQUE)),
        (ZIP, "image/tiff", M, (O, "unsupported", unread.OPAQUE)),
        (ZIP, DOCX, M, (D, "unsupported", unread.DOCUMENT)),
        (ZIP, "", D, (D, "unsupported", unread.DOCUMENT)),
        (ZIP, "application/msword", O, (D, "unsupported", unread.DOCUMENT)),
        (pdf("x"), "", M, (D, "unsupported", unread.DOCUMENT)),
        (pdf("x"), "application/pdf", O, (D, "unsupported", unread.DOCUMENT)),
    ],
)  # fmt: skip
def test_what_bytes_count_as(
    data: bytes, mime: str, where: ObjectKind, expected: tuple[str, str, str]
) -> None:
    assert unread.judged(data, mime, where) == expected


@pytest.mark.parametrize(
    ("mime", "data", "code"),
    [
        (DOCX, ZIP, "coverage.unsupported_document"),
        ("application/pdf", pdf("x", packed=True), "coverage.unsupported_document"),
        ("application/x-thing", b"\x00\xff" * 300, "coverage.opaque"),
        ("image/tiff", ZIP, "coverage.opaque"),
    ],
)
@pytest.mark.parametrize("place", ["gemini", "chat", "responses", "anthropic", "tool"])
def test_no_document_passes_in_a_picture_s_place(place: str, mime: str, data: bytes, code: str) -> None:
    text = base64.b64encode(data).decode()
    uri = f"data:{mime};base64,{text}"
    source = {"type": "base64", "media_type": mime, "data": text}
    host, target, body = {
        "gemini": ("generativelanguage.googleapis.com", "/v1beta/models/m:generateContent",
                   {"contents": [{"parts": [{"inlineData": {"mimeType": mime, "data": text}}]}]}),
        "chat": ("api.openai.com", "/v1/chat/completions",
                 {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": uri}}]}]}),
        "responses": ("api.openai.com", "/v1/responses",
                      {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": uri}]}]}),
        "anthropic": ("api.anthropic.com", "/v1/messages",
                      {"messages": [{"role": "user", "content": [{"type": "image", "source": source}]}]}),
        "tool": ("api.anthropic.com", "/v1/messages",
                 {"messages": [{"role": "user", "content": [
                     {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "image", "source": source}]}]}]}),
    }[place]  # fmt: skip
    result = Session().send(json.dumps(body).encode(), host=host, target=target)
    assert result.body is None
    assert code in result.reason_codes
