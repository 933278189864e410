"""Small files of real structure: a picture, a photograph, a document, with text in the places that hold text."""

from __future__ import annotations

import base64
import struct
import zlib


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(*, text: str = "", packed: str = "") -> bytes:
    """One white pixel; `text` in a tEXt chunk, `packed` in a zTXt chunk (PNG 3rd edition §11.3.3)."""
    chunks = [_chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0))]
    chunks += [_chunk(b"tEXt", b"Comment\0" + text.encode("latin-1"))] if text else []
    chunks += [_chunk(b"zTXt", b"Comment\0\0" + zlib.compress(packed.encode("latin-1")))] if packed else []
    chunks += [_chunk(b"IDAT", zlib.compress(b"\0\xff")), _chunk(b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


_JPEG = base64.b64decode(
    "/9j/2wBDAAMCAgICAgMCAgIDAwMDBAYEBAQEBAgGBgUGCQgKCgkICQkKDA8MCgsOCwkJDRENDg8QEBEQCgwSExIQEw8QEBD/yQALCAABAAEBAREA"
    "/8wABgAQEAX/2gAIAQEAAD8A0s8g/9k="
)


def jpeg(*, comment: str = "") -> bytes:
    """One pixel; `comment` in a COM segment (ITU-T T.81 B.2.4.5)."""
    data = comment.encode()
    segment = b"\xff\xfe" + struct.pack(">H", len(data) + 2) + data if data else b""
    return _JPEG[:2] + segment + _JPEG[2:]


def pdf(text: str, *, packed: bool = False) -> bytes:
    """One page that shows a text; `packed` deflates the stream that draws it (ISO 32000-1 §7.3.8)."""
    draw = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET".encode("latin-1")
    stream = zlib.compress(draw) if packed else draw
    coding = b"/Filter /FlateDecode " if packed else b""
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R"
        b" /Resources << /Font << /F1 5 0 R >> >> >>",
        b"<< %s/Length %d >>\nstream\n%s\nendstream" % (coding, len(stream), stream),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    out, places = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    size = len(objects) + 1
    return out + (
        b"xref\n0 %d\n0000000000 65535 f \n%strailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n"
        % (size, table, size, len(out))
    )
