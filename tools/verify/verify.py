"""Verify an exported bundle of receipts with nothing but a public key.

A second implementation of docs/receipts.md, in one file, with the standard library and `cryptography` only. It
shares no code with the gateway on purpose: what both accept was understood twice.

    python verify.py BUNDLE --key FILE [--json]

Exit status 0 where everything holds, 1 where something does not, 2 for unusable arguments.
"""

from __future__ import annotations

import argparse
import base64
import binascii
import hashlib
import json
import re
import sys
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_public_key

HANDOVER = "application/vnd.egress.key-handover+json"
ENTRY_MEMBERS = {"kind", "prev", "records", "request", "row", "seq", "time", "v"}


class BadBundleError(Exception):
    """Something does not hold. `kind` as in the report; `index` where an entry itself is named."""

    def __init__(self, kind: str = "modified", index: int | None = None) -> None:
        super().__init__(kind)
        self.kind = kind
        self.index = index


# -- bytes ----------------------------------------------------------------------------------------------------------


def canonical(value: Any) -> bytes:
    """JSON with sorted members, no white space, UTF-8."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def sha256_name(data: bytes) -> str:
    """`sha256:` and the hex digest."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def is_digest(value: object) -> bool:
    """Whether this is `sha256:` and 64 lower-case hex digits."""
    return type(value) is str and re.fullmatch("sha256:[0-9a-f]{64}", value) is not None


def unbase64(text: str) -> bytes:
    """Strict standard Base64: one text for each value."""
    try:
        found = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError, TypeError) as error:
        raise BadBundleError from error
    if base64.b64encode(found).decode() != text:
        raise BadBundleError
    return found


def parse(text: str | bytes) -> Any:
    """One JSON text without repeated members."""

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            raise BadBundleError
        return found

    def whole(digits: str) -> int:
        number = int(digits) if len(digits) < 21 else 1 << 63
        if not -(1 << 63) <= number < 1 << 63:
            raise BadBundleError
        return number

    def no_number(_: str) -> None:
        raise BadBundleError

    try:
        return json.loads(
            text, object_pairs_hook=members, parse_int=whole, parse_float=no_number, parse_constant=no_number
        )
    except (ValueError, RecursionError) as error:
        raise BadBundleError from error


# -- keys and signatures --------------------------------------------------------------------------------------------


def key_id(name: str, key: bytes) -> bytes:
    """The four bytes by which a signed note names a key."""
    return hashlib.sha256(name.encode() + b"\n\x01" + key).digest()[:4]


def read_key(text: str) -> bytes:
    """32 bytes of an Ed25519 key in PEM or C2SP verifier form."""
    text = text.strip()
    if text.startswith("-----BEGIN"):
        try:
            loaded = load_pem_public_key(text.encode())
        except (ValueError, UnsupportedAlgorithm) as error:
            raise BadBundleError("signature") from error
        if not isinstance(loaded, Ed25519PublicKey):
            raise BadBundleError("signature")
        return loaded.public_bytes(Encoding.Raw, PublicFormat.Raw)
    pieces = text.split("+", 2)
    if len(pieces) != 3:
        raise BadBundleError("signature")
    name, identifier, encoded = pieces
    raw = unbase64(encoded)
    if len(raw) != 33 or raw[0] != 1 or key_id(name, raw[1:]).hex() != identifier:
        raise BadBundleError("signature")
    return raw[1:]


def signed(key: bytes, signature: bytes, message: bytes) -> bool:
    """Whether an Ed25519 signature holds."""
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True


def read_handover(text: str) -> tuple[bytes, bytes]:
    """(old, new) key of a hand-over that both signed."""
    envelope = parse(text)
    payload = unbase64(envelope["payload"])
    if envelope["payloadType"] != HANDOVER:
        raise BadBundleError
    message = b"DSSEv1 %d %s %d %s" % (len(HANDOVER), HANDOVER.encode(), len(payload), payload)
    statement = parse(payload)
    pair = read_key(statement["old"]), read_key(statement["new"])
    signatures = [unbase64(item["sig"]) for item in envelope["signatures"]]
    if not all(any(signed(key, signature, message) for signature in signatures) for key in pair):
        raise BadBundleError
    return pair


def key_line(key: bytes, handovers: list[str]) -> list[bytes]:
    """Every key that hand-overs join to the one that is trusted, oldest first."""
    if type(handovers) is not list or any(type(text) is not str for text in handovers):
        raise BadBundleError
    pairs = []
    for text in handovers:
        try:
            pairs.append(read_handover(text))
        except (BadBundleError, KeyError, TypeError, AttributeError):
            continue  # one that does not hold adds nothing
    line = [key]
    for old, new in pairs:
        if line[-1] == old:
            line.append(new)
    for old, new in reversed(pairs):
        if line[0] == new:
            line.insert(0, old)
    return line


