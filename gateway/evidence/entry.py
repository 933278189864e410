"""One entry of the log: which records were made durable together, chained to the entry before it.

An entry is canonical JSON (sorted members, no white space, UTF-8) and the leaf of the Merkle tree:

```json
{"kind":"request","prev":"sha256:…","records":[{"digest":"sha256:…","kind":"receipt"}],
 "request":"…","row":"sha256:…","seq":7,"time":"…","v":1}
```

`prev` is the leaf hash of entry seq-1 (64 zeros in entry 0). `request` and `row` are absent where the
append had no index row; `row` is the digest of the index row as this entry left it, so that a listing
cannot be altered unseen.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any, cast

import orjson

from gateway.errors import VerificationError
from gateway.evidence.merkle import leaf_hash
from gateway.ports import Record, RequestRow

GENESIS = bytes(32)
"""What stands for the hash before the first entry."""

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}", re.ASCII)
_MEMBERS = frozenset({"kind", "prev", "records", "request", "row", "seq", "time", "v"})


def canonical(value: object) -> bytes:
    """Canonical JSON: sorted members, no white space, UTF-8 (contract §4.3)."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def digest_of(data: bytes) -> str:
    """`sha256:` and 64 hex digits."""
    return "sha256:" + sha256(data).hexdigest()


def row_document(row: RequestRow) -> dict[str, Any]:
    """The index row as a JSON object; absent references are left out."""
    names = (name for name in RequestRow.__slots__ if getattr(row, name) is not None)
    return {name: getattr(row, name) for name in names}


def row_digest(row: RequestRow) -> str:
    """The digest by which an entry binds the index row."""
    return digest_of(canonical(row_document(row)))


@dataclass(frozen=True)
class Entry:
    """A log entry as it is read back. `records` are (kind, digest) in the order of the append."""

    seq: int
    time: str
    kind: str
    prev: bytes
    records: tuple[tuple[str, str], ...]
    request: str | None = None
    row: str | None = None

    @cached_property
    def body(self) -> bytes:
        """Its canonical bytes."""
        document: dict[str, Any] = {
            "v": 1,
            "seq": self.seq,
            "time": self.time,
            "kind": self.kind,
            "prev": "sha256:" + self.prev.hex(),
            "records": [{"digest": digest, "kind": kind} for kind, digest in self.records],
        }
        if self.request is not None:
            document |= {"request": self.request, "row": self.row}
        return canonical(document)

    @cached_property
    def leaf(self) -> bytes:
        """Its hash: a leaf of the tree, and `prev` of the next entry."""
        return leaf_hash(self.body)


def kind_of(records: Sequence[Record]) -> str:
    """The kind of an entry: `request` where it opens one with a receipt, else the kind of its first record."""
    kinds = [record.kind for record in records]
    return "request" if "receipt" in kinds else kinds[0] if kinds else "row"


def make_entry(seq: int, time: str, prev: bytes, records: Sequence[Record], row: RequestRow | None) -> Entry:
    """The entry for one append."""
    covered = tuple((record.kind, record.digest) for record in records)
    request, digest = (row.request_id, row_digest(row)) if row else (None, None)
    return Entry(seq, time, kind_of(records), prev, covered, request, digest)


def _is_well_formed(document: Mapping[str, Any]) -> bool:
    """Whether everything is of its type: readers of other types would not agree on what they read."""
    texts = [document["time"], document["kind"], *(item["kind"] for item in document["records"])]
    digests = [document["prev"], *(item["digest"] for item in document["records"])]
    if "request" in document:
        texts.append(document["request"])
        digests.append(document["row"])
    numbers = type(document["v"]) is int and document["v"] == 1
    return (
        numbers
        and type(document["seq"]) is int
        and document["seq"] >= 0
        and all(isinstance(text, str) for text in texts)
        and all(isinstance(name, str) and _DIGEST.fullmatch(name) for name in digests)
    )


def read_entry(body: bytes) -> Entry:
    """Read an entry; VerificationError where it is not what `make_entry` writes."""
    try:
        document = cast("Mapping[str, Any]", orjson.loads(body))
        entry = Entry(
            document["seq"],
            document["time"],
            document["kind"],
            bytes.fromhex(document["prev"].removeprefix("sha256:")),
            tuple((item["kind"], item["digest"]) for item in document["records"]),
            document.get("request"),
            document.get("row"),
        )
        exact = document.keys() <= _MEMBERS and entry.body == body and _is_well_formed(document)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise VerificationError("entry.malformed", "a log entry cannot be read") from error
    if not exact:
        raise VerificationError("entry.malformed", "a log entry is not in its canonical form")
    return entry


def read_line(line: bytes) -> Mapping[str, Any]:
    """A line as JSON; in any other form than the canonical one, two readers could read two things."""
    document: Mapping[str, Any] = orjson.loads(line)
    if canonical(document) + b"\n" != line or not _is_plain(document):
        raise VerificationError("line.malformed", "a line is not in its canonical form")
    return document


def _is_plain(value: object) -> bool:
    """Whether every number is an integer of 64 bits with a sign: of others there is more than one reading."""
    if isinstance(value, Mapping):
        return all(map(_is_plain, value.values()))
    if isinstance(value, list):
        return all(map(_is_plain, value))
    return (
        value is None or isinstance(value, str) or (isinstance(value, int) and -(1 << 63) <= value < 1 << 63)
    )


def texts(value: object) -> list[str]:
    """A list of texts; VerificationError where it is none."""
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise VerificationError("line.malformed", "a list of texts is none")
    return value
