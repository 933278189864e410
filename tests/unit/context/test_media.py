"""Structure checks: whole files pass, files with something hidden behind the end do not."""

import base64
import struct
import zlib

import pytest

from gateway.context import base64text, media, mediatext


def png() -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(b"\0\0\0\0"))
        + chunk(b"IEND", b"")
    )


def wav(samples: bytes = b"\1\2\3\4") -> bytes:
    body = (
        b"WAVEfmt "
        + struct.pack("<IHHIIHH", 16, 1, 1, 8000, 8000, 1, 8)
        + b"data"
        + struct.pack("<I", len(samples))
        + samples
    )
    return b"RIFF" + struct.pack("<I", len(body)) + body


JPEG = (
    b"\xff\xd8\xff\xe0\x00\x10JFIF\0\1\1\0\0\1\0\1\0\0"
    + b"\xff\xda\x00\x08\1\1\0\0\x3f\0" + b"\x12\xff\x00\x34\xff\xd0\x56" + b"\xff\xd9"
)  # fmt: skip
GIF = (
    b"GIF89a\1\0\1\0\x80\0\0\0\0\0\xff\xff\xff"
    + b"!\xf9\x04\0\0\0\0\0"
    + b",\0\0\0\0\1\0\1\0\0\x02\x02D\x01\0"
    + b";"
)
WEBP = b"RIFF" + struct.pack("<I", 12) + b"WEBPVP8L" + b"\0\0\0\0"
PDF = b"%PDF-1.7\n1 0 obj\n<<>>\nendobj\ntrailer\n<<>>\nstartxref\n9\n%%EOF\n"
MP4 = struct.pack(">I", 16) + b"ftypisom\0\0\0\0" + struct.pack(">I", 12) + b"mdat" + b"abcd"
MP3 = b"ID3\x04\0\0\0\0\0\x02xx" + (b"\xff\xfb\x90\x00" + bytes(413)) * 3


