"""Requests made to slip a secret past the gateway, through a real proxy before a provider that records every byte.

A row is a way of writing the secret, not a secret: each was tried against the whole gateway, and whatever left is a kind
of its own here. Refused or rewritten, both are right; what must never be is the secret, in any form that a server would
read it in, on the provider's side.
"""

from __future__ import annotations

import asyncio
import base64
import gzip
import io
import json
import re
import ssl
import zipfile
import zlib
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote

import brotli
import h2.config
import h2.connection
import h2.events
import pytest
import pytest_asyncio
import zstandard
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from tests.support.client import Connection
from tests.support.gateway import Bench, gateway
from tests.support.pictures import jpeg, pdf, png
from tests.support.sockets import echo

pytestmark = pytest.mark.asyncio(loop_scope="module")

TOKEN = "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"  # a published sample whose checksum holds
CHAT = {"model": "m", "messages": [{"role": "user", "content": f"see {TOKEN} there"}]}
PLAIN = json.dumps(CHAT)
ANTHROPIC, OPENAI, GEMINI = "api.anthropic.com", "api.openai.com", "generativelanguage.googleapis.com"


@dataclass(frozen=True)
class Try:
    """One request. `head` are header lines beyond Host and framing; the content type stands among them."""

    body: bytes = b""
    head: str = ""
    method: str = "POST"
    target: str = "/v1/chat/completions"
    host: str = OPENAI
    chunked: bool = False

    def wire(self) -> bytes:
        """The bytes of it."""
        lines = [f"{self.method} {self.target} HTTP/1.1", f"Host: {self.host}"]
        lines += [line for line in self.head.split("\n") if line]
        data = self.body
        if self.chunked:
            lines.append("Transfer-Encoding: chunked")
            data = b"%x\r\n%s\r\n0\r\n\r\n" % (len(data), data)
        else:
            lines.append(f"Content-Length: {len(data)}")
        return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + data


JSON = "Content-Type: application/json"


def say(text: str, *, ascii_only: bool = True) -> bytes:
    return json.dumps(
        {"model": "m", "messages": [{"role": "user", "content": text}]}, ensure_ascii=ascii_only
    ).encode()


def escaped(text: str) -> str:
    return "".join(f"\\u{ord(c):04x}" for c in text)


def part(content: bytes, disposition: str, kind: str = "", more: str = "") -> bytes:
    lines = (
        [f"Content-Disposition: {disposition}"]
        + ([f"Content-Type: {kind}"] if kind else [])
        + ([more] if more else [])
    )
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + content


def form(*parts: bytes, before: bytes = b"", after: bytes = b"") -> bytes:
    return before + b"".join(b"--XX\r\n" + p + b"\r\n" for p in parts) + b"--XX--\r\n" + after


FORM = "Content-Type: multipart/form-data; boundary=XX"
FILE = 'form-data; name="file"; filename="a.txt"'


def zipped(text: str) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", f"<w:t>{text}</w:t>")
    return data.getvalue()


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def block(kind: str, mime: str, data: bytes) -> bytes:
    source = {"type": "base64", "media_type": mime, "data": b64(data)}
    return json.dumps({"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": [
        {"type": kind, "source": source}]}]}).encode()  # fmt: skip


def utf7(text: str) -> bytes:
    return b"+" + base64.b64encode(text.encode("utf-16-be")).rstrip(b"=") + b"-"


def gz(data: bytes) -> bytes:
    return gzip.compress(data)


