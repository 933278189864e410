"""The last checkpoint copied to where it cannot be put back with the state: a file, a URL, a time-stamping authority.

Whoever holds the signing key and the whole state folder can write another history, but none that grows out of a
checkpoint that lies elsewhere.
"""

from __future__ import annotations

import os
import secrets
import urllib.error
import urllib.request
from base64 import b64encode
from datetime import datetime
from http.client import HTTPException
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from gateway.errors import EvidenceError, words_of
from gateway.evidence import timestamp
from gateway.evidence.checkpoint import read_note
from gateway.files import sync_folder
from gateway.store.published import published

TIMEOUT_S: Final = 15.0
MAX_ANSWER: Final = 1 << 20


def last_checkpoint(state: Path) -> bytes:
    """The published checkpoint of a state folder; EvidenceError where there is none."""
    note = published(state / "checkpoint")
    if note is None:
        raise EvidenceError("evidence.none", "the log has no checkpoint yet")
    return note


def to_file(note: bytes, target: Path) -> None:
    """Append the note to a file, which may lie on another machine's disk; durable when it returns. EvidenceError."""
    try:
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        with os.fdopen(descriptor, "ab") as file:
            file.write(note + b"\n")
            file.flush()
            os.fsync(descriptor)
        sync_folder(target.parent)
    except OSError as error:
        raise EvidenceError(
            "anchor.failed", f"{target} cannot be written ({os.strerror(error.errno or 0)})"
        ) from error


def to_url(note: bytes, url: str) -> None:
    """POST the note; EvidenceError unless the answer is 2xx."""
    _post(url, note, "text/plain; charset=utf-8")


def to_authority(note: bytes, url: str, folder: Path) -> tuple[Path, datetime]:
    """Have the note time-stamped (RFC 3161); where the answer is kept, and the time that it vouches for.

    The note is kept beside the answer, so that `openssl ts -verify -data NOTE -in ANSWER` checks it. EvidenceError
    where the authority does not answer, VerificationError where its answer does not hold.
    """
    nonce = secrets.randbits(64)
    answer = _post(url, timestamp.request(note, nonce), timestamp.CONTENT_TYPE)
    moment = timestamp.read_answer(answer, note, nonce)
    size = read_note(note).checkpoint.size
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        (folder / f"{size}.checkpoint").write_bytes(note)
        (folder / f"{size}.tsr").write_bytes(answer)
        sync_folder(folder)
    except OSError as error:
        raise EvidenceError(
            "anchor.failed", f"{folder} cannot be written ({os.strerror(error.errno or 0)})"
        ) from error
    return folder / f"{size}.tsr", moment


def _post(url: str, body: bytes, kind: str) -> bytes:
    """Directly, whatever HTTPS_PROXY says: it may name this gateway."""
    if not url.startswith(("https://", "http://")):
        raise EvidenceError("anchor.failed", "an anchor is reached by http or https")
    parts = urlsplit(url)
    headers = {"content-type": kind}
    if "@" in parts.netloc:
        pair = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}".encode()
        headers["authorization"] = "Basic " + b64encode(pair).decode()
        url = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    asked = urllib.request.Request(url, body, headers, method="POST")  # noqa: S310  # checked above
    try:
        with opener.open(asked, timeout=TIMEOUT_S) as answer:
            return bytes(answer.read(MAX_ANSWER))
    except (OSError, urllib.error.URLError, HTTPException, ValueError) as error:
        raise EvidenceError("anchor.failed", f"the anchor does not answer ({words_of(error)})") from error
