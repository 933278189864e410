"""The log: an allow-list of fields with kinds, and no message of anybody else."""

import asyncio
import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from gateway.telemetry import Log
from gateway.telemetry.log import FIELDS

CANARY = "canary 9f3a/secret?key=x"


@pytest.fixture
def stream() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def log(stream: io.StringIO) -> Log:
    return Log(stream, now=lambda: "2026-01-01T00:00:00.000Z")


@pytest.fixture
def captured(log: Log) -> Iterator[Log]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    log.capture()
    yield log
    root.handlers[:] = handlers
    root.setLevel(level)


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_listed_fields_are_written(log: Log, stream: io.StringIO) -> None:
    digest = "sha256:" + "a" * 64
    log.event("request.refused", level="warning", code="body.malformed", receipt=digest, seconds=0.5, count=3)

    assert lines(stream) == [
        {
            "time": "2026-01-01T00:00:00.000Z",
            "level": "warning",
            "event": "request.refused",
            "code": "body.malformed",
            "receipt": digest,
            "seconds": 0.5,
            "count": 3,
        }
    ]


def test_other_fields_are_dropped(log: Log, stream: io.StringIO) -> None:
    log.event("started", body=CANARY, url=CANARY, path=CANARY, exception=ValueError(CANARY))

    assert CANARY not in stream.getvalue()
    assert set(lines(stream)[0]) == {"time", "level", "event"}


@pytest.mark.parametrize("field", sorted(FIELDS))
@pytest.mark.parametrize(
    "value", [CANARY, "a\nb", {"a": CANARY}, [CANARY], ValueError(CANARY), True, None, b"x", ""]
)
def test_listed_fields_of_another_kind_are_dropped(
    log: Log, stream: io.StringIO, field: str, value: object
) -> None:
    log.event("started", **{field: value})

    assert field not in lines(stream)[0]
    assert "canary" not in stream.getvalue()


def test_a_name_that_is_no_word_is_not_written(log: Log, stream: io.StringIO) -> None:
    log.event(CANARY)

    assert [line["event"] for line in lines(stream)] == ["log.misnamed"]


def test_records_of_libraries_lose_their_message(captured: Log, stream: io.StringIO) -> None:
    try:
        int(CANARY)
    except ValueError:
        logging.getLogger("some.library").exception("while reading %s", CANARY)

    (line,) = lines(stream)
    assert (line["event"], line["logger"], line["error_type"]) == (
        "library.message",
        "some.library",
        "ValueError",
    )
    assert "canary" not in stream.getvalue()


async def test_errors_of_the_loop_appear_by_type(log: Log, stream: io.StringIO) -> None:
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(log.loop_handler)
    loop.call_soon(lambda: 1 // 0)
    loop.call_exception_handler({"message": CANARY, "task_name": "scan", "error_type": "OSError"})
    await asyncio.sleep(0.01)

    assert {line["error_type"] for line in lines(stream)} == {"OSError", "ZeroDivisionError"}
    assert "canary" not in stream.getvalue()


def test_a_closed_stream_is_no_error(log: Log, stream: io.StringIO) -> None:
    stream.close()

    log.event("stopped")