BODY = PLAIN.encode()
MESSAGES = {"host": ANTHROPIC, "target": "/v1/messages"}
TRIES: dict[str, Try] = {
    # -- content types
    "no content type": Try(BODY),
    "json as text/plain": Try(BODY, "Content-Type: text/plain"),
    "json as a form": Try(BODY, "Content-Type: application/x-www-form-urlencoded"),
    "json as octets": Try(BODY, "Content-Type: application/octet-stream"),
    "json as xml": Try(BODY, "Content-Type: application/xml"),
    "json as a picture": Try(BODY, "Content-Type: image/png"),
    "json as protobuf": Try(BODY, "Content-Type: application/x-protobuf"),
    "json as grpc": Try(BODY, "Content-Type: application/grpc"),
    "json as vendor type": Try(BODY, "Content-Type: application/vnd.acme.v1+json; profile=x"),
    "an odd content type": Try(BODY, "Content-Type: foo"),
    "two content types": Try(BODY, f"Content-Type: image/png\n{JSON}"),
    "two content types, the other way": Try(BODY, f"{JSON}\nContent-Type: application/x-protobuf"),
    "a secret in the content type": Try(b"{}", f"Content-Type: application/json; note={TOKEN}"),
    "json lines as json": Try(BODY + b"\n" + BODY, JSON),
    "json lines": Try(BODY + b"\n" + BODY, "Content-Type: application/x-ndjson"),
    "json lines parted by carriage returns": Try(BODY + b"\r" + BODY, "Content-Type: application/x-ndjson"),
    # -- charsets
    "utf-16": Try(PLAIN.encode("utf-16"), JSON + "; charset=utf-16"),
    "utf-16 that does not say so": Try(PLAIN.encode("utf-16-le"), JSON),
    "utf-16-be that does not say so": Try(PLAIN.encode("utf-16-be"), JSON),
    "utf-32": Try(PLAIN.encode("utf-32"), JSON),
    "utf-16 text": Try(f"see {TOKEN}".encode("utf-16"), "Content-Type: text/plain; charset=utf-16"),
    "utf-8 with a mark": Try(b"\xef\xbb\xbf" + BODY, JSON),
    "utf-7": Try(b'{"model":"m","messages":[{"role":"user","content":"' + utf7(TOKEN) + b'"}]}', JSON + "; charset=utf-7"),
    "utf-7 text": Try(utf7(TOKEN), "Content-Type: text/plain; charset=utf-7"),
    "ebcdic": Try(TOKEN.encode("cp037"), "Content-Type: text/plain; charset=cp037"),
    "ebcdic in a form": Try(form(part(f"my {TOKEN}".encode("cp037"), FILE, "text/plain; charset=cp037")), FORM, target="/v1/files"),
    "shift-jis": Try(say(TOKEN + "ソ", ascii_only=False).decode().encode("shift-jis"), JSON + "; charset=shift_jis"),
    "latin-1 beside it": Try(b'{"model":"m","messages":[{"role":"user","content":"\xe9 ' + TOKEN.encode() + b'"}]}', JSON + "; charset=iso-8859-1"),
    # -- JSON
    "every letter escaped": Try(b'{"model":"m","messages":[{"role":"user","content":"' + escaped(TOKEN).encode() + b'"}]}', JSON),
    "an escaped member name": Try(b'{"model":"m","m\\u0065ssages":[{"role":"user","content":"' + TOKEN.encode() + b'"}]}', JSON),
    "lone surrogate before it": Try(b'{"model":"m","messages":[{"role":"user","content":"\\ud83d ' + TOKEN.encode() + b'"}]}', JSON),
    "lone surrogate inside it": Try(b'{"model":"m","messages":[{"role":"user","content":"' + (TOKEN[:9] + "\\udc00" + TOKEN[9:]).encode() + b'"}]}', JSON),
    "a repeated member": Try(b'{"model":"m","messages":[{"role":"user","content":"' + TOKEN.encode() + b'"}],"messages":[]}', JSON),
    "a repeated member that is escaped": Try(b'{"model":"m","messages":[{"role":"user","content":"' + TOKEN.encode() + b'"}],"messag\\u0065s":[]}', JSON),
    "bytes after the end": Try(b'{"model":"m","messages":[]}' + b" " * 99 + TOKEN.encode(), JSON),
    "a second document": Try(b'{"model":"m","messages":[]}\n{"x":"' + TOKEN.encode() + b'"}', JSON),
    "a NUL and more": Try(b'{"model":"m","messages":[]}\x00' + TOKEN.encode(), JSON),
    "a comment": Try(b'{"model":"m","messages":[]/*' + TOKEN.encode() + b"*/}", JSON),
    "single quotes": Try(f"{{'a':'{TOKEN}'}}".encode(), JSON),
    "a trailing comma": Try(b'{"a":["' + TOKEN.encode() + b'",]}', JSON),
    "NaN beside it": Try(b'{"a":NaN,"b":"' + TOKEN.encode() + b'"}', JSON),
    "a member name": Try(json.dumps({"model": "m", "messages": [], TOKEN: 1}).encode(), JSON),
    "a deep member name": Try(json.dumps({"model": "m", "messages": [], "metadata": {"a": {f"x {TOKEN}": 1}}}).encode(), JSON),
    "a model": Try(json.dumps({**CHAT, "messages": [], "model": TOKEN}).encode(), JSON),
    "a role": Try(json.dumps({"model": "m", "messages": [{"role": TOKEN, "content": "hi"}]}).encode(), JSON),
    "a top level string": Try(json.dumps(TOKEN).encode(), JSON),
    "json in json in json": Try(say(json.dumps({"a": json.dumps({"b": json.dumps({"c": escaped(TOKEN)})})})), JSON),
    "json in json in escapes": Try(say('{"a":"' + escaped(TOKEN) + '"}'), JSON),
    "truncated json in a string": Try(say('{"a":"' + escaped(TOKEN) + '", "b":'), JSON),
    "very deep json": Try(b'{"a":' * 500 + json.dumps(TOKEN).encode() + b"}" * 500, JSON),
    # -- encodings inside text
    "base64 in text": Try(say("decode " + b64(f"token {TOKEN}".encode())), JSON),
    "base64 of utf-16": Try(say("decode " + b64(f"token {TOKEN}".encode("utf-16-le"))), JSON),
    "base64 twice": Try(say("decode " + b64(b64(f"token {TOKEN}".encode()).encode())), JSON),
    "base64 of gzip": Try(say("decode " + b64(gz(f"token {TOKEN}".encode()))), JSON),
    "base64 of zlib": Try(say("decode " + b64(zlib.compress(f"token {TOKEN}".encode()))), JSON),
    "hex in text": Try(say("decode " + f"token {TOKEN}".encode().hex()), JSON),
    "percent in text": Try(say("".join(f"%{ord(c):02x}" for c in TOKEN)), JSON),
    "html in text": Try(say("".join(f"&#{ord(c)};" for c in TOKEN)), JSON),
    "backwards": Try(say(TOKEN[::-1]), JSON),
    "full width": Try(say("".join(chr(ord(c) + 0xFEE0) for c in TOKEN)), JSON),
    "zero width": Try(say("\u200b".join(TOKEN)), JSON),
    "a plain data uri": Try(say(f"data:text/plain,{TOKEN}"), JSON),
    "a percent data uri": Try(json.dumps({"model": "m", "messages": [{"role": "user", "content": [
        {"type": "image_url", "image_url": {"url": "data:text/plain," + "".join(f"%{ord(c):02x}" for c in TOKEN)}}]}]}).encode(), JSON),
    "a text called a picture": Try(json.dumps({"model": "m", "messages": [{"role": "user", "content": [
        {"type": "image_url", "image_url": {"url": "data:image/png;base64," + b64(f"see {TOKEN}".encode())}}]}]}).encode(), JSON),
    "an url": Try(json.dumps({"model": "m", "messages": [{"role": "user", "content": [
        {"type": "image_url", "image_url": {"url": f"https://x.example/{TOKEN}.png"}}]}]}).encode(), JSON),
    "an url in percent": Try(json.dumps({"model": "m", "messages": [{"role": "user", "content": [
        {"type": "image_url", "image_url": {"url": "https://x.example/" + "".join(f"%{ord(c):02x}" for c in TOKEN)}}]}]}).encode(), JSON),
    # -- files in JSON
    "behind a picture": Try(block("image", "image/png", png() + TOKEN.encode()), JSON, **MESSAGES),
    "in a picture's text": Try(block("image", "image/png", png(text=f"see {TOKEN}")), JSON, **MESSAGES),
    "in a picture's packed text": Try(block("image", "image/png", png(packed=f"see {TOKEN}")), JSON, **MESSAGES),
    "in a picture's comment": Try(block("image", "image/jpeg", jpeg(comment=f"see {TOKEN}")), JSON, **MESSAGES),
    "text as a picture": Try(block("image", "image/png", f"see {TOKEN}".encode()), JSON, **MESSAGES),
    "utf-16 as a document": Try(block("document", "text/plain", f"see {TOKEN}".encode("utf-16")), JSON, **MESSAGES),
    "text as a pdf": Try(block("document", "application/pdf", f"see {TOKEN}".encode()), JSON, **MESSAGES),
    "a pdf": Try(block("document", "application/pdf", pdf(f"see {TOKEN}")), JSON, **MESSAGES),
    "a pdf with packed text": Try(block("document", "application/pdf", pdf(f"see {TOKEN}", packed=True)), JSON, **MESSAGES),
    "an office file": Try(block("document", "application/vnd.openxmlformats-officedocument.wordprocessingml.document", zipped(TOKEN)), JSON, **MESSAGES),
    "an office file as a picture": Try(block("image", "image/png", zipped(TOKEN)), JSON, **MESSAGES),
    "a file of an unknown type": Try(block("document", "application/x-unknown", b"\x00\x01" + TOKEN.encode() * 40), JSON, **MESSAGES),
    "gzip as a text document": Try(block("document", "text/plain", gz(f"see {TOKEN}".encode())), JSON, **MESSAGES),
    "a wave file": Try(json.dumps({"model": "m", "messages": [{"role": "user", "content": [
        {"type": "input_audio", "input_audio": {"format": "wav", "data": b64(b"RIFF\x2c\x00\x00\x00WAVE" + TOKEN.encode())}}]}]}).encode(), JSON),
    "an input file": Try(json.dumps({"model": "m", "input": [{"role": "user", "content": [
        {"type": "input_file", "filename": f"{TOKEN}.txt", "file_data": "data:text/plain;base64,aGk="}]}]}).encode(), JSON, target="/v1/responses"),
    "an office file for responses": Try(json.dumps({"model": "m", "input": [{"role": "user", "content": [
        {"type": "input_file", "filename": "a.docx", "file_data": "data:application/vnd.openxmlformats-officedocument.wordprocessingml.document;base64," + b64(zipped(TOKEN))}]}]}).encode(), JSON, target="/v1/responses"),
    "an office file for gemini": Try(json.dumps({"contents": [{"role": "user", "parts": [
        {"inlineData": {"mimeType": "application/msword", "data": b64(zipped(TOKEN))}}]}]}).encode(), JSON, host=GEMINI, target="/v1beta/models/m:generateContent"),
    "token ids": Try(json.dumps({"model": "text-embedding-3-small", "input": [[876, 79, 62]]}).encode(), JSON, target="/v1/embeddings"),
    "character codes": Try(json.dumps({"model": "m", "input": [ord(c) for c in TOKEN]}).encode(), JSON, target="/v1/embeddings"),
    # -- codings
    "gzip": Try(gz(BODY), JSON + "\nContent-Encoding: gzip"),
    "gzip that does not say so": Try(gz(BODY), JSON),
    "zlib that does not say so": Try(zlib.compress(BODY), JSON),
    "brotli that does not say so": Try(brotli.compress(BODY), JSON),
    "zstd that does not say so": Try(zstandard.compress(BODY), JSON),
    "zstd after a skippable frame": Try(b"\x50\x2a\x4d\x18\x04\x00\x00\x00" + TOKEN.encode()[:4] + zstandard.compress(BODY), JSON + "\nContent-Encoding: zstd"),
    "a skippable frame that holds it": Try(b"\x50\x2a\x4d\x18" + len(TOKEN).to_bytes(4, "little") + TOKEN.encode() + zstandard.compress(b"{}"), JSON + "\nContent-Encoding: zstd"),
    "gzip twice": Try(gz(gz(BODY)), JSON + "\nContent-Encoding: gzip, gzip"),
    "gzip twice, said once": Try(gz(gz(BODY)), JSON + "\nContent-Encoding: gzip"),
    "gzip in two fields": Try(gz(zlib.compress(BODY)), JSON + "\nContent-Encoding: deflate\nContent-Encoding: gzip"),
    "gzip with bytes after": Try(gz(b"{}") + TOKEN.encode(), JSON + "\nContent-Encoding: gzip"),
    "gzip with a second member": Try(gz(b'{"a":1,') + gz(b'"b":"' + TOKEN.encode() + b'"}'), JSON + "\nContent-Encoding: gzip"),
    "a file name in gzip's head": Try(b"\x1f\x8b\x08\x08\x00\x00\x00\x00\x00\x03" + TOKEN.encode() + b"\x00" + gz(BODY)[10:], JSON + "\nContent-Encoding: gzip"),
    "a file name in gzip's head, nothing inside": Try(b"\x1f\x8b\x08\x08\x00\x00\x00\x00\x00\x03" + TOKEN.encode() + b"\x00" + gz(b"{}")[10:], JSON + "\nContent-Encoding: gzip"),
    "compress": Try(BODY, JSON + "\nContent-Encoding: compress"),
    "a coding that is said twice": Try(gz(BODY), JSON + "\nContent-Encoding: identity\nContent-Encoding: gzip"),
    "a secret as the coding": Try(b"", f"Content-Encoding: {TOKEN}", method="GET", target="/v1/models"),
    "identity that is gzip": Try(gz(BODY), JSON + "\nContent-Encoding: identity"),
    # -- forms
    "a form's field": Try(form(part(TOKEN.encode(), 'form-data; name="purpose"')), FORM, target="/v1/files"),
    "a form's file": Try(form(part(f"see {TOKEN}".encode(), FILE)), FORM, target="/v1/files"),
    "a form's file name": Try(form(part(b"hi", f'form-data; name="file"; filename="{TOKEN}.txt"')), FORM, target="/v1/files"),
    "a form's other file name": Try(form(part(b"hi", f"form-data; name=\"file\"; filename=\"a\"; filename*=utf-8''{quote(TOKEN)}%2e")), FORM, target="/v1/files"),
    "a form's file name in percent": Try(form(part(b"hi", "form-data; name=\"file\"; filename*=utf-8''" + "".join(f"%{ord(c):02x}" for c in TOKEN))), FORM, target="/v1/files"),
    "a form's other file name in percent": Try(form(part(b"hi", "form-data; name=\"file\"; filename*=utf-8''a; filename=\"" + "".join(f"%{ord(c):02x}" for c in TOKEN) + '"')), FORM, target="/v1/files"),
    "a form's field name": Try(form(part(b"hi", f'form-data; name="{TOKEN}"')), FORM, target="/v1/files"),
    "a form's header": Try(form(part(b"hi", FILE, "text/plain", f"X-Note: {TOKEN}")), FORM, target="/v1/files"),
    "a form's part type": Try(form(part(b"hi", FILE, f"text/{TOKEN}")), FORM, target="/v1/files"),
    "before a form": Try(form(part(b"hi", FILE), before=TOKEN.encode() + b"\r\n"), FORM, target="/v1/files"),
    "after a form": Try(form(part(b"hi", FILE), after=TOKEN.encode()), FORM, target="/v1/files"),
    "a form's boundary": Try(form(part(b"hi", FILE)).replace(b"XX", TOKEN.encode()), FORM.replace("XX", TOKEN), target="/v1/files"),
    "a form in quoted-printable": Try(form(part(b"ghp=5F" + TOKEN[4:].encode(), FILE, "text/plain", "Content-Transfer-Encoding: quoted-printable")), FORM, target="/v1/files"),
    "a form in base64": Try(form(part(b64(TOKEN.encode()).encode(), FILE, "text/plain", "Content-Transfer-Encoding: base64")), FORM, target="/v1/files"),
    "a form in a form": Try(form(part(b"--YY\r\n" + part(TOKEN.encode(), FILE) + b"\r\n--YY--", 'form-data; name="f"', "multipart/mixed; boundary=YY")), FORM, target="/v1/files"),
    "json in a form's field": Try(form(part(json.dumps({"a": escaped(TOKEN)}).replace("\\\\", "\\").encode(), 'form-data; name="session"')), FORM, target="/v1/files"),
    "a batch line": Try(form(part(json.dumps({"custom_id": "1", "method": "POST", "url": "/v1/chat/completions", "body": CHAT}).encode(), 'form-data; name="file"; filename="b.jsonl"')), FORM, target="/v1/files"),
    "gzip in a form": Try(form(part(gz(f"see {TOKEN}".encode()), 'form-data; name="file"; filename="a.gz"', "application/gzip")), FORM, target="/v1/files"),
    "gzip as text in a form": Try(form(part(gz(f"see {TOKEN}".encode()), FILE, "text/plain")), FORM, target="/v1/files"),
    "utf-16 in a form": Try(form(part(f"see {TOKEN}".encode("utf-16"), FILE, "text/plain; charset=utf-16")), FORM, target="/v1/files"),
    "a picture's text in a form": Try(form(part(png(text=f"see {TOKEN}"), 'form-data; name="image"; filename="a.png"', "image/png")), FORM, target="/v1/images/edits"),
    "behind a picture in a form": Try(form(part(png() + TOKEN.encode(), 'form-data; name="image"; filename="a.png"', "image/png")), FORM, target="/v1/images/edits"),
    "an office file in a form": Try(form(part(zipped(TOKEN), 'form-data; name="file"; filename="a.docx"', "application/vnd.openxmlformats-officedocument.wordprocessingml.document")), FORM, target="/v1/files"),
    "pairs": Try(f"a={TOKEN}".encode(), "Content-Type: application/x-www-form-urlencoded"),
    "pairs in percent": Try(("a=" + "".join(f"%{ord(c):02x}" for c in TOKEN)).encode(), "Content-Type: application/x-www-form-urlencoded"),
    "pairs whose name it is": Try(("".join(f"%{ord(c):02x}" for c in TOKEN) + "=1").encode(), "Content-Type: application/x-www-form-urlencoded"),
    "pairs parted by semicolons": Try(f"a=1;b={TOKEN}".encode(), "Content-Type: application/x-www-form-urlencoded"),
    "json in pairs": Try(("payload=" + quote(json.dumps({"a": TOKEN}))).encode(), "Content-Type: application/x-www-form-urlencoded"),
    # -- paths and queries
    "the path": Try(BODY.replace(TOKEN.encode(), b""), JSON, target=f"/v1/{TOKEN}/chat/completions"),
    "the path in percent": Try(b"{}", JSON, target="/v1/" + "".join(f"%{ord(c):02x}" for c in TOKEN)),
    "the path in percent twice": Try(b"{}", JSON, target="/v1/" + "".join(f"%25{ord(c):02x}" for c in TOKEN)),
    "the query": Try(b"{}", JSON, target=f"/v1/chat/completions?note={TOKEN}"),
    "the query's name": Try(b"{}", JSON, target=f"/v1/chat/completions?{TOKEN}=1"),
    "the query in percent": Try(b"{}", JSON, target="/v1/chat/completions?a=" + "".join(f"%{ord(c):02x}" for c in TOKEN)),
    "the query of a GET": Try(method="GET", target=f"/v1/models?a={TOKEN}"),
    "the query parted by semicolons": Try(method="GET", target=f"/v1/models?a=1;key={TOKEN}"),
    "a second question mark": Try(method="GET", target=f"/v1/models?key=x?{TOKEN}"),
    "a fragment": Try(method="GET", target=f"/v1/models#{TOKEN}"),
    "a key that is repeated": Try(method="GET", target=f"/v1/models?key=AIzadummy&key={TOKEN}"),
    "prose in the key": Try(method="GET", target=f"/v1/models?key=see+{TOKEN}+there"),
    "path parameters": Try(BODY, JSON, target="/v1/chat/completions;a=b"),
    "path dots": Try(BODY, JSON, target="/v1/x/../chat/completions"),
    "path dots in percent": Try(BODY, JSON, target="/v1/%2e%2e/v1/chat%2fcompletions"),
    "path of oauth elsewhere": Try(json.dumps({"grant_type": "refresh_token", "refresh_token": TOKEN}).encode(), JSON, target="/oauth/token"),
    "an unknown path": Try(BODY, JSON, target="/v9/whatever"),
    "an absolute target": Try(BODY, JSON, target=f"https://{OPENAI}/v1/chat/completions"),
    # -- methods
    "a method in letters": Try(b"{}", method="QWERTYZXCVBNASDFGH"),
    "the method": Try(b"", method=TOKEN, target="/v1/models"),
    "a body on a GET": Try(BODY, JSON, method="GET"),
    "a body on a DELETE": Try(BODY, JSON, method="DELETE"),
    "a body on a HEAD": Try(BODY, JSON, method="HEAD"),
    "a body on OPTIONS": Try(BODY, JSON, method="OPTIONS"),
    "TRACE": Try(b"", f"X-Note: {TOKEN}", method="TRACE", target="/v1/models"),
    "method override": Try(BODY, JSON + "\nX-HTTP-Method-Override: GET"),
    "QUERY": Try(BODY, JSON, method="QUERY"),
    # -- headers
    "a header": Try(b"{}", f"{JSON}\nX-Note: {TOKEN}"),
    "a header's name": Try(b"{}", f"{JSON}\n{TOKEN}: 1"),
    "a header in percent": Try(b"{}", f"{JSON}\nX-Note: " + "".join(f"%{ord(c):02x}" for c in TOKEN)),
    "a header in base64": Try(b"{}", f"{JSON}\nX-Note: {b64(f'token {TOKEN}'.encode())}"),
    "a header as json": Try(b"{}", f"{JSON}\nX-Note: " + json.dumps({"a": 1})[:-1] + ', "b": "' + escaped(TOKEN) + '"}'),
    "user agent": Try(b"{}", f"{JSON}\nUser-Agent: x/{TOKEN}"),
    "accept": Try(b"{}", f"{JSON}\nAccept: {TOKEN}"),
    "accept encoding": Try(b"{}", f"{JSON}\nAccept-Encoding: {TOKEN}"),
    "accept language": Try(b"{}", f"{JSON}\nAccept-Language: {TOKEN}"),
    "referer": Try(b"{}", f"{JSON}\nReferer: https://x/?a={TOKEN}"),
    "cookie": Try(b"{}", f"{JSON}\nCookie: note={TOKEN}"),
    "connection": Try(b"{}", f"{JSON}\nConnection: {TOKEN}"),
    "te": Try(b"{}", f"{JSON}\nTE: {TOKEN}"),
    "expect": Try(b"{}", f"{JSON}\nExpect: {TOKEN}"),
    "upgrade": Try(b"{}", f"{JSON}\nConnection: upgrade\nUpgrade: {TOKEN}"),
    "http2 settings": Try(b"{}", f"{JSON}\nConnection: Upgrade, HTTP2-Settings\nUpgrade: h2c\nHTTP2-Settings: {TOKEN}"),
    "websocket fields without an upgrade": Try(b"{}", f"{JSON}\nSec-WebSocket-Protocol: {TOKEN}\nSec-WebSocket-Key: {TOKEN}"),
    "websocket protocol": Try(b"", f"Connection: Upgrade\nUpgrade: websocket\nSec-WebSocket-Version: 13\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\nSec-WebSocket-Protocol: {TOKEN}", method="GET", target="/v1/responses"),
    "websocket extension": Try(b"", f"Connection: Upgrade\nUpgrade: websocket\nSec-WebSocket-Version: 13\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\nSec-WebSocket-Extensions: {TOKEN}", method="GET", target="/v1/responses"),
    "traceparent": Try(b"{}", f"{JSON}\nTraceparent: 00-{TOKEN}-01"),
    "a date of aws": Try(b"{}", f"{JSON}\nX-Amz-Date: {TOKEN}"),
    "an organisation": Try(b"{}", f"{JSON}\nOpenAI-Organization: see {TOKEN} there"),
    "prose as credentials": Try(b"{}", f"{JSON}\nAuthorization: my note is that {TOKEN} opens it"),
    "two credentials": Try(b"{}", f"{JSON}\nAuthorization: Bearer sk-own\nAuthorization: Bearer {TOKEN}"),
    "a key of another scheme": Try(b"{}", f"{JSON}\nAuthorization: Bearer sk-own\nX-Subscription-Token: note {TOKEN}"),
    "a digest": Try(b"{}", f"{JSON}\nContent-MD5: {TOKEN}"),
    "proxy headers": Try(b"{}", f"{JSON}\nForwarded: for={TOKEN}\nVia: 1.1 {TOKEN}"),
    "trailers": Try(b"", f"{JSON}\nTransfer-Encoding: chunked\nTrailer: X-Note"),
    # -- framing
    "chunked": Try(BODY, JSON, chunked=True),
}  # fmt: skip


