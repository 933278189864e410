"""Ed25519 keys as the log uses them: C2SP key ids, signatures with a purpose, DSSE envelopes, key hand-over.

A signature over a log entry is made over `purpose NUL leaf hash`, so that no signature can be replayed as
one of another kind. Keys come in as objects; where they lie is the store's business.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Protocol, cast

import orjson
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_public_key

from gateway.errors import VerificationError

ENTRY_PURPOSE = b"egress-log-entry:1"
HANDOVER_TYPE = "application/vnd.egress.key-handover+json"
_ED25519 = b"\x01"  # C2SP signature type of Ed25519


class Signer(Protocol):
    """A signing key. `name` and the public key make the C2SP key id."""

    name: str

    @property
    def public_key(self) -> bytes:
        """The 32 raw bytes of the public key."""
        ...

    def sign(self, message: bytes) -> bytes:
        """The 64 bytes of an Ed25519 signature."""
        ...


class Ed25519Signer:
    """A signing key held in memory."""

    def __init__(self, private: Ed25519PrivateKey, name: str) -> None:
        """`name` must suit a signed note: no white space, no plus sign."""
        check_name(name)
        self.name = name
        self._private = private
        self._public = private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)

    @property
    def public_key(self) -> bytes:
        """The 32 raw bytes of the public key."""
        return self._public

    def sign(self, message: bytes) -> bytes:
        """The 64 bytes of an Ed25519 signature."""
        return self._private.sign(message)


def check_name(name: str) -> None:
    """Refuse a name that a signed note cannot carry (C2SP signed-note: no white space, no plus sign)."""
    if not name or "+" in name or any(char.isspace() for char in name):
        raise VerificationError("key.name", "a key name must have no white space and no plus sign")


def key_id(name: str, public_key: bytes) -> bytes:
    """The four bytes by which a signed note names an Ed25519 key (C2SP signed-note)."""
    return sha256(name.encode() + b"\n" + _ED25519 + public_key).digest()[:4]


def verifier_key(name: str, public_key: bytes) -> str:
    """The public key in the text form of C2SP (`name+id+key`), as auditors exchange it."""
    encoded = b64encode(_ED25519 + public_key).decode("ascii")
    return f"{name}+{key_id(name, public_key).hex()}+{encoded}"


def read_public_key(text: str) -> bytes:
    """The 32 bytes of a public key in PEM or as a C2SP verifier key; VerificationError otherwise."""
    text = text.strip()
    if text.startswith("-----BEGIN"):
        try:
            loaded = load_pem_public_key(text.encode())
        except (ValueError, UnsupportedAlgorithm) as error:
            raise VerificationError("key.malformed", "the public key is no PEM that can be read") from error
        if not isinstance(loaded, Ed25519PublicKey):
            raise VerificationError("key.type", "the public key is not an Ed25519 key")
        return loaded.public_bytes(Encoding.Raw, PublicFormat.Raw)
    name, _, rest = text.partition("+")
    identifier, _, encoded = rest.partition("+")
    raw = decode_base64(encoded)
    if len(raw) != 33 or raw[:1] != _ED25519 or key_id(name, raw[1:]).hex() != identifier:
        raise VerificationError("key.malformed", "the public key is neither PEM nor a verifier key")
    return raw[1:]


def decode_base64(text: str) -> bytes:
    """Strict standard Base64, of which there is one text for each value; VerificationError otherwise."""
    try:
        found = b64decode(text, validate=True)
    except ValueError as error:
        raise VerificationError("base64.malformed", "a value is not standard Base64") from error
    if b64encode(found).decode() != text:  # bits behind the last byte
        raise VerificationError("base64.malformed", "a value is not standard Base64")
    return found


def verifies(public_key: bytes, signature: bytes, message: bytes) -> bool:
    """Whether `signature` is one by this key over exactly these bytes."""
    try:
        Ed25519PublicKey.from_public_bytes(public_key).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True


def sign_entry(signer: Signer, leaf: bytes) -> bytes:
    """Signature over the leaf hash of a log entry; through the chain it covers every entry before it."""
    return signer.sign(ENTRY_PURPOSE + b"\0" + leaf)


def entry_verifies(public_key: bytes, signature: bytes, leaf: bytes) -> bool:
    """Whether a signature made by `sign_entry` holds."""
    return verifies(public_key, signature, ENTRY_PURPOSE + b"\0" + leaf)


@dataclass(frozen=True, slots=True)
class Envelope:
    """A DSSE v1 envelope: a payload, its type, and signatures by key."""

    payload_type: str
    payload: bytes = field(repr=False)
    signatures: tuple[tuple[str, bytes], ...]  # (key id, signature)

    def to_json(self) -> bytes:
        """The envelope in DSSE's JSON form, canonical."""
        signatures = [{"keyid": key, "sig": b64encode(sig).decode()} for key, sig in self.signatures]
        document = {
            "payload": b64encode(self.payload).decode(),
            "payloadType": self.payload_type,
            "signatures": signatures,
        }
        return orjson.dumps(document, option=orjson.OPT_SORT_KEYS)

    @classmethod
    def from_json(cls, data: bytes) -> Envelope:
        """Read the JSON form; VerificationError where it is not one."""
        try:
            document = cast("dict[str, Any]", orjson.loads(data))
            pairs = tuple((str(s["keyid"]), decode_base64(s["sig"])) for s in document["signatures"])
            return cls(str(document["payloadType"]), decode_base64(document["payload"]), pairs)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise VerificationError("dsse.malformed", "not a DSSE envelope") from error

    def signed_by(self, public_key: bytes) -> bool:
        """Whether one of the signatures is by this key."""
        message = pre_authentication(self.payload_type, self.payload)
        return any(verifies(public_key, signature, message) for _, signature in self.signatures)


def pre_authentication(payload_type: str, payload: bytes) -> bytes:
    """The bytes that a DSSE v1 signature covers (PAE)."""
    kind = payload_type.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def envelope(payload_type: str, payload: bytes, *signers: Signer) -> Envelope:
    """A DSSE envelope signed by each signer, whose key id is its verifier key."""
    message = pre_authentication(payload_type, payload)
    signatures = tuple((verifier_key(s.name, s.public_key), s.sign(message)) for s in signers)
    return Envelope(payload_type, payload, signatures)


def handover(old: Signer, new: Signer, time: str) -> bytes:
    """The record by which one key hands the log over to the next: a DSSE envelope signed by both.

    Both sign: the old key so that trust passes on, the new one so that its holder is known to have it.
    """
    statement = {
        "v": 1,
        "event": "key_handover",
        "time": time,
        "old": verifier_key(old.name, old.public_key),
        "new": verifier_key(new.name, new.public_key),
    }
    payload = orjson.dumps(statement, option=orjson.OPT_SORT_KEYS)
    return envelope(HANDOVER_TYPE, payload, old, new).to_json()


def read_handover(data: bytes) -> tuple[bytes, bytes]:
    """(old, new) public keys of a hand-over that both signed; VerificationError where it is not one."""
    signed = Envelope.from_json(data)
    if signed.payload_type != HANDOVER_TYPE:
        raise VerificationError("handover.type", "the record is no key hand-over")
    try:
        statement = cast("dict[str, Any]", orjson.loads(signed.payload))
        old, new = read_public_key(statement["old"]), read_public_key(statement["new"])
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise VerificationError("handover.malformed", "a key hand-over cannot be read") from error
    if not (signed.signed_by(old) and signed.signed_by(new)):
        raise VerificationError("handover.signature", "a key hand-over is not signed by both keys")
    return old, new
