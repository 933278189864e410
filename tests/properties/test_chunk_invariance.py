"""An independent check (the package chunk-invariance) of the law that cuts change nothing, over every dialect's stream.

What `tests.properties.test_stream_law` says in our own words, in somebody else's: for every way in which the bytes of an
answer are cut, what comes out is what comes out of the whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest
from chunk_invariance import ChunkInvarianceError, assert_chunk_invariant

from gateway.classify.answers import AnswerRestoration
from gateway.classify.marking import Marks
from gateway.classify.values import Values
from gateway.context.objects import Limits
from gateway.providers import registry
from tests.properties.test_stream_law import SHORT, SHORT_ARGUMENTS, B, cut, values
from tests.support.streams import DIALECTS, Dialect

dialects = pytest.mark.parametrize("dialect", DIALECTS, ids=lambda d: d.name)


def streamed(dialect: Dialect, found: Values, chunks: Iterable[bytes]) -> Iterator[bytes]:
    """What a client gets of an answer, piece by piece."""
    adapter = registry.find(registry.builtin(), dialect.host, dialect.path)
    head = ((b"content-type", dialect.content_type.encode()),)
    opened = AnswerRestoration(adapter, found, Limits()).open(200, head)
    assert opened is not None
    for chunk in chunks:
        yield opened[1].feed(chunk)
    yield opened[1].end()


@dialects
def test_restoring(dialect: Dialect) -> None:
    answer = dialect.write(cut(SHORT, [8, 20]), cut(SHORT_ARGUMENTS, [12]))
    whole = b"".join(streamed(dialect, values(), [answer]))

    checked = assert_chunk_invariant(
        lambda chunks: streamed(dialect, values(), chunks), lambda _: whole, answer
    )

    assert whole != answer
    assert checked >= len(answer) - 1


@pytest.mark.parametrize(
    "dialect", [d for d in DIALECTS if d.name in {"chat", "invoke", "ollama"}], ids=lambda d: d.name
)
def test_masking(dialect: Dialect) -> None:
    answer = dialect.write(cut(SHORT, [8, 20]), cut(SHORT_ARGUMENTS, [12]))

    def marks() -> Marks:
        return Marks({B: "[REDACTED:X]"})

    whole = b"".join(streamed(dialect, marks(), [answer]))
    assert_chunk_invariant(lambda chunks: streamed(dialect, marks(), chunks), lambda _: whole, answer)
    assert b"[REDACTED:X]" in whole or dialect.content_type.endswith("eventstream")


def test_plain_text_in_three_parts() -> None:
    plain = Dialect(
        "text", "api.openai.com", "/v1/audio/transcriptions", "text/vtt", DIALECTS[0].events, DIALECTS[0].hear
    )
    text = f"E {B[:10]} {B}.".encode()
    whole = b"".join(streamed(plain, values(), [text]))

    assert_chunk_invariant(lambda chunks: streamed(plain, values(), chunks), lambda _: whole, text, splits=3)
    assert B.encode() not in whole


def test_the_check_can_fail() -> None:
    with pytest.raises(ChunkInvarianceError):
        assert_chunk_invariant(
            lambda chunks: (chunk.replace(b"ab", b"x") for chunk in chunks),
            lambda text: text.replace(b"ab", b"x"),
            b"-ab-",
        )