HEX = "".join(f"%{ord(c):02x}" for c in TOKEN)
HEAD = f"POST /v1/chat/completions HTTP/1.1\r\nHost: {OPENAI}\r\nContent-Type: application/json\r\n"
RAW: dict[str, bytes] = {
    "chunk extensions": f"{HEAD}Transfer-Encoding: chunked\r\n\r\n2;note={TOKEN}\r\n{{}}\r\n0;{TOKEN}\r\n\r\n".encode(),
    "trailers": f"{HEAD}Transfer-Encoding: chunked\r\n\r\n2\r\n{{}}\r\n0\r\nX-Note: {TOKEN}\r\n\r\n".encode(),
    "a second request in the body": f"{HEAD}Content-Length: 2\r\n\r\n{{}}GET /v1/{TOKEN} HTTP/1.1\r\nHost: {OPENAI}\r\n\r\n".encode(),
    "both framings": f"{HEAD}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{{}}\r\n0\r\n\r\n{TOKEN}".encode(),
    "a folded header": f"{HEAD}X-Note: a\r\n {TOKEN}\r\nContent-Length: 2\r\n\r\n{{}}".encode(),
    "a header without a colon": f"{HEAD}{TOKEN}\r\nContent-Length: 2\r\n\r\n{{}}".encode(),
    "a bare line feed": f"{HEAD}X-A: b\nX-Note: {TOKEN}\r\nContent-Length: 2\r\n\r\n{{}}".encode(),
    "a user in the target": f"GET https://note:{TOKEN}@{OPENAI}/v1/models HTTP/1.1\r\nHost: {OPENAI}\r\n\r\n".encode(),
    "a user in the host": f"GET /v1/models HTTP/1.1\r\nHost: {TOKEN}@{OPENAI}\r\n\r\n".encode(),
    "HTTP/1.0": f"POST /v1/chat/completions HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: {len(BODY)}\r\n\r\n".encode() + BODY,
    "an odd version": f"POST /v1/chat/completions HTTP/1.9\r\nX-Note: {TOKEN}\r\n\r\n".encode(),
    "expectation": f"{HEAD}Expect: 100-continue\r\nContent-Length: {len(BODY)}\r\n\r\n".encode() + BODY,
    "h2c prior knowledge": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + TOKEN.encode(),
    "no HTTP at all": TOKEN.encode() + b"\r\n\r\n",
    "a long head": f"{HEAD}X-Note: {'a' * 200_000}{TOKEN}\r\nContent-Length: 2\r\n\r\n{{}}".encode(),
}  # fmt: skip
H2_FIELDS: dict[str, dict[str, object]] = {
    "a field": {"more": [("x-note", TOKEN)]},
    "a field's name": {"more": [(TOKEN, "1")]},
    "cookie crumbs": {"more": [("cookie", "a=b"), ("cookie", f"note={TOKEN}")]},
    "the path": {"path": f"/v1/{HEX}"},
    "the query": {"path": f"/v1/models?a={HEX}"},
    "the method": {"method": TOKEN},
    "credentials twice": {"more": [("authorization", "Bearer sk-own"), ("authorization", f"Bearer {TOKEN}")]},
    "a body": {"body": BODY},
    "a body in gzip": {"body": gz(BODY), "more": [("content-encoding", "gzip")]},
    "trailers": {"trailers": [("x-note", TOKEN)]},
    "another authority": {"authority": f"{TOKEN.replace('_', '-')}.{OPENAI}"},
}  # fmt: skip


