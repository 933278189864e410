"""What a PDF says is all that it says, or it does not count as read whole."""

from __future__ import annotations

import io

import pytest

from gateway.workers.pdf import MAX_CHARACTERS, read

pypdf = pytest.importorskip("pypdf", reason="the extra `documents` is not installed")
SECRET = "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"  # a published sample whose checksum holds


def document(stream: bytes, **names: str) -> bytes:
    """A page with nothing on it, and a compressed stream beside it that no page shows."""
    writer = pypdf.PdfWriter()
    writer.add_blank_page(100, 100)
    made = pypdf.generic.DecodedStreamObject()
    made.set_data(stream)
    for name, value in names.items():
        made[pypdf.generic.NameObject(f"/{name}")] = pypdf.generic.NameObject(f"/{value}")
    writer._add_object(made.flate_encode())
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def test_a_document_of_more_text_than_is_given_out_is_not_whole() -> None:
    text, whole = read(document(b"a " * (MAX_CHARACTERS // 2 + 99) + SECRET.encode()))
    assert (len(text), whole) == (MAX_CHARACTERS, False)


@pytest.mark.parametrize("coding", ["ascii", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("name", ["Note", "Length1"])  # the second one is how fonts are told
def test_a_stream_that_no_page_shows_is_read(coding: str, name: str) -> None:
    text, whole = read(document(f"see {SECRET} there".encode(coding), **{name: "x"}))
    assert SECRET in text
    assert whole


def test_a_picture_that_no_page_shows_is_not_read() -> None:
    _, whole = read(document(SECRET.encode(), Subtype="Image"))
    assert not whole


def test_a_comment_is_read() -> None:
    head, mark, tail = document(b"").rpartition(b"startxref")
    text, _ = read(head + b"%" + SECRET.encode() + b"\n" + mark + tail)
    assert SECRET in text


def test_a_stream_that_no_table_leads_to_makes_a_document_less_than_whole() -> None:
    head, mark, tail = document(b"").rpartition(b"startxref")
    assert read(head + mark + tail)[1]
    lost = b"99 0 obj\n<< /Length 4 >>\nstream\nabcd\nendstream\nendobj\n"
    assert not read(head + lost + mark + tail)[1]
