"""Logs that cannot leak: mitmproxy's own records hold addresses, URLs, header lines and exception texts.

Its loggers, and those of the libraries under it, get one handler that turns a record into a count by level and
place, and nothing they say travels further. The root logger is left with records of an allow-list.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import override

SILENCED = (
    "mitmproxy",
    "mitmproxy_rs",
    "hpack",
    "h2",
    "wsproto",
    "asyncio",
    "quic",
    "tornado",
    "passlib",
    "OpenSSL",
)
ALLOWED = ("gateway", "egress", "uvicorn.error")

type Sink = Callable[[str, Mapping[str, str | int]], None]


class Counted(logging.Handler):
    """Says that something was logged, never what."""

    def __init__(self, sink: Sink | None) -> None:
        super().__init__(logging.WARNING)
        self._sink = sink

    @override
    def emit(self, record: logging.LogRecord) -> None:
        if self._sink is None:
            return
        error = record.exc_info[0].__name__ if record.exc_info and record.exc_info[0] else ""
        self._sink(
            "proxy.log",
            {
                "logger": record.name,
                "level": record.levelname,
                "line": f"{record.module}:{record.lineno}",
                "error": error,
            },
        )


class AllowList(logging.Filter):
    """For handlers of the root logger: only our own records pass."""

    @override
    def filter(self, record: logging.LogRecord) -> bool:
        return any(record.name == name or record.name.startswith(name + ".") for name in ALLOWED)


@contextmanager
def quiet(sink: Sink | None) -> Iterator[None]:
    """Silence the libraries for as long as a proxy runs."""
    handler = Counted(sink)
    kept = []
    for name in SILENCED:
        logger = logging.getLogger(name)
        kept.append((logger, logger.level, logger.propagate))
        logger.addHandler(handler)
        logger.setLevel(logging.WARNING)
        logger.propagate = False
    allow = AllowList()
    roots = list(logging.getLogger().handlers)
    for each in roots:
        each.addFilter(allow)
    try:
        yield
    finally:
        for logger, level, propagate in kept:
            logger.removeHandler(handler)
            logger.setLevel(level)
            logger.propagate = propagate
        for each in roots:
            each.removeFilter(allow)