def views(data: bytes, depth: int = 4) -> list[bytes]:
    """The forms in which a server may read what arrived, each made of the one before."""
    found = level = [data]
    for _ in range(depth):
        level = [m for piece in level for undo in _UNDO for m in _tried(undo, piece)]
        level = [m for m in dict.fromkeys(level) if m and m not in found][:30]
        found = [*found, *level]
    return found


def _tried(undo: Callable[[bytes], list[bytes]], piece: bytes) -> list[bytes]:
    try:
        return undo(piece[:100_000])
    except Exception:
        return []  # not of this form


def _bodies(data: bytes) -> list[bytes]:
    return [data.partition(b"\r\n\r\n")[2]]


def _inflated(data: bytes) -> list[bytes]:
    out = []
    for mark, make in (
        (b"\x1f\x8b\x08", lambda d: zlib.decompressobj(31).decompress(d)),
        (b"\x28\xb5\x2f\xfd", lambda d: zstandard.ZstdDecompressor().decompressobj().decompress(d)),
        (b"x\x9c", zlib.decompress),
    ):
        at = data.find(mark)
        if at >= 0:
            out.append(make(data[at:]))
    return out


def _wide(data: bytes) -> list[bytes]:
    return [data.replace(b"\0", b"")] if b"\0" in data else []


