"""The tables of OpenAI's encodings, as they lie in the wheel of `bpe-openai`; its code is never run.

A table is one line a token: the bytes in base64, a blank, the id (the form of tiktoken). It is read when the first
token ids are, and kept.
"""

from __future__ import annotations

import base64
import gzip
import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gateway.errors import SetupError
from gateway.providers.tokenids import encoding_of

_PACKAGE = "bpe_openai"


@dataclass(slots=True)
class TokenTables:
    """ports.TokenReader over a folder of tables, `<encoding>.tiktoken.gz`."""

    folder: Path
    _tables: dict[str, Mapping[int, bytes]] = field(default_factory=dict, repr=False)

    def text(self, model: str, ids: Sequence[int]) -> str | None:
        """See ports.TokenReader. Tokens that are no text of their own (special ones) are not known."""
        name = encoding_of(model)
        path = self.folder / f"{name}.tiktoken.gz"
        if not name or not path.is_file():
            return None
        table = self._tables.get(name)
        if table is None:
            table = self._tables[name] = read_table(path.read_bytes())
        try:
            return b"".join([table[i] for i in ids]).decode("utf-8", "replace")
        except KeyError:
            return None


def read_table(packed: bytes) -> dict[int, bytes]:
    """Bytes by id of a table that is compressed with gzip."""
    lines = gzip.decompress(packed).split(b"\n")
    return {
        int(number): base64.b64decode(text) for text, _, number in (x.partition(b" ") for x in lines) if text
    }


def installed_tables() -> TokenTables:
    """The tables of this environment; SetupError where the package is not installed."""
    spec = importlib.util.find_spec(_PACKAGE)
    folder = None if spec is None or spec.origin is None else Path(spec.origin).parent / "data"
    if folder is None or not folder.is_dir():
        raise SetupError(
            "plugins.extractors",
            "token_ids needs the tables of OpenAI's encodings",
            hint='pip install "model-egress-gateway[tokens]", or take it out of [plugins] extractors',
        )
    return TokenTables(folder)