def ogg(*pages: bytes) -> bytes:
    return b"".join(
        b"OggS\0\0"
        + bytes(20)
        + bytes([len(p) // 255 + 1])
        + b"\xff" * (len(p) // 255)
        + bytes([len(p) % 255])
        + p
        for p in pages
    )


FLAC = b"fLaC\x00\x00\x00\x22" + bytes(34) + b"\x84\x00\x00\x04abcd" + b"\xff\xf8" + bytes(40)
AAC = (b"\xff\xf1\x50\x80" + bytes([20 >> 3, (20 & 7) << 5 | 31, 0xFC]) + bytes(13)) * 5
WEBM = b"\x1a\x45\xdf\xa3\x84abcd" + b"\x18\x53\x80\x67\x88" + b"\x1f\x43\xb6\x75\x83abc"
FILES = [
    ("image/png", png()),
    ("image/jpeg", JPEG),
    ("image/gif", GIF),
    ("image/webp", WEBP),
    ("audio/wav", wav()),
    ("audio/mpeg", MP3),
    ("audio/ogg", ogg(b"OpusHead" + bytes(11), b"OpusTags" + bytes(300))),
    ("audio/aac", AAC),
    ("video/webm", WEBM),
    ("application/pdf", PDF),
    ("video/mp4", MP4),
]


@pytest.mark.parametrize(("mime", "data"), FILES)
def test_whole_files_pass_in_every_form(mime: str, data: bytes) -> None:
    text = base64.b64encode(data).decode()
    assert media.check(mime, data) == ""
    assert media.check(mime.upper() + "; q=1", text) == ""
    assert media.check("", f"data:{mime};base64,{text}") == ""
    assert media.check("", text) == ""
    assert media.sniff(data) == mime


def cut(mime: str, data: bytes, end: int) -> str:
    """What a prefix is: recordings are cut in mid-frame every day (not in the first), everything else must be whole."""
    return "" if end >= len(data) or (mime == "audio/mpeg" and end >= 433) else media.MALFORMED


@pytest.mark.parametrize(("mime", "data"), FILES)
def test_hidden_tails_cut_files_and_other_types_do_not(mime: str, data: bytes) -> None:
    secret = b"AWS_SECRET_ACCESS_KEY=0123456789abcdef0123456789abcdef01234567"
    assert media.check(mime, data + secret) == media.MALFORMED
    assert media.check(mime, data[: len(data) // 2]) == cut(mime, data, len(data) // 2)
    assert media.check(mime, secret) == media.MALFORMED
    assert media.check(mime, b"") == media.MALFORMED


def test_what_is_no_base64_is_malformed_and_unknown_types_pass() -> None:
    assert media.check("image/png", "not base64!") == media.MALFORMED
    assert media.check("application/zip", b"PK\3\4") == ""
    assert media.check("text/plain", b"text") == ""
    assert media.check("text/plain", "text".encode("utf-16")) == media.MALFORMED
    assert media.check("", b"\0\1\2") == ""


def test_formats_without_an_end_of_their_own() -> None:
    assert media.check("audio/x-flac", FLAC) == ""
    assert media.check("audio/flac", FLAC[:60]) == ""  # frames say no length
    assert media.check("audio/flac", b"fLaC" + b"see the key there " * 9) == media.MALFORMED
    live = WEBM[:13] + b"\x01\xff\xff\xff\xff\xff\xff\xff" + WEBM[14:]
    assert media.check("audio/webm", live) == ""
    assert media.sniff(FLAC) == "audio/flac"


@pytest.mark.parametrize(
    "data", [FLAC, WEBM[:13] + b"\x01\xff\xff\xff\xff\xff\xff\xff" + WEBM[14:], ogg(b"OpusTags")]
)
def test_what_is_hidden_among_samples_is_read(data: bytes) -> None:
    assert not any("hunter2" in text for text in mediatext.texts("", data))
    assert any("hunter2" in text for text in mediatext.texts("", data + b"\0the password is hunter2\0"))


def test_text_that_begins_like_a_recording_is_none() -> None:
    """A byte order mark is also the sync word of MPEG audio."""
    assert media.check("", "see the key there ".encode("utf-16") * 400) == media.MALFORMED


def test_a_container_holds_chunks_and_nothing_else() -> None:
    secret = b"ghp_secret in a chunk that is none"
    riff = b"RIFF" + struct.pack("<I", len(secret) + 4) + b"WAVE" + secret
    assert media.check("audio/wav", riff) == media.MALFORMED


@pytest.mark.parametrize("end", range(0, 64, 7))
def test_every_prefix_is_judged_without_an_error(end: int) -> None:
    for mime, data in FILES:
        assert media.check(mime, data[:end]) == cut(mime, data, end)


@pytest.mark.parametrize(
    ("text", "sealed"),
    [
        (base64.b64encode(bytes(range(256))).decode(), True),
        (base64.urlsafe_b64encode(bytes(range(200, 256)) * 3).decode(), True),
        ("gAAAAABl" + base64.urlsafe_b64encode(bytes(range(100))).decode(), True),
        ("The job reads its settings from deploy/uploader.env, so I should look there", False),
        (
            base64.b64encode(
                b"The password of the database is hunter2, do not tell anyone about it"
            ).decode(),
            False,
        ),
        ("c2ln", False),
        ("ghp_" + "a1B2c3D4" * 8, False),
        ("sk-ant-api03-" + "a1B2c3D4" * 12, False),
        ("AKIA" + "Q7RT" * 16, False),
        (base64.b64encode(bytes(range(256))).decode() + " tail", False),
        ("", False),
        ("A" * 5_000_000, False),
    ],
)
def test_what_can_be_sealed(text: str, sealed: bool) -> None:
    assert media.sealed_ok(text) is sealed


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("aGk=", b"hi"),
        ("aGk", b"hi"),
        ("aG\r\nk=\n", b"hi"),
        ("-_-_", b"\xfb\xff\xbf"),
        ("data:text/plain;base64,aGk=", b"hi"),
        ("DATA:text/plain;charset=utf-8;BASE64,aGk=", b"hi"),
        ("aGk==", None),
        ("a", None),
        ("a+b_", None),
        ("aGk=x", None),
        ("", None),
        ("data:text/plain,hi", None),
        ("ü", None),
    ],
)
def test_base64_is_read_strictly(text: str, data: bytes | None) -> None:
    encoded = base64text.decode(text)
    assert (None if encoded is None else encoded.data) == data


@pytest.mark.parametrize(
    ("mime", "textual"),
    [("text/plain; charset=utf-8", True), ("application/json", True), ("application/ld+json", True), ("image/svg+xml", True),
     ("application/x-yaml", True), ("text/csv", True), ("image/png", False), ("application/pdf", False), ("", False)],
)  # fmt: skip
def test_types_that_hold_text(mime: str, textual: bool) -> None:
    assert media.textual(mime) is textual