def _json(data: bytes) -> list[bytes]:
    text = data.decode()
    return [json.loads(f'"{text}"'.replace("\n", "")).encode()] if "\\u" in text and '"' not in text else [
        b"\n".join(_strings(json.loads(text)))]  # fmt: skip


def _strings(value: object) -> list[bytes]:
    if isinstance(value, str):
        return [value.encode("utf-8", "replace")]
    if isinstance(value, dict):
        return [s for k, v in value.items() for s in (*_strings(k), *_strings(v))]
    return [s for v in value for s in _strings(v)] if isinstance(value, list) else []


def _base64(data: bytes) -> list[bytes]:
    return [
        base64.b64decode(m + b"=" * (-len(m) % 4))
        for m in re.findall(rb"[A-Za-z0-9+/]{24,}={0,2}", data)[:20]
    ]


def _zip(data: bytes) -> list[bytes]:
    at = data.find(b"PK\x03\x04")
    archive = zipfile.ZipFile(io.BytesIO(data[at:])) if at >= 0 else None
    return [archive.read(n) for n in archive.namelist()] if archive else []


_UNDO: tuple[Callable[[bytes], list[bytes]], ...] = (
    _bodies, _inflated, _wide, _json, _base64, _zip,
    lambda d: [unquote(d.decode("latin-1")).encode("latin-1")],
    lambda d: [d.decode("cp037").encode()],
    lambda d: [d.decode("utf-7").encode()],
    lambda d: [brotli.decompress(d)],
)  # fmt: skip


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def bench(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Bench]:
    async with gateway(tmp_path_factory.mktemp("smuggling")) as running:
        yield running


