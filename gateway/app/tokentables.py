"""The tables of OpenAI's encodings, as they lie in the wheel of `bpe-openai`; its code is never run.

A table is one line a token: the bytes in base64, a blank, the id (the form of tiktoken). All are read at start: the
larger one takes 0.15 s, which no request waits for.
"""

from __future__ import annotations

import base64
import gzip
import importlib.util
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gateway.errors import SetupError, words_of
from gateway.providers.tokenids import ENCODINGS, encoding_of

_PACKAGE = "bpe_openai"
_SUFFIX = ".tiktoken.gz"


@dataclass(slots=True)
class TokenTables:
    """ports.TokenReader over a folder of tables, `<encoding>.tiktoken.gz`; SetupError where one cannot be read."""

    folder: Path
    _tables: dict[str, Mapping[int, bytes]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        paths = [self.folder / f"{name}{_SUFFIX}" for name in sorted(ENCODINGS)]
        try:
            self._tables = {
                path.name.removesuffix(_SUFFIX): read_table(path.read_bytes())
                for path in paths
                if path.is_file()
            }
        except (OSError, EOFError, ValueError, zlib.error) as error:  # gzip.BadGzipFile is an OSError
            raise SetupError(
                "plugins.extractors",
                f"the tables of token ids in {self.folder} cannot be read ({words_of(error)})",
                hint="install the extra `tokens` anew, or take token_ids out of [plugins] extractors",
            ) from None

    def text(self, model: str, ids: Sequence[int]) -> str | None:
        """See ports.TokenReader. Tokens that are no text of their own (special ones) are not known."""
        table = self._tables.get(encoding_of(model))
        if table is None:
            return None
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
