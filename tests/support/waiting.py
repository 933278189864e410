"""Waiting for what happens beside a test: by the clock, however fast or slow the machine is, and never in silence."""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import Any

PATIENCE_S = 120.0
"""How long anything is waited for. Only a failure waits this long, so that it is far longer than any machine needs."""

_PAUSE_S = 0.02


async def eventually[T](
    ask: Callable[[], T | Awaitable[T]],
    wanted: Callable[[T], Any] = bool,
    *,
    seconds: float = PATIENCE_S,
    alive: Callable[[], Any] | None = None,
) -> T:
    """The first answer that is wanted. What has ended, or an answer that never comes, fails the test."""
    until = time.monotonic() + seconds
    while True:
        said = ask()
        answer: Any = await said if inspect.isawaitable(said) else said
        if wanted(answer):
            return answer  # type: ignore[no-any-return]
        assert alive is None or alive(), "what was waited for has ended"
        assert time.monotonic() < until, f"not within {seconds:g} s; the last answer was {answer!r}"
        await asyncio.sleep(_PAUSE_S)


def await_[T](ask: Callable[[], T], wanted: Callable[[T], Any] = bool, **options: Any) -> T:
    """The same where no event loop runs."""
    return asyncio.run(eventually(ask, wanted, **options))
