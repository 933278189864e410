"""A piece of the log that stands for itself: JSON lines, verified with the public key alone.

```json
{"type":"header","v":1,"key":"name+id+key","checkpoint":"…","handovers":["…"]}
{"type":"record","digest":"sha256:…","data":"…"}
{"type":"entry","index":7,"data":"…","proof":["…"],"row":{}}
{"type":"end","entries":1,"records":1,"not_yet_logged":0}
```

Lines are canonical JSON. Records stand before the first entry that covers them. `data` is the exact text that is
hashed, `proof` the audit path to the root of the header's checkpoint in Base64, `row` the index row where this entry
set it last. The header may carry `consistency`: an older checkpoint and the proof that the log only grew since.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gateway.errors import VerificationError
from gateway.evidence.checkpoint import Checkpoint, open_note, read_note
from gateway.evidence.entry import canonical, digest_of, read_entry, read_line, texts
from gateway.evidence.merkle import leaf_hash, verify_consistency, verify_inclusion
from gateway.evidence.sign import decode_base64
from gateway.evidence.verify import FirstBad, Report, trusted_keys

_MEMBERS = {
    "header": {"type", "v", "key", "checkpoint", "handovers", "consistency"},
    "record": {"type", "digest", "data"},
    "entry": {"type", "index", "data", "proof", "row"},
    "end": {"type", "entries", "records", "not_yet_logged"},
}


def header_line(
    key: str,
    checkpoint: bytes,
    handovers: Iterable[bytes] = (),
    consistency: tuple[bytes, Sequence[bytes]] | None = None,
) -> bytes:
    """The first line. `consistency` is (older checkpoint, proof)."""
    document: dict[str, Any] = {
        "type": "header",
        "v": 1,
        "key": key,
        "checkpoint": checkpoint.decode(),
        "handovers": [data.decode() for data in handovers],
    }
    if consistency is not None:
        document["consistency"] = {"old": consistency[0].decode(), "proof": _encoded(consistency[1])}
    return _line(document)


def record_line(digest: str, data: bytes) -> bytes:
    """A record; its text is canonical JSON, so that it survives inside a string."""
    return _line({"type": "record", "digest": digest, "data": data.decode()})


def entry_line(index: int, body: bytes, proof: Sequence[bytes], row: Mapping[str, Any] | None) -> bytes:
    """An entry with its audit path; `row` is the document of its index row, where it set that last."""
    document: dict[str, Any] = {
        "type": "entry",
        "index": index,
        "data": body.decode(),
        "proof": _encoded(proof),
    }
    if row is not None:
        document["row"] = dict(row)
    return _line(document)


def end_line(entries: int, records: int, not_yet_logged: int) -> bytes:
    """The last line; without it a piece was cut short."""
    return _line({"type": "end", "entries": entries, "records": records, "not_yet_logged": not_yet_logged})


def _line(document: Mapping[str, Any]) -> bytes:
    return canonical(document) + b"\n"


def _encoded(proof: Sequence[bytes]) -> list[str]:
    return [b64encode(item).decode() for item in proof]


def verify_lines(lines: Iterable[bytes], key: bytes, older: bytes | None = None) -> Report:
    """Verify an exported piece, line by line (each with its line end), with one public key of the log.

    Entries are counted as they stand in the piece; the first bad one is named by its place in the log. `older` is a
    checkpoint that the reader kept: the piece must prove that its log grew out of that. VerificationError where it is
    no checkpoint.
    """
    reading = _Reading(key, None if older is None else read_note(older).checkpoint)
    for line in lines:
        if reading.bad is None:
            reading.take(line)
    return reading.report()


def _open(note: str, keys: Sequence[bytes]) -> Checkpoint:
    """A checkpoint that one of the keys signed; whatever else it may be is not signed."""
    data = note.encode()
    try:
        return open_note(data, keys)
    except VerificationError as error:
        raise VerificationError("checkpoint.signature", str(error)) from error


def _grown(claimed: Mapping[str, Any], keys: Sequence[bytes], seen: Checkpoint) -> Checkpoint:
    """The older checkpoint that `seen` is proven to have grown out of."""
    old = _open(claimed["old"], keys)
    proof = [decode_base64(item) for item in claimed["proof"]]
    exact = claimed.keys() == {"old", "proof"} and old.origin == seen.origin
    if not exact or not verify_consistency(old.size, seen.size, old.root, seen.root, proof):
        raise VerificationError("bundle.consistency", "the log did not grow out of the older checkpoint")
    return old


def _count(value: object) -> int:
    if type(value) is not int or value < 0:
        raise VerificationError("bundle.line", "a number of lines is not one")
    return value


@dataclass(slots=True)
class _Reading:
    """How far a piece has been read."""

    key: bytes
    kept: Checkpoint | None = None  # by the reader, from before
    checkpoint: Checkpoint | None = None
    bad: FirstBad | None = None
    entries: int = 0
    records: int = 0
    torn: int = 0
    not_yet_logged: int = 0
    ended: bool = False
    last: int = -1  # the place in the log of the last entry
    _seen: set[str] = field(default_factory=set)  # digests of the records so far
    _unclaimed: set[str] = field(default_factory=set)  # those that no entry has covered

    def take(self, line: bytes) -> None:
        """Read one line."""
        if not line.endswith(b"\n"):
            self.torn += 1
            self._condemn("torn")
            return
        try:
            self._read(read_line(line))
        except VerificationError as error:
            self._condemn("signature" if error.code == "checkpoint.signature" else "modified")
        except (ValueError, TypeError, KeyError, AttributeError):
            self._condemn("modified")

    def _condemn(self, kind: str, index: int | None = None) -> None:
        self.bad = self.bad or FirstBad(self.last + 1 if index is None else index, kind)

    def _read(self, document: Mapping[str, Any]) -> None:
        kind = document["type"]
        if not document.keys() <= _MEMBERS[kind]:
            raise VerificationError("bundle.line", "a line has a member that no verifier would look at")
        if self.ended or (kind == "header") != (self.checkpoint is None):
            raise VerificationError("bundle.order", "a line does not stand where it must")
        match kind:
            case "header":
                self._header(document)
            case "record":
                self._record(document)
            case "entry":
                self._entry(document)
            case "end":
                self._end(document)
            case _:
                raise VerificationError("bundle.line", "a line of an unknown type")

    def _header(self, document: Mapping[str, Any]) -> None:
        if _count(document["v"]) != 1:
            raise VerificationError("bundle.version", "a bundle of another version")
        keys = trusted_keys(self.key, [text.encode() for text in texts(document["handovers"])])
        seen = _open(document["checkpoint"], keys[-1:])  # a key that was followed vouches for nothing new
        proven = [seen]
        if "consistency" in document:
            proven.append(_grown(document["consistency"], keys, seen))
        self.checkpoint = seen
        if self.kept is not None and self.kept not in proven:
            self._condemn("truncated")

    def _record(self, document: Mapping[str, Any]) -> None:
        name = document["digest"]
        if digest_of(document["data"].encode()) != name or name in self._seen:
            raise VerificationError("bundle.record", "a record does not have its digest")
        self._seen.add(name)
        self._unclaimed.add(name)
        self.records += 1

    def _entry(self, document: Mapping[str, Any]) -> None:
        index, body = document["index"], document["data"].encode()
        if type(index) is not int or index <= self.last or self.checkpoint is None:
            raise VerificationError("bundle.order", "entries do not stand in the order of the log")
        self.entries += 1
        entry = read_entry(body)
        proof = [decode_base64(item) for item in document["proof"]]
        seen = self.checkpoint
        digests = {name for _, name in entry.records}
        row = document.get("row")
        held = (
            entry.seq == index
            and verify_inclusion(leaf_hash(body), index, seen.size, proof, seen.root)
            and digests <= self._seen
            and (row is None or digest_of(canonical(row)) == entry.row)
        )
        if not held:
            self._condemn("modified", index)
            return
        self._unclaimed -= digests
        self.last = index

    def _end(self, document: Mapping[str, Any]) -> None:
        self.ended = True
        self.not_yet_logged = _count(document["not_yet_logged"])
        if (_count(document["entries"]), _count(document["records"])) != (self.entries, self.records):
            self._condemn("truncated")
        elif self._unclaimed:
            self._condemn("modified")

    def report(self) -> Report:
        """The verdict after the last line."""
        if not self.ended:
            self._condemn("truncated")
        logged = None if self.checkpoint is None else self.checkpoint.size
        return Report(self.entries, self.not_yet_logged, self.torn, self.bad, logged=logged)
