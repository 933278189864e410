"""A canary through the running gateway, followed all the way: what `egress doctor` finds out by trying."""

from __future__ import annotations

import asyncio
import base64
import http.client
import io
import json
import ssl
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from gateway.app.canary import MODEL, Sink, new_canary, opened
from gateway.cli.environment import proxy_url
from gateway.cli.finding import Finding
from gateway.config import Config
from gateway.errors import GatewayError, words_of
from gateway.proxy.canary import HOST, PORT

_TIMEOUT_S: Final = 20.0
_SETTLE_S: Final = 10.0  # until the lineage of an answered request is written
_LOOKED_THROUGH: Final = 256 << 20  # bytes of one file
_RECEIPT: Final = "x-egress-receipt"
_HOLDS: Final = frozenset({"vault", "keys"})  # the folders that may hold values, sealed


class RefusedError(Exception):
    """The CONNECT was answered with another status than 200."""

    def __init__(self, status: int) -> None:
        super().__init__(str(status))
        self.status = status


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back to the client."""

    status: int
    receipt: str
    body: bytes


def follow(config: Config, project: str | None = None, principal: str | None = None) -> Iterator[Finding]:
    """Send one canary and judge what became of it; one finding for each thing that must hold.

    `project` and `principal` are those of `egress exec`. Raises GatewayError where it cannot be tried at all.
    """
    canary, began = new_canary(), time.time()
    text = f"egress doctor sends this key, which opens nothing: {canary}"
    request = {"model": MODEL, "max_tokens": 1, "messages": [{"role": "user", "content": text}]}
    with opened(config) as sink:
        try:
            answer = asyncio.run(
                _ask(config, proxy_url(config, project, principal), json.dumps(request).encode())
            )
        except (RefusedError, OSError, TimeoutError, http.client.HTTPException) as error:
            yield _not_opened(config, error)
            return
        yield Finding(
            "interception", True, f"{HOST} was opened with a certificate of {config.state.dir / 'ca.pem'}"
        )
        row = _row(config, answer.receipt)
    yield _left(config, answer, sink, canary, row)
    if answer.status == 200 and sink.arrived:
        yield _restored(answer, text, row)
    yield _receipt(answer, row)
    yield _written(config, canary, began)
    yield _evidence(config)


async def _ask(config: Config, url: str, body: bytes) -> Answer:
    """One request through the proxy, in TLS that is verified against ca.pem alone."""
    proxy = urlsplit(url)
    context = ssl.create_default_context(cafile=str(config.state.dir / "ca.pem"))
    async with asyncio.timeout(_TIMEOUT_S):
        reader, writer = await asyncio.open_connection(
            config.listen.proxy.host, config.listen.proxy.port, ssl=_to_listener(config)
        )
        try:
            given = f"{unquote(proxy.username or '')}:{unquote(proxy.password or '')}"
            token = base64.b64encode(given.encode()).decode()
            credentials = f"Proxy-Authorization: Basic {token}\r\n" if proxy.username else ""
            writer.write(
                f"CONNECT {HOST}:{PORT} HTTP/1.1\r\nHost: {HOST}:{PORT}\r\n{credentials}\r\n".encode()
            )
            head = await reader.readuntil(b"\r\n\r\n")
            status = int(head.split(b" ", 2)[1])
            if status != 200:
                raise RefusedError(status)
            await writer.start_tls(context, server_hostname=HOST)
            fields = f"Host: {HOST}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
            writer.write(f"POST /v1/messages HTTP/1.1\r\n{fields}Connection: close\r\n\r\n".encode() + body)
            raw = await reader.read()
        finally:
            writer.close()
    return _parsed(raw)


def _to_listener(config: Config) -> ssl.SSLContext | None:
    """Towards an https:// proxy: its own certificate, whichever name it carries."""
    if config.listen.tls_cert is None:
        return None
    context = ssl.create_default_context(cafile=str(config.listen.tls_cert))
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.check_hostname = False
    return context


class _Socket(io.BytesIO):
    def makefile(self, _mode: str) -> io.BytesIO:
        return self


def _parsed(raw: bytes) -> Answer:
    response = http.client.HTTPResponse(_Socket(raw))  # type: ignore[arg-type] # reads through makefile alone
    response.begin()
    return Answer(response.status, response.headers.get(_RECEIPT, ""), response.read())


def _not_opened(config: Config, error: Exception) -> Finding:
    says, advice = f"no answer came through ({words_of(error)})", "look at what the gateway logs"
    if isinstance(error, ssl.SSLCertVerificationError):
        says = f"the certificate that was shown is not one of {config.state.dir / 'ca.pem'}"
        advice = "start the gateway again, with this configuration"
    elif isinstance(error, RefusedError) and error.status == 407:
        says, advice = "the proxy asks for credentials", "name a project: egress doctor --project NAME"
    elif isinstance(error, RefusedError) and error.status == 403:
        says = "the gateway that listens there does not open the canary's name"
        advice = "start it again, with this configuration: it has another state folder, or is of an earlier version"
    elif isinstance(error, RefusedError):
        says = f"the CONNECT was answered {error.status}"
    elif isinstance(error, TimeoutError):
        says = f"no answer within {_TIMEOUT_S:.0f} s"
    return Finding("interception", False, says, advice)