def open_checkpoint(note: str, keys: list[bytes]) -> tuple[str, int, bytes]:
    """(origin, size, root) of a checkpoint that one of the keys signed."""
    body, separator, tail = note.rpartition("\n\n")
    lines = body.split("\n")
    if not separator or not tail.endswith("\n") or len(lines) < 3:
        raise BadBundleError
    origin, size, root = lines[0], lines[1], unbase64(lines[2])
    if not origin or len(root) != 32 or not size.isascii() or not size.isdigit() or str(int(size)) != size:
        raise BadBundleError
    message, good = (body + "\n").encode(), False
    for line in tail[:-1].split("\n"):
        words = line.split(" ")
        if len(words) != 3 or words[0] != "—":
            raise BadBundleError
        raw = unbase64(words[2])
        if len(raw) < 5:
            raise BadBundleError
        good = good or any(key_id(words[1], k) == raw[:4] and signed(k, raw[4:], message) for k in keys)
    if not good:
        raise BadBundleError("signature")
    return origin, int(size), root


def signed_checkpoint(note: str, keys: list[bytes]) -> tuple[str, int, bytes]:
    """As `open_checkpoint`; one that cannot be read is not signed either."""
    try:
        return open_checkpoint(note, keys)
    except BadBundleError as error:
        raise BadBundleError("signature") from error


# -- the tree -------------------------------------------------------------------------------------------------------


def node(left: bytes, right: bytes) -> bytes:
    """Hash of an inner node."""
    return hashlib.sha256(b"\x01" + left + right).digest()


def split(count: int) -> int:
    """The largest power of two below `count`: where a tree of so many leaves divides."""
    half = 1
    while half * 2 < count:
        half *= 2
    return half


def included(leaf: bytes, index: int, size: int, path: list[bytes], root: bytes) -> bool:
    """Whether the audit path leads from the leaf to the root: the definition of RFC 6962 §2.1.1, read backwards."""

    def climb(start: int, end: int, rest: list[bytes]) -> bytes:
        if end - start == 1:
            if rest:
                raise BadBundleError
            return leaf
        if not rest:
            raise BadBundleError
        middle, sibling = start + split(end - start), rest[-1]
        if index < middle:
            return node(climb(start, middle, rest[:-1]), sibling)
        return node(sibling, climb(middle, end, rest[:-1]))

    try:
        return 0 <= index < size and climb(0, size, path) == root
    except BadBundleError:
        return False


def grown(old: int, new: int, old_root: bytes, new_root: bytes, path: list[bytes]) -> bool:
    """Whether the larger tree begins with the smaller one."""
    if old == new:
        return old >= 0 and not path and old_root == new_root
    if old == 0:
        return new > 0 and not path and old_root == hashlib.sha256(b"").digest()
    try:
        return 0 < old < new and both_roots(old, (0, new), old_root, path) == (old_root, new_root)
    except BadBundleError:
        return False


def both_roots(
    old: int, part: tuple[int, int], known: bytes | None, rest: list[bytes]
) -> tuple[bytes, bytes]:
    """The roots over leaves `part` in the old and in the new tree (RFC 6962 §2.1.2, read backwards).

    `known` is the old root while the part still begins where the tree does; then it need not be in the proof.
    """
    start, end = part
    if old == end:
        hashes = rest if known is None else [known, *rest]
        if len(hashes) != 1:
            raise BadBundleError
        return hashes[0], hashes[0]
    if not rest:
        raise BadBundleError
    middle, sibling = start + split(end - start), rest[-1]
    if old <= middle:
        before, after = both_roots(old, (start, middle), known, rest[:-1])
        return before, node(after, sibling)
    before, after = both_roots(old, (middle, end), None, rest[:-1])
    return node(sibling, before), node(sibling, after)


# -- the bundle -----------------------------------------------------------------------------------------------------


LINE_MEMBERS = {
    "header": {"type", "v", "key", "checkpoint", "handovers", "consistency"},
    "record": {"type", "digest", "data"},
    "entry": {"type", "index", "data", "proof", "row"},
    "end": {"type", "entries", "records", "not_yet_logged"},
}


