"""Token ids as the text they stand for: by model, from tables in the form of tiktoken."""

from __future__ import annotations

import base64
import gzip
import importlib.util
from pathlib import Path

import pytest

from gateway.app.tokentables import TokenTables, installed_tables
from gateway.errors import SetupError
from gateway.providers.tokenids import encoding_of, lists_of

TOKENS = [bytes([n]) for n in range(256)] + [b"see", b" ghp", "ü".encode()]


@pytest.fixture
def tables(tmp_path: Path) -> TokenTables:
    lines = b"\n".join(base64.b64encode(token) + b" %d" % n for n, token in enumerate(TOKENS))
    (tmp_path / "cl100k_base.tiktoken.gz").write_bytes(gzip.compress(lines + b"\n"))
    return TokenTables(tmp_path)


def test_ids_are_read_in_the_encoding_of_the_model(tables: TokenTables) -> None:
    assert tables.text("text-embedding-3-small", [256, 257, ord("_"), 0xC3, 0xBC]) == "see ghp_ü"
    assert tables.text("openai/text-embedding-ada-002", [258]) == "ü"
    assert tables.text("text-embedding-3-small", [0xC3]) == "\ufffd"


@pytest.mark.parametrize(
    ("model", "ids"), [("gpt-4o", [1]), ("voyage-3", [1]), ("text-embedding-3-small", [100_257]), ("", [1])]
)
def test_what_is_not_known_is_not_guessed(tables: TokenTables, model: str, ids: list[int]) -> None:
    assert tables.text(model, ids) is None


@pytest.mark.parametrize(
    ("model", "encoding"),
    [
        ("text-embedding-3-large", "cl100k_base"), ("gpt-4", "cl100k_base"), ("gpt-4-turbo-preview", "cl100k_base"),
        ("gpt-3.5-turbo-instruct", "cl100k_base"), ("davinci-002", "cl100k_base"), ("gpt-4o-mini", "o200k_base"),
        ("gpt-4.1", "o200k_base"), ("gpt-5", "o200k_base"), ("o3-mini", "o200k_base"), ("mistral-embed", ""),
        ("text-embedding-3-small-but-ours", ""), ("gpt-40", ""),
    ],
)  # fmt: skip
def test_encodings_of_models(model: str, encoding: str) -> None:
    assert encoding_of(model) == encoding


@pytest.mark.parametrize("damaged", [b"no gzip", gzip.compress(b"aGk= x\n"), gzip.compress(b"aGk= 1\n")[:-9]])
def test_a_damaged_table_stops_the_start_and_no_request(tmp_path: Path, damaged: bytes) -> None:
    (tmp_path / "o200k_base.tiktoken.gz").write_bytes(damaged)
    with pytest.raises(SetupError, match="cannot be read"):
        TokenTables(tmp_path)


def test_a_request_reads_no_file(tables: TokenTables, tmp_path: Path) -> None:
    """Reading a table takes longer than the event loop may be held up: that is done before."""
    (tmp_path / "cl100k_base.tiktoken.gz").unlink()
    assert tables.text("gpt-4", [256]) == "see"


def test_lists_of_ids() -> None:
    assert lists_of([1, 2]) == [[1, 2]]
    assert lists_of([[1], [2, 3]]) == [[1], [2, 3]]
    for other in ([], "x", [1, "x"], [[1], "x"], [[1], [True]], {"a": 1}, None):
        assert lists_of(other) is None


@pytest.mark.skipif(
    importlib.util.find_spec("bpe_openai") is None, reason="the extra `tokens` is not installed"
)
def test_the_published_tables() -> None:
    tables = installed_tables()
    assert (
        tables.text("text-embedding-3-small", [15339, 1917]) == "hello world"
    )  # as tiktoken's own documentation has it
    assert tables.text("gpt-4o", [24912, 2375]) == "hello world"


def test_without_the_extra_the_gateway_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(SetupError) as caught:
        installed_tables()
    assert "[tokens]" in str(caught.value.hint)
