"""The console: one page, made here, without script. It shows states, counts and digests, never content."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Awaitable, Callable, Mapping
from html import escape
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from gateway.control.answers import HEADERS
from gateway.control.state import ControlState

ROWS: Final = 50
_STYLE: Final = (
    "body{font:15px/1.45 system-ui,sans-serif;margin:2rem auto;max-width:72rem;padding:0 1rem;color:#1d232b}"
    "h1{font-size:1.3rem}table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.3rem .6rem;"
    "border-bottom:1px solid #d8dde3;vertical-align:top}code{font:13px ui-monospace,monospace}"
    ".ok{color:#11663b}.bad,.refused{color:#a5231b}.rewritten{color:#8a5a00}footer{margin-top:2rem;color:#5b6670}"
)
_STYLE_HASH: Final = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
_POLICY: Final = (
    f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_COLUMNS: Final = ("Time", "Project", "Provider", "Effect", "State", "Objects", "Reasons", "Receipt")


def page(state: ControlState) -> Callable[[Request], Awaitable[Response]]:
    """The page: health and the most recent requests."""

    async def show(_request: Request) -> Response:
        reason = await state.health()
        rows, _ = await state.store.rows({"limit": ROWS})
        body = _document(state.version, reason, rows)
        headers = {**HEADERS, "content-security-policy": _POLICY}
        return Response(body, 200, headers, "text/html; charset=utf-8")

    return show


def _document(version: str, reason: str, rows: list[dict[str, Any]]) -> str:
    health = f'<p class="bad">Not ready: {escape(reason)}</p>' if reason else '<p class="ok">Ready</p>'
    head = "".join(f"<th>{column}</th>" for column in _COLUMNS)
    lines = "".join(_line(row) for row in rows)
    table = (
        f"<table><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table>"
        if rows
        else "<p>No requests yet.</p>"
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Model Egress Gateway</title>'
        f"<style>{_STYLE}</style></head><body><h1>Model Egress Gateway</h1>{health}{table}"
        f"<footer>Version {escape(version)}. The last {ROWS} requests; all of them: <code>egress receipts list</code>"
        "</footer></body></html>"
    )


def _line(row: Mapping[str, Any]) -> str:
    objects = row["evaluation"].get("objects", [])
    reasons = sorted({code for item in objects for code in item.get("reason_codes", ())})
    effect = escape(str(row["effect"]))
    cells = (
        escape(str(row["time"])),
        escape(str(row["project"])),
        escape(str(row.get("provider", ""))),
        f'<span class="{effect}">{effect}</span>',
        escape(str(row["receipt_state"])),
        str(len(objects)),
        escape(", ".join(reasons)),
        f"<code>{escape(str(row['digest']))}</code>",
    )
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"
