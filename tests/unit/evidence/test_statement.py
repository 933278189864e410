"""Receipts as statements that in-toto tools can read, signed by the log's key."""

from __future__ import annotations

import json

import pytest

from gateway.errors import VerificationError
from gateway.evidence.entry import canonical
from gateway.evidence.sign import Envelope
from gateway.evidence.statement import receipt_statement
from tests.support.evidence import BODY, sample, signer


@pytest.mark.parametrize("refused", [False, True])
def test_a_receipt_becomes_a_statement(refused: bool) -> None:
    made = sample(1, refused=refused)
    receipt = json.loads(made.receipt.to_json())
    signed = Envelope.from_json(receipt_statement(made.row.receipt, receipt, signer()).to_json())
    assert signed.payload_type == "application/vnd.in-toto+json"
    assert signed.signed_by(signer().public_key)
    assert not signed.signed_by(signer(2).public_key)
    statement = json.loads(signed.payload)
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    subject = {"name": "receipt", "digest": {"sha256": made.row.receipt.removeprefix("sha256:")}}
    if not refused:
        subject = {"name": "request-body", "digest": {"sha256": BODY.removeprefix("sha256:")}}
    assert statement["subject"] == [subject]
    assert canonical(statement["predicate"]["record"]) == made.receipt.to_json()


def test_another_kind_of_digest_is_refused() -> None:
    with pytest.raises(VerificationError):
        receipt_statement("md5:1", {}, signer())