class Bundle:
    """The lines read so far."""

    def __init__(self, key: bytes, older: tuple[str, int, bytes] | None) -> None:
        self.key = key
        self.older = older
        self.checkpoint: tuple[str, int, bytes] | None = None
        self.entries = self.torn = self.not_yet_logged = 0
        self.last = -1
        self.ended = False
        self.records: set[str] = set()
        self.uncovered: set[str] = set()

    def line(self, data: bytes) -> None:
        """Read one line; BadBundleError where it does not hold."""
        if not data.endswith(b"\n"):
            self.torn += 1
            raise BadBundleError("torn")
        document = parse(data)
        kind = document["type"]
        if canonical(document) + b"\n" != data:
            raise BadBundleError
        if self.ended or (kind == "header") != (self.checkpoint is None):
            raise BadBundleError
        readers = {"header": self.header, "record": self.record, "entry": self.entry, "end": self.end}
        if kind not in readers or not document.keys() <= LINE_MEMBERS[kind]:
            raise BadBundleError
        readers[kind](document)

    def header(self, document: dict[str, Any]) -> None:
        """Which checkpoint the entries are held against."""
        if natural(document["v"]) != 1:
            raise BadBundleError
        keys = key_line(self.key, document["handovers"])
        now = signed_checkpoint(document["checkpoint"], keys[-1:])
        proven = [now]
        if "consistency" in document:
            before = signed_checkpoint(document["consistency"]["old"], keys)
            proof = [unbase64(item) for item in document["consistency"]["proof"]]
            exact = document["consistency"].keys() == {"old", "proof"} and before[0] == now[0]
            if not exact or not grown(before[1], now[1], before[2], now[2], proof):
                raise BadBundleError
            proven.append(before)
        self.checkpoint = now
        if self.older is not None and self.older not in proven:
            raise BadBundleError("truncated")

    def record(self, document: dict[str, Any]) -> None:
        """A record that a later entry covers."""
        name = document["digest"]
        if sha256_name(document["data"].encode()) != name or name in self.records:
            raise BadBundleError
        self.records.add(name)
        self.uncovered.add(name)

    def entry(self, document: dict[str, Any]) -> None:
        """An entry, its place in the tree, its records and its index row."""
        index, body = document["index"], document["data"].encode()
        if type(index) is not int or index <= self.last or self.checkpoint is None:
            raise BadBundleError
        self.entries += 1
        entry = parse(body)
        proof = [unbase64(item) for item in document["proof"]]
        names = self.entry_form(entry, body)
        _, size, root = self.checkpoint
        leaf = hashlib.sha256(b"\x00" + body).digest()
        good = entry["seq"] == index and included(leaf, index, size, proof, root) and names <= self.records
        if "row" in document and document["row"] is not None:
            good = good and sha256_name(canonical(document["row"])) == entry.get("row")
        if not good:
            raise BadBundleError(index=index)
        self.uncovered -= names
        self.last = index

    @staticmethod
    def entry_form(entry: dict[str, Any], body: bytes) -> set[str]:
        """The digests of the records of an entry in its one form."""
        missing = ENTRY_MEMBERS - entry.keys()
        if not entry.keys() <= ENTRY_MEMBERS or missing not in (set(), {"request", "row"}):
            raise BadBundleError
        bare = [{"digest": item["digest"], "kind": item["kind"]} for item in entry["records"]]
        texts = [entry["kind"], entry["time"], *(item["kind"] for item in bare)]
        digests = [entry["prev"], *(item["digest"] for item in bare)]
        if not missing:
            texts.append(entry["request"])
            digests.append(entry["row"])
        if natural(entry["v"]) != 1 or bare != entry["records"] or canonical(entry) != body:
            raise BadBundleError
        natural(entry["seq"])
        if not all(type(text) is str for text in texts) or not all(map(is_digest, digests)):
            raise BadBundleError
        return {item["digest"] for item in bare}

    def end(self, document: dict[str, Any]) -> None:
        """The counts, and that no record is left over."""
        self.ended = True
        self.not_yet_logged = natural(document["not_yet_logged"])
        if (natural(document["entries"]), natural(document["records"])) != (self.entries, len(self.records)):
            raise BadBundleError("truncated")
        if self.uncovered:
            raise BadBundleError


