r"""One decision shown and proven without the others: a Merkle tree over salted decisions, whose root is in the log.

A leaf is the hash of a salt and of the text `{"decision":…,"object":…}` (what the receipt and the evaluation record say
of one object). Salts are keyed digests of the texts, so that they need not be stored, and that the hash of a neighbour,
which a proof shows, tells nothing about what the neighbour is.

A disclosure is one line of canonical JSON, verified with the log's public key alone:

```json
{"type":"disclosure","v":1,"key":"…","checkpoint":"…","handovers":[],"entry":{"index":7,"data":"…","proof":["…"]},
 "commitment":"{\"count\":9,…}","decision":{"index":3,"salt":"…","data":"…","proof":["…"]}}
```
"""

from __future__ import annotations

import hmac
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from gateway.errors import VerificationError
from gateway.evidence.checkpoint import Checkpoint, open_note
from gateway.evidence.entry import canonical, digest_of, read_entry, read_line, texts
from gateway.evidence.merkle import inclusion_proof, leaf_hash, node_hash, tree_root, verify_inclusion
from gateway.evidence.sign import decode_base64
from gateway.evidence.verify import FirstBad, Report, trusted_keys
from gateway.ports import Record

KIND = "decisions"
"""Kind of the record that commits to the decisions of a receipt."""

UNSIGNED = "disclosure.signature"
_GROUP = 4  # level of the subtrees that are remembered: a conversation's history is hashed once
_MEMBERS = frozenset({"type", "v", "key", "checkpoint", "handovers", "entry", "commitment", "decision"})


def text_of(decision: bytes, evaluation: bytes) -> bytes:
    """What one leaf commits to; both are canonical fragments of the same object."""
    return b'{"decision":%b,"object":%b}' % (decision, evaluation)


def salt_of(key: bytes, text: bytes) -> bytes:
    """The 32 bytes that hide a text; `key` is the project's."""
    return hmac.digest(key, text, "sha256")


