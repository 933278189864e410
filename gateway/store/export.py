"""Self-contained pieces of the stored log: `receipts export`.

What a piece holds is chosen by time of entry, project or receipt; every entry comes with its records, its
audit path to the last checkpoint, and everything else that gateway.evidence.bundle needs to verify it
with the public key alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import apsw
import orjson

from gateway.errors import EvidenceError, VerificationError
from gateway.evidence import bundle
from gateway.evidence.checkpoint import open_note, read_note
from gateway.evidence.disclosure import KIND, disclosure, is_disclosure, pairs_of, verify_disclosure
from gateway.evidence.entry import read_entry, row_document
from gateway.evidence.merkle import consistency_proof, inclusion_proof
from gateway.evidence.sign import read_public_key
from gateway.evidence.verify import Report, trusted_keys
from gateway.store.log import CachedNodes, raw_or_none
from gateway.store.reader import SqliteReader, unreadable
from gateway.store.rows import instant

type SaltKey = Callable[[str], bytes]
"""The key that hides the decisions of a project."""


@dataclass(frozen=True, slots=True)
class Selection:
    """What to export; an empty text means any. Instants are RFC 3339, held against the time of the entry."""

    since: str = ""
    until: str = ""
    project: str = ""
    receipt: str = ""


def export_bundle(path: Path, key: str, what: Selection, older: bytes | None = None) -> Iterator[bytes]:
    """The lines of a bundle from database `path`.

    `key` is the log's public key as a verifier key. With `older`, a checkpoint of this log that the
    reader of the bundle has from before, the bundle proves that the log only grew since. EvidenceError
    where the log cannot be read or has no checkpoint, VerificationError where `older` is not of this log.
    """
    reader = SqliteReader(path)
    try:
        reader.connection.execute("BEGIN")  # one state of the database for the whole piece
        yield from _lines(reader, key, what, older)
    except apsw.Error as error:
        raise unreadable(error) from error
    finally:
        reader.close()


def export_object(path: Path, key: str, receipt: str, pointer: str, salt_key: SaltKey) -> bytes:
    """One decision of a receipt, that about the object at `pointer`, with its proof and nothing of the others.

    `salt_key` gives the key that hides the decisions of a project. EvidenceError where there is no such receipt or
    object or no checkpoint covers it yet, VerificationError where the log commits to other decisions.
    """
    reader = SqliteReader(path)
    try:
        reader.connection.execute("BEGIN")
        return _disclose(reader, key, (receipt, pointer), salt_key)
    except apsw.Error as error:
        raise unreadable(error) from error
    finally:
        reader.close()


def _disclose(reader: SqliteReader, key: str, what: tuple[str, str], salt_key: SaltKey) -> bytes:
    lines = [orjson.loads(line) for line in _lines(reader, key, Selection(receipt=what[0]), None)]
    opening = next(
        (line for line in lines if line["type"] == "entry" and KIND in _kinds(line["data"].encode())), None
    )
    entry = read_entry(opening["data"].encode()) if opening is not None else None
    found = reader.request(entry.request) if entry is not None and entry.request else None
    if opening is None or entry is None or found is None:
        raise EvidenceError("evidence.none", "no checkpoint covers decisions of such a receipt")
    row, names = found[0], dict(entry.records)
    pairs = pairs_of(_present(reader.record(row.receipt)), _present(reader.record(row.evaluation)))
    places = [orjson.loads(evaluation)["pointer"] for _, evaluation in pairs]
    if what[1] not in places:
        raise EvidenceError("evidence.none", "the request has no object at that pointer")
    commitment = _present(reader.record(names[KIND]))
    return disclosure(lines[0], opening, commitment, pairs, places.index(what[1]), salt_key(row.project))


def _kinds(body: bytes) -> set[str]:
    return {kind for kind, _ in read_entry(body).records}


def verify_bundle(data: bytes, key: bytes, older: bytes | None = None) -> Report:
    """Verify a bundle or a disclosure as it was written, with one public key of the log; needs no store.

    `older` is a checkpoint from before, which the log of a bundle must be proven to have grown out of.
    VerificationError where it is none, or is held against a disclosure, which proves no such thing.
    """
    if is_disclosure(data):
        if older is not None:
            raise VerificationError("disclosure.older", "a disclosure does not prove how its log grew")
        return verify_disclosure(data, key)
    return bundle.verify_lines(data.splitlines(keepends=True), key, older)


def _lines(reader: SqliteReader, key: str, what: Selection, older: bytes | None) -> Iterator[bytes]:
    note = reader.connection.execute("SELECT note FROM checkpoints ORDER BY size DESC LIMIT 1").get
    if not isinstance(note, bytes):
        raise EvidenceError("evidence.none", "the log has no checkpoint yet")
    size, handovers = read_note(note).checkpoint.size, reader.handovers()
    nodes = CachedNodes(reader.connection)
    consistency = None
    if older is not None:
        old = open_note(older, trusted_keys(read_public_key(key), handovers))
        consistency = (older, consistency_proof(old.size, size, nodes))
    yield bundle.header_line(key, note, handovers, consistency)
    seen: set[str] = set()
    entries = later = 0
    for seq, body in _chosen(reader, what):
        if seq >= size:
            later += 1
            continue
        entry = read_entry(body)
        for _, name in entry.records:
            if name not in seen:
                seen.add(name)
                yield bundle.record_line(name, _present(reader.record(name)))
        found = reader.request(entry.request) if entry.request else None
        row = row_document(found[0]) if found and found[1] == seq else None
        yield bundle.entry_line(seq, body, inclusion_proof(seq, size, nodes), row)
        entries += 1
    yield bundle.end_line(entries, len(seen), later)


def _present(data: bytes | None) -> bytes:
    if data is None:
        raise EvidenceError("evidence.missing", "a record of the log is not in the store")
    return data


def _chosen(reader: SqliteReader, what: Selection) -> Iterator[tuple[int, bytes]]:
    """The entries to export, by rising number."""
    terms, values = ["length(body) > 0"], []  # of a pruned entry there is nothing to show
    for term, value in (("time >= ?", what.since), ("time <= ?", what.until)):
        if value:
            terms.append(term)
            values.append(instant(value))
    of_requests: list[str] = []
    owners: list[str | bytes] = []
    if what.project:
        of_requests.append("requests.project = ?")
        owners.append(what.project)
    if what.receipt:
        of_requests.append("requests.receipt = ?")
        owners.append(raw_or_none(what.receipt))
    if of_requests:
        chosen = f"FROM requests WHERE {' AND '.join(of_requests)}"
        terms.append(
            f"seq IN (SELECT entry FROM records WHERE request IN (SELECT id {chosen}) UNION SELECT latest {chosen})"  # noqa: S608  # fixed texts
        )
        owners *= 2
    sql = f"SELECT seq, body FROM entries WHERE {' AND '.join(terms)} ORDER BY seq"  # noqa: S608  # fixed texts
    for seq, body in reader.connection.execute(sql, (*values, *owners)):
        if not isinstance(seq, int) or not isinstance(body, bytes):
            raise EvidenceError("evidence.damaged", "an entry of the log is not in its form")
        yield seq, body