def _row(config: Config, digest: str) -> dict[str, Any]:
    """The request's evidence, once what became of it is written; empty where there is none."""
    from gateway import app  # noqa: PLC0415 - heavy

    deadline = time.monotonic() + _SETTLE_S
    while digest and time.monotonic() < deadline:
        rows, _ = app.receipts(config, {"limit": 1, "digest": digest})
        if rows and rows[0]["lineage"]:
            return rows[0]
        time.sleep(0.05)
    return {}


def _codes(row: dict[str, Any]) -> list[str]:
    evaluation = row.get("evaluation", {})
    found = set(evaluation.get("reason_codes", ()))
    found.update(code for item in evaluation.get("objects", ()) for code in item.get("reason_codes", ()))
    return sorted(found)


def _left(config: Config, answer: Answer, sink: Sink, canary: str, row: dict[str, Any]) -> Finding:
    """Whether the canary stayed here: it may leave as a placeholder, or the request not at all."""
    codes = ", ".join(_codes(row)) or "no reason"
    explain = f"egress policy explain --receipt {answer.receipt}"
    if any(canary.encode() in body for body in sink.arrived):
        says = "the canary left as it was (to this command alone): keys are not masked here"
        shadow = str(config.policy.enforcement) == "shadow"
        return Finding("canary", False, says, "policy.enforcement is shadow" if shadow else explain)
    if sink.arrived:
        return Finding("canary", True, f"left as a placeholder ({codes})")
    if answer.status in {400, 413}:
        return Finding("canary", True, f"the request was refused, and nothing left ({codes})")
    if answer.status == 503:
        advice = (
            "egress kill off"
            if "policy.kill_switch" in codes
            else "see the reason, and what the gateway logs"
        )
        return Finding("canary", False, f"every request is refused now, and nothing left ({codes})", advice)
    if config.upstream.proxy:
        says = "nothing left: masked here, and not sent on by the company's proxy"
        return Finding("canary", bool(row) and row["effect"] == "rewritten", says, explain)
    return Finding("canary", False, f"nothing arrived, and the answer was {answer.status} ({codes})", explain)


def _restored(answer: Answer, text: str, row: dict[str, Any]) -> Finding:
    try:
        said = json.loads(answer.body)["content"][0]["text"]
    except (ValueError, KeyError, IndexError, TypeError):
        said = ""
    if said == text:
        return Finding("restoring", True, "the answer came back with the key in its place")
    response = row.get("evaluation", {}).get("response") or {}
    if response.get("restore_withheld"):
        return Finding("restoring", True, "the policy leaves the placeholder in the answer")
    return Finding(
        "restoring", False, "the answer came back without the key", "look at what the gateway logs"
    )


def _receipt(answer: Answer, row: dict[str, Any]) -> Finding:
    if not row:
        says = (
            "the answer names no receipt"
            if not answer.receipt
            else "its receipt or lineage is not in the store"
        )
        return Finding("receipt", False, says, "egress store check")
    findings = sum(
        f["count"] for item in row["evaluation"].get("objects", ()) for f in item.get("findings", ())
    )
    if not findings and row["effect"] == "rewritten":
        return Finding("receipt", False, "it names no finding", f"egress receipts show {row['digest']}")
    return Finding("receipt", True, f"{row['digest']}: {row['effect']}, {row['receipt_state']}")


def _written(config: Config, canary: str, began: float) -> Finding:
    """No file of the gateway outside vault and keys may hold it."""
    folder, sealed = config.state.dir, config.state.keys_dir
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder).parts
        if _HOLDS & set(inside) or sealed in path.parents or not path.is_file():
            continue
        if path.stat().st_mtime >= began - 1 and _holds(path, canary.encode()):
            return Finding("written", False, f"{path} holds the canary", "tell those who make the gateway")
    return Finding("written", True, "no file outside vault and keys holds it")


def _holds(path: Path, wanted: bytes) -> bool:
    left, tail = _LOOKED_THROUGH, b""
    with path.open("rb") as file:
        while left > 0 and (piece := file.read(1 << 20)):
            if wanted in tail + piece:
                return True
            tail, left = piece[-len(wanted) :], left - len(piece)
    return False


def _evidence(config: Config) -> Finding:
    """Whether the log holds, where it is small enough to be read in passing."""
    from gateway import app  # noqa: PLC0415 - heavy

    try:
        if config.state.database.stat().st_size > _LOOKED_THROUGH:
            return Finding("evidence", True, "the log is large: egress receipts verify checks it")
        report = app.verify(config, None, None)
    except (GatewayError, OSError) as error:
        return Finding("evidence", False, f"the log cannot be verified ({error})", "egress store check")
    if not report["ok"]:
        bad = report["first_bad"]
        return Finding(
            "evidence", False, f"entry {bad['index']} is bad ({bad['kind']})", "egress receipts verify"
        )
    return Finding("evidence", True, f"the log holds: {report['entries']} entries")