@dataclass(slots=True)
class Commitments:
    """Makes the trees; remembers hashes of what it has seen, bounded. May be asked from several threads."""

    limit: int = 50_000
    _leaves: dict[tuple[bytes, bytes, bytes], bytes] = field(default_factory=dict, repr=False)
    _groups: dict[bytes, bytes] = field(default_factory=dict, repr=False)

    def leaf(self, key: bytes, decision: bytes, evaluation: bytes) -> bytes:
        """The salted hash of one decision."""
        name = (key, decision, evaluation)
        found = self._leaves.get(name)
        if found is None:
            text = text_of(decision, evaluation)
            found = leaf_hash(salt_of(key, text) + text)
            self._keep(self._leaves, name, found, self.limit)
        return found

    def subtree(self, leaves: Sequence[bytes]) -> Callable[[int, int], bytes]:
        """Hashes of the tree over these leaves, as gateway.evidence.merkle asks for them."""

        def of(level: int, index: int) -> bytes:
            if level == 0:
                return leaves[index]
            if level != _GROUP:
                return node_hash(of(level - 1, 2 * index), of(level - 1, 2 * index + 1))
            name = b"".join(leaves[index << level : (index + 1) << level])
            found = self._groups.get(name)
            if found is None:
                found = node_hash(of(level - 1, 2 * index), of(level - 1, 2 * index + 1))
                self._keep(self._groups, name, found, self.limit // 16)
            return found

        return of

    @staticmethod
    def _keep[K](known: dict[K, bytes], name: K, value: bytes, most: int) -> None:
        if len(known) >= most:
            known.clear()  # at once: the oldest could go twice, where two threads look it up and then delete it
        known[name] = value

    def record(self, key: bytes, pairs: Sequence[tuple[bytes, bytes]]) -> Record:
        """The record that commits to (decision, evaluation) fragments in the order of the receipt."""
        leaves = [self.leaf(key, decision, evaluation) for decision, evaluation in pairs]
        root = tree_root(len(leaves), self.subtree(leaves))
        body = b'{"count":%d,"root":"sha256:%b","v":1}' % (len(leaves), root.hex().encode())
        return Record(KIND, digest_of(body), (body,))


def pairs_of(receipt: bytes, evaluation: bytes) -> list[tuple[bytes, bytes]]:
    """The fragments of two stored records; VerificationError where they do not belong together."""
    decisions = orjson.loads(receipt).get("decisions", [])
    objects = orjson.loads(evaluation).get("objects", [])
    if [d.get("object") for d in decisions] != [o.get("digest") for o in objects]:
        raise VerificationError(
            "disclosure.records", "receipt and evaluation record do not list the same objects"
        )
    return [(canonical(d), canonical(o)) for d, o in zip(decisions, objects, strict=True)]


def disclosure(
    head: Mapping[str, Any],
    entry: Mapping[str, Any],
    commitment: bytes,
    pairs: Sequence[tuple[bytes, bytes]],
    chosen: int,
    key: bytes,
) -> bytes:
    """The line that shows decision number `chosen`. `head` and `entry` are as in a bundle.

    VerificationError where the commitment is not to these decisions under this key.
    """
    made = Commitments()
    if made.record(key, pairs).parts[0] != commitment:
        raise VerificationError(
            "disclosure.commitment", "the log commits to other decisions, or under another key"
        )
    leaves = [made.leaf(key, *pair) for pair in pairs]
    text = text_of(*pairs[chosen])
    shown = {
        "index": chosen,
        "salt": b64encode(salt_of(key, text)).decode(),
        "data": text.decode(),
        "proof": [b64encode(h).decode() for h in inclusion_proof(chosen, len(leaves), made.subtree(leaves))],
    }
    document = {
        "type": "disclosure",
        "v": 1,
        "key": head["key"],
        "checkpoint": head["checkpoint"],
        "handovers": head["handovers"],
        "entry": {name: entry[name] for name in ("index", "data", "proof")},
        "commitment": commitment.decode(),
        "decision": shown,
    }
    return canonical(document) + b"\n"


def is_disclosure(data: bytes) -> bool:
    """Whether this is a disclosure and no bundle."""
    return data.count(b"\n") <= 1 and b'"type":"disclosure"' in data


def verify_disclosure(data: bytes, key: bytes) -> Report:
    """Verify one disclosure with a public key of the log; the first bad entry is the one that it is about."""
    if not data.endswith(b"\n"):
        return Report(0, torn=1, first_bad=FirstBad(0, "torn"))
    index = 0
    try:
        document = read_line(data)
        index = _index(document["entry"]["index"])
        keys = trusted_keys(key, [text.encode() for text in texts(document["handovers"])])
        checkpoint = _open(document["checkpoint"], keys)
        held = _holds(document, checkpoint.size, checkpoint.root)
    except VerificationError as error:
        return Report(1, first_bad=FirstBad(index, "signature" if error.code == UNSIGNED else "modified"))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        held = False
    return Report(1, first_bad=None if held else FirstBad(index, "modified"))


def _open(note: str, keys: Sequence[bytes]) -> Checkpoint:
    """The checkpoint, which the last key of the line must have signed."""
    try:
        return open_note(note.encode(), keys[-1:])
    except VerificationError as error:
        raise VerificationError(UNSIGNED, str(error)) from error


def _index(value: object) -> int:
    if type(value) is not int or value < 0:
        raise ValueError
    return value


def _holds(document: Mapping[str, Any], size: int, root: bytes) -> bool:
    """Whether entry, commitment and decision join each other and the checkpoint."""
    return (
        document.keys() == _MEMBERS
        and (document["type"], _index(document["v"])) == ("disclosure", 1)
        and _entry_holds(document["entry"], document["commitment"].encode(), size, root)
        and _decision_holds(document["decision"], orjson.loads(document["commitment"]))
    )


def _entry_holds(place: Mapping[str, Any], commitment: bytes, size: int, root: bytes) -> bool:
    """Whether the checkpoint covers the entry, and the entry the commitment."""
    body = place["data"].encode()
    entry, proof = read_entry(body), [decode_base64(item) for item in place["proof"]]
    return (
        place.keys() == {"index", "data", "proof"}
        and entry.seq == place["index"]
        and (KIND, digest_of(commitment)) in entry.records
        and verify_inclusion(leaf_hash(body), place["index"], size, proof, root)
    )


def _decision_holds(shown: Mapping[str, Any], claimed: Mapping[str, Any]) -> bool:
    """Whether the decision is one of those that are committed to, in its one form."""
    text, salt = shown["data"].encode(), decode_base64(shown["salt"])
    pair, proof = orjson.loads(text), [decode_base64(item) for item in shown["proof"]]
    root = bytes.fromhex(claimed["root"].removeprefix("sha256:"))
    return (
        shown.keys() == {"index", "salt", "data", "proof"}
        and claimed.keys() == {"count", "root", "v"}
        and _index(claimed["v"]) == 1
        and len(salt) == 32
        and verify_inclusion(
            leaf_hash(salt + text), _index(shown["index"]), _index(claimed["count"]), proof, root
        )
        and pair.keys() == {"decision", "object"}
        and canonical(pair) == text
        and pair["decision"]["object"] == pair["object"]["digest"]
    )
