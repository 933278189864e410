"""Receipts as in-toto statements in DSSE envelopes, for tools that read those and know nothing of this log.

The subject is the exact body that was admitted (its SHA-256), or, where nothing was delivered, the receipt itself; the
predicate is the receipt in the contract's own form, unchanged.
"""

from __future__ import annotations

from typing import Any, Final

from gateway.errors import VerificationError
from gateway.evidence.entry import canonical
from gateway.evidence.sign import Envelope, Signer, envelope

PAYLOAD_TYPE: Final = "application/vnd.in-toto+json"
STATEMENT: Final = "https://in-toto.io/Statement/v1"
PREDICATE: Final = "urn:model-egress-gateway:context-decision-receipt:1"


def receipt_statement(digest: str, receipt: dict[str, Any], signer: Signer) -> Envelope:
    """The signed statement about one receipt, which `digest` names."""
    body = receipt.get("final_context")
    subject = {"name": "request-body" if body else "receipt", "digest": {"sha256": _hex(str(body or digest))}}
    statement = {
        "_type": STATEMENT,
        "subject": [subject],
        "predicateType": PREDICATE,
        "predicate": {"receipt": digest, "record": receipt},
    }
    return envelope(PAYLOAD_TYPE, canonical(statement), signer)


def _hex(digest: str) -> str:
    kind, _, value = digest.partition(":")
    if kind != "sha256":
        raise VerificationError("statement.digest", "a statement names its subject by SHA-256")
    return value
