"""How a value is sealed: AES-256-GCM under its project's key, bound to the project and the placeholder.

The associated data names both, so an entry that is moved to another project or given another placeholder
does not open. Layout: version byte 1, 12 bytes of nonce, ciphertext with its 16-byte tag.
"""

from __future__ import annotations

import os

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from gateway.errors import VerificationError
from gateway.ports import SealedValue

_VERSION = b"\x01"
_NONCE = 12


def _bound(project: str, token: str) -> bytes:
    name = project.encode()
    return b"egress-vault:1\0%d\0%b%b" % (len(name), name, token.encode())


def seal_value(value: str, project: str, token: str, key: bytes) -> bytes:
    """The sealed form of a value; `key` is the 32 bytes of the project's vault key."""
    nonce = os.urandom(_NONCE)
    data = value.encode("utf-8", "surrogatepass")
    return _VERSION + nonce + AESGCM(key).encrypt(nonce, data, _bound(project, token))


def open_value(entry: SealedValue, key: bytes) -> str:
    """The value; VerificationError `vault.sealed` where it was altered, moved, or sealed under another key."""
    sealed = entry.sealed
    if sealed[:1] != _VERSION or len(sealed) < 1 + _NONCE + 16:
        raise VerificationError("vault.sealed", "a vault entry is not in a form that can be opened")
    nonce, data = sealed[1 : 1 + _NONCE], sealed[1 + _NONCE :]
    try:
        return (
            AESGCM(key)
            .decrypt(nonce, data, _bound(entry.project, entry.token))
            .decode("utf-8", "surrogatepass")
        )
    except (InvalidTag, UnicodeDecodeError) as error:
        raise VerificationError("vault.sealed", "a vault entry does not open for this placeholder") from error
