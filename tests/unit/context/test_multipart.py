"""multipart/form-data: parts are cut at delimiter lines only, and what is not touched stays byte for byte."""

import pytest

from gateway.context import multipart
from gateway.context.objects import Limits
from gateway.errors import BodyError

LIMITS = Limits()
TRICKY = b"\x00\xff--b\r\n--bx\r\n--b trailing\r\nx--b--\r\n\n--b\n--b--\n"
BODY = (
    b'--b\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nassistants\r\n'
    b'--b \t\r\ncontent-disposition: form-data; name="file"; filename="a \\"q\\" %22.txt"\r\nContent-Type: text/plain\r\n\r\n'
    + TRICKY
    + b'\r\n--b\r\nContent-Disposition: form-data; name="empty"\r\n\r\n\r\n--b--\r\n'
)


def parts_of(body: bytes, boundary: str = "b", limits: Limits = LIMITS) -> list[multipart.Part]:
    return multipart.parse(body, boundary, limits)


def test_parts_and_their_bytes() -> None:
    parts = parts_of(BODY)
    assert [(p.name, p.filename, p.content_type, BODY[p.start : p.end]) for p in parts] == [
        ("purpose", None, "", b"assistants"),
        ("file", 'a "q" %22.txt', "text/plain", TRICKY),
        ("empty", None, "", b""),
    ]
    assert parts[1].headers[1] == ("content-type", "text/plain")


def test_rebuilding() -> None:
    parts = parts_of(BODY)
    assert multipart.rebuild(BODY, parts, {}) == BODY
    assert multipart.rebuild(BODY, parts, {0: b"batch"}) == BODY.replace(b"assistants", b"batch")
    again = parts_of(multipart.rebuild(BODY, parts, {0: b"", 2: b"x"}))
    assert [p.end - p.start for p in again] == [0, len(TRICKY), 1]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"preamble\r\n" + BODY, "body.malformed"),
        (BODY + b"epilogue", "body.malformed"),
        (BODY.replace(b"--b--\r\n", b""), "body.malformed"),
        (BODY.replace(b"\r\n", b"\n"), "body.malformed"),
        (b"", "body.malformed"),
        (b"--b\r\n\r\nno header\r\n--b--", "body.malformed"),
        (b"--b\r\nContent-Type: text/plain\r\n\r\nno disposition\r\n--b--", "body.malformed"),
        (b'--b\r\nContent-Disposition: form-data; name="a"; name="b"\r\n\r\nx\r\n--b--', "body.malformed"),
        (b'--b\r\nContent-Disposition: form-data;\r\n name="folded"\r\n\r\nx\r\n--b--', "body.malformed"),
        (b'--b\r\nContent-Disposition: form-data; name="a"\r\nContent-Transfer-Encoding: base64\r\n\r\neA==\r\n--b--',
         "encoding.unsupported"),
        (b'--b\r\nContent-Disposition: form-data; name="a"\r\nContent-Encoding: gzip\r\n\r\neA==\r\n--b--', "encoding.unsupported"),
    ],
)  # fmt: skip
def test_what_must_not_be_read(body: bytes, code: str) -> None:
    with pytest.raises(BodyError) as caught:
        parts_of(body)
    assert caught.value.code == code


def test_the_number_of_parts_is_bounded() -> None:
    assert len(parts_of(BODY, limits=Limits(max_objects=3))) == 3
    with pytest.raises(BodyError, match=r"body\.too_many_nodes"):
        parts_of(BODY, limits=Limits(max_objects=2))


def test_an_empty_form() -> None:
    assert parts_of(b"--b--\r\n") == []
    assert parts_of(b"--b\r\n--b--\r\n") == []


def test_extended_file_names() -> None:
    head = b"Content-Disposition: form-data; name=f; filename=plain; filename*=UTF-8''%e2%82%ac.txt"
    (part,) = parts_of(b"--b\r\n" + head + b"\r\n\r\nx\r\n--b--")
    assert (part.name, part.filename) == ("f", "€.txt")


@pytest.mark.parametrize(
    ("content_type", "boundary"),
    [
        ("multipart/form-data; boundary=abc", "abc"),
        ('Multipart/Form-Data; charset=utf-8; Boundary="a b:c"', "a b:c"),
    ],
)
def test_the_boundary(content_type: str, boundary: str) -> None:
    assert multipart.boundary(content_type) == boundary


@pytest.mark.parametrize("content_type", ["multipart/form-data", "text/plain; boundary=x", "multipart/form-data; boundary=" + "x" * 71,
                                          "multipart/form-data; boundary=a; boundary=b", 'multipart/form-data; boundary="a\r\n"'])  # fmt: skip
def test_boundaries_that_are_not_usable(content_type: str) -> None:
    with pytest.raises(BodyError, match=r"body\.malformed"):
        multipart.boundary(content_type)