def shown_holds(document: dict[str, Any], key: bytes) -> bool:
    """Whether the one decision of a disclosure is in the log; BadBundleError("signature") for its checkpoint."""
    keys = key_line(key, document["handovers"])
    _, size, root = signed_checkpoint(document["checkpoint"], keys[-1:])
    place, shown, commitment = document["entry"], document["decision"], parse(document["commitment"])
    body, text = place["data"].encode(), shown["data"].encode()
    salt, pair, count = unbase64(shown["salt"]), parse(text), natural(commitment["count"])
    expected = {"type", "v", "key", "checkpoint", "handovers", "entry", "commitment", "decision"}
    forms = (
        document.keys() == expected
        and place.keys() == {"index", "data", "proof"}
        and natural(document["v"]) == 1,
        shown.keys() == {"index", "salt", "data", "proof"} and len(salt) == 32,
        commitment.keys() == {"count", "root", "v"} and natural(commitment["v"]) == 1,
        pair.keys() == {"decision", "object"} and canonical(pair) == text,
    )
    Bundle.entry_form(entry := parse(body), body)
    name = {"digest": sha256_name(document["commitment"].encode()), "kind": "decisions"}
    path, within = [[unbase64(item) for item in of["proof"]] for of in (place, shown)]
    tree = bytes.fromhex(commitment["root"].removeprefix("sha256:"))
    return (
        all(forms)
        and type(shown["index"]) is int
        and entry["seq"] == place["index"]
        and name in entry["records"]
        and included(hashlib.sha256(b"\x00" + body).digest(), place["index"], size, path, root)
        and included(hashlib.sha256(b"\x00" + salt + text).digest(), shown["index"], count, within, tree)
        and bool(pair["decision"]["object"] == pair["object"]["digest"])
    )


def natural(value: object) -> int:
    """A whole number from 0 up."""
    if type(value) is not int or value < 0:
        raise BadBundleError
    return value


def verify_disclosure(data: bytes, key: bytes) -> dict[str, Any]:
    """The report over a disclosure."""
    index, kind = 0, "" if data.endswith(b"\n") else "torn"
    try:
        if not kind:
            document = parse(data)
            exact = canonical(document) + b"\n" == data
            index = natural(document["entry"]["index"]) if exact else 0
            if not exact or not shown_holds(document, key):
                kind = "modified"
    except BadBundleError as error:
        kind = error.kind
    except (KeyError, TypeError, AttributeError, ValueError):
        kind = "modified"
    return {
        "ok": not kind,
        "entries": int(kind != "torn"),
        "not_yet_logged": 0,
        "torn": int(kind == "torn"),
        "first_bad": {"index": index, "kind": kind} if kind else None,
    }


def verify(data: bytes, key: bytes, older: tuple[str, int, bytes] | None = None) -> dict[str, Any]:
    """The report over a bundle or a disclosure. `older` is a checkpoint that the log must have grown out of."""
    if data.count(b"\n") <= 1 and b'"type":"disclosure"' in data:
        return verify_disclosure(data, key)
    bundle, bad = Bundle(key, older), None
    for line in data.splitlines(keepends=True):
        try:
            bundle.line(line)
        except BadBundleError as found:
            bad = found
        except (KeyError, TypeError, AttributeError, ValueError):
            bad = BadBundleError()
        if bad is not None:
            break
    if bad is None and not bundle.ended:
        bad = BadBundleError("truncated")
    first = None
    if bad is not None:
        first = {"index": bundle.last + 1 if bad.index is None else bad.index, "kind": bad.kind}
    report = {
        "ok": first is None,
        "entries": bundle.entries,
        "not_yet_logged": bundle.not_yet_logged,
        "torn": bundle.torn,
        "first_bad": first,
    }
    return report if bundle.checkpoint is None else report | {"logged": bundle.checkpoint[1]}


def last_note(text: str) -> tuple[str, int, bytes]:
    """(origin, size, root) of the last checkpoint in a file of them; whoever kept it knows that it was signed."""
    head, mark, _ = text.rpartition("\n\n— ")
    lines = head.rpartition("\n\n")[2].split("\n")
    if not mark or len(lines) < 3:
        raise BadBundleError
    return lines[0], int(lines[1]), unbase64(lines[2])


def main(arguments: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description="Verify an exported bundle of receipts.")
    parser.add_argument("bundle", type=Path)
    parser.add_argument("--key", type=Path, required=True, help="the public key, PEM or verifier form")
    parser.add_argument(
        "--older", type=Path, help="a checkpoint kept from before: the log must have grown out of it"
    )
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    given = parser.parse_args(arguments)
    try:
        key, data = read_key(given.key.read_text()), given.bundle.read_bytes()
        older = last_note(given.older.read_text()) if given.older else None
    except (OSError, ValueError, BadBundleError) as error:
        parser.error(f"cannot be read: {type(error).__name__}")
    report = verify(data, key, older)
    print(
        json.dumps(report)
        if given.json
        else ("holds" if report["ok"] else f"does not hold: {report['first_bad']}")
    )
    return 0 if report["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