async def send(bench: Bench, attempt: Try, wire: bytes | None = None) -> int:
    connection = await Connection.open(bench.port)
    try:
        await connection.connect(f"{attempt.host}:443")
        await connection.tls(bench.state / "ca.pem", attempt.host)
        await connection.send(attempt.wire() if wire is None else wire)
        reply = await connection.reply(bodiless=attempt.method == "HEAD")
    finally:
        await connection.close()
    return reply.status


@pytest.mark.parametrize("name", TRIES)
async def test_it_does_not_leave(bench: Bench, name: str) -> None:
    bench.provider.arrived.clear()
    assert await send(bench, TRIES[name]) < 500
    for request in bench.provider.arrived:
        assert request.method != "QWERTYZXCVBNASDFGH"
        assert not [v for v in views(bytes(request.wire)) if TOKEN.encode() in v], "left"
    written = bench.log.getvalue()
    assert TOKEN not in written


@pytest.mark.parametrize("name", RAW)
async def test_no_framing_lets_it_out(bench: Bench, name: str) -> None:
    bench.provider.arrived.clear()
    attempt = Try(host=OPENAI)
    assert await send(bench, attempt, RAW[name]) < 500
    for request in bench.provider.arrived:
        assert not [v for v in views(bytes(request.wire)) if TOKEN.encode() in v], "left"


