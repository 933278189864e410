"""Checkpoints: how far the log had grown, in the form of C2SP tlog-checkpoint inside a C2SP signed note.

```
<origin>
<number of entries, decimal>
<root, standard Base64>

— <key name> <Base64 of key id and signature>
```

The signature covers the three lines with their line ends. Extension lines are read past, never written.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Collection
from dataclasses import dataclass

from gateway.errors import VerificationError
from gateway.evidence.sign import Signer, check_name, decode_base64, key_id, verifies

_SIGNATURE = re.compile(r"— ([^\s+]+) ([A-Za-z0-9+/]+={0,2})")
_NOTE = re.compile(rb"(?:[^\n]+\n)+\n(?:\xe2\x80\x94 [^\n]+\n)+")
_SIZE = re.compile(r"0|[1-9][0-9]{0,17}")
MAX_NOTE = 65_536
"""Bytes; a longer note is not read."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A claim about a log: under the name `origin` it had `size` entries with this root."""

    origin: str
    size: int
    root: bytes

    def body(self) -> bytes:
        """The three lines that are signed."""
        return f"{self.origin}\n{self.size}\n{b64encode(self.root).decode()}\n".encode()

    def sign(self, *signers: Signer) -> bytes:
        """The signed note."""
        check_name(self.origin)
        body = self.body()
        note = body + b"\n"
        for signer in signers:
            raw = key_id(signer.name, signer.public_key) + signer.sign(body)
            note += f"— {signer.name} {b64encode(raw).decode()}\n".encode()
        return note


@dataclass(frozen=True, slots=True)
class SignedCheckpoint:
    """A note as it was read; `signatures` are (key name, key id, signature), not yet checked."""

    checkpoint: Checkpoint
    text: bytes
    signatures: tuple[tuple[str, bytes, bytes], ...]

    def signed_by(self, keys: Collection[bytes]) -> bytes | None:
        """The first of these public keys that signed the note; None where none did."""
        for name, identifier, signature in self.signatures:
            for key in keys:
                if key_id(name, key) == identifier and verifies(key, signature, self.text):
                    return key
        return None


def read_note(note: bytes) -> SignedCheckpoint:
    """Take a signed note apart; VerificationError where it is not a checkpoint. Checks no signature."""
    if len(note) > MAX_NOTE:
        raise VerificationError("checkpoint.malformed", "a checkpoint is longer than any this log writes")
    try:
        text, separator, tail = note.decode("utf-8").rpartition("\n\n")
    except UnicodeDecodeError as error:
        raise VerificationError("checkpoint.malformed", "a checkpoint is not UTF-8") from error
    lines = text.split("\n")
    if not separator or len(lines) < 3 or not tail.endswith("\n") or not _SIZE.fullmatch(lines[1]):
        raise VerificationError("checkpoint.malformed", "not a checkpoint in the form of a signed note")
    origin, size, root = lines[0], int(lines[1]), decode_base64(lines[2])
    if not origin or len(root) != 32:
        raise VerificationError("checkpoint.malformed", "a checkpoint lacks its origin or its root")
    signatures = tuple(_read_signature(line) for line in tail[:-1].split("\n"))
    return SignedCheckpoint(Checkpoint(origin, size, root), (text + "\n").encode(), signatures)


def split_notes(data: bytes) -> list[bytes]:
    """The notes of a file that checkpoints were appended to, with empty lines between them; it may hold only one.

    VerificationError where there is anything else in it, or nothing.
    """
    found = _NOTE.findall(data)
    if not found or _NOTE.sub(b"", data).strip(b"\n"):
        raise VerificationError(
            "checkpoint.malformed", "not a file of checkpoints in the form of signed notes"
        )
    return found


def _read_signature(line: str) -> tuple[str, bytes, bytes]:
    match = _SIGNATURE.fullmatch(line)
    raw = decode_base64(match[2]) if match else b""
    if match is None or len(raw) < 5:
        raise VerificationError("checkpoint.malformed", "a signature line of a checkpoint cannot be read")
    return match[1], raw[:4], raw[4:]


def open_note(note: bytes, keys: Collection[bytes]) -> Checkpoint:
    """The checkpoint of a note that one of `keys` signed; VerificationError otherwise."""
    signed = read_note(note)
    if signed.signed_by(keys) is None:
        raise VerificationError("checkpoint.signature", "a checkpoint is not signed by a trusted key")
    return signed.checkpoint
