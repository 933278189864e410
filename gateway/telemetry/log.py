"""JSON lines on a stream: an allow-list of fields, each with its own kind of value.

What is not on the list is dropped, and so is a listed field whose value is not of its kind, because the list
is what keeps content out of logs: a caller that passes the wrong thing loses the field, not the secret.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, TextIO, override

_WORD: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.:-]{0,79}", re.ASCII)
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}", re.ASCII)
_PLACE: Final = re.compile(r"[A-Za-z0-9_.\[\]/-]{1,160}", re.ASCII)
_ADDRESS: Final = re.compile(r"[\[\]A-Za-z0-9.:-]{1,262}", re.ASCII)


def _matches(pattern: re.Pattern[str]) -> Callable[[object], bool]:
    return lambda value: isinstance(value, str) and pattern.fullmatch(value) is not None


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_is_word, _is_digest, _is_address = _matches(_WORD), _matches(_DIGEST), _matches(_ADDRESS)
_is_place = _matches(_PLACE)

FIELDS: Final[dict[str, Callable[[object], bool]]] = {
    "code": _is_word,
    "error_type": _is_word,
    "effect": _is_word,
    "provider": _is_word,
    "plugin": _is_word,
    "version": _is_word,
    "mode": _is_word,
    "enforcement": _is_word,
    "logger": _is_word,
    "module": _is_word,
    "task": _is_word,
    "signal": _is_word,
    "receipt": _is_digest,
    "digest": _is_digest,
    "request_id": _is_word,
    "listen": _is_address,
    "control": _is_address,
    "host": _is_address,
    "file": _is_place,
    "place": _is_place,
    "rule": _is_word,
    "bundle": _is_number,
    "port": _is_number,
    "count": _is_number,
    "line": _is_number,
    "seconds": _is_number,
    "bytes": _is_number,
}
"""Field to the test of its value. `host` is the server that a connection asked for, without path.
`bundle`, `file`, `place` and `rule` say where in a policy bundle something is wrong."""


def utc_now() -> str:
    """RFC 3339 with milliseconds."""
    seconds, nanoseconds = divmod(time.time_ns(), 1_000_000_000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{nanoseconds // 1_000_000:03}Z"


class Log:
    """Writes events to a stream, from any thread; a stream that is gone is no error."""

    def __init__(self, stream: TextIO | None = None, *, now: Callable[[], str] = utc_now) -> None:
        self._stream = stream or sys.stderr
        self._now = now
        self._lock = threading.Lock()

    def event(self, name: str, *, level: str = "info", **fields: object) -> None:
        """One line. `name` and `level` are words of the caller's own code; fields as `FIELDS` allows."""
        if not _is_word(name) or not _is_word(level):
            name, level = "log.misnamed", "error"
        line: dict[str, Any] = {"time": self._now(), "level": level, "event": name}
        line |= {key: value for key, value in fields.items() if key in FIELDS and FIELDS[key](value)}
        text = json.dumps(line, allow_nan=False) + "\n"
        with self._lock:
            try:
                self._stream.write(text)
                self._stream.flush()
            except (OSError, ValueError):  # nobody reads: nowhere is left to say so
                return

    def loop_handler(self, _loop: asyncio.AbstractEventLoop, context: Mapping[str, Any]) -> None:
        """An exception handler for the event loop: type and task, not the message."""
        error = context.get("exception")
        kind = (
            type(error).__name__ if isinstance(error, BaseException) else context.get("error_type", "unknown")
        )
        self.event("loop.error", level="error", error_type=kind, task=context.get("task_name"))

    def capture(self, level: int = logging.WARNING) -> None:
        """Take over the standard library's root logger: records appear by place and exception type only."""
        root = logging.getLogger()
        root.handlers[:] = [_Bridge(self)]
        root.setLevel(level)


class _Bridge(logging.Handler):
    """Foreign log records without their message: libraries put URLs, headers and bodies into it."""

    def __init__(self, log: Log) -> None:
        super().__init__()
        self._log = log

    @override
    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        self._log.event(
            "library.message",
            level=record.levelname.lower(),
            logger=record.name,
            module=record.module,
            line=record.lineno,
            error_type=type(error).__name__ if error else None,
        )