@pytest.mark.parametrize("name", H2_FIELDS)
async def test_it_does_not_leave_over_http_2(bench: Bench, name: str) -> None:
    bench.provider.arrived.clear()
    asked = {
        "method": "POST",
        "path": "/v1/chat/completions",
        "authority": OPENAI,
        "more": [],
        "body": b"{}",
        "trailers": [],
    }
    asked |= H2_FIELDS[name]
    connection = await Connection.open(bench.port)
    try:
        await connection.connect(f"{OPENAI}:443")
        await connection.tls(bench.state / "ca.pem", OPENAI, ("h2",))
        await ask_h2(connection, asked)
    finally:
        await connection.close()
    for request in bench.provider.arrived:
        sent = repr((request.method, request.target, request.authority, request.headers)).encode() + bytes(
            request.body
        )
        assert not [v for v in views(sent) if TOKEN.encode() in v], "left"


async def ask_h2(connection: Connection, asked: dict[str, Any]) -> None:
    client = h2.connection.H2Connection(
        h2.config.H2Configuration(validate_outbound_headers=False, normalize_outbound_headers=False)
    )
    client.initiate_connection()
    fields = [
        (":method", asked["method"]),
        (":scheme", "https"),
        (":authority", asked["authority"]),
        (":path", asked["path"]),
    ]
    client.send_headers(1, [*fields, ("content-type", "application/json"), *asked["more"]])
    client.send_data(1, asked["body"], end_stream=not asked["trailers"])
    if asked["trailers"]:
        client.send_headers(1, asked["trailers"], end_stream=True)
    await connection.send(client.data_to_send())
    async with asyncio.timeout(10):
        while data := await connection.reader.read(1 << 16):
            events = client.receive_data(data)
            await connection.send(client.data_to_send())
            if any(
                isinstance(e, h2.events.StreamEnded | h2.events.StreamReset | h2.events.ConnectionTerminated)
                for e in events
            ):
                return


async def test_messages_of_a_websocket_do_not_carry_it(bench: Bench) -> None:
    """As text, in pieces, as bytes, in a ping, in a close: what arrives holds nothing of it."""
    bench.provider.sockets.clear()
    bench.provider.speak = echo
    context = ssl.create_default_context(cafile=str(bench.state / "ca.pem"))
    create = json.dumps({"type": "response.create", "input": f"see {TOKEN}"})
    for message in (
        create,
        create.encode(),
        [create[:40], create[40:]],
        TOKEN,
        f"\ufeff{create}",
        TOKEN.encode(),
    ):
        proxy = f"http://127.0.0.1:{bench.port}"
        async with connect(f"wss://{OPENAI}/v1/responses", proxy=proxy, ssl=context) as socket:
            await socket.ping(TOKEN.encode())
            await socket.send(message)
            with suppress(ConnectionClosed, TimeoutError):
                async with asyncio.timeout(1):
                    await socket.recv()
            await socket.close(1000, TOKEN)
    bench.provider.speak = None
    assert len(bench.provider.sockets) == 6
    for arrived in bench.provider.sockets:
        assert TOKEN not in repr((arrived.messages, arrived.control))
