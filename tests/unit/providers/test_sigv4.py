"""Signatures as AWS publishes them for its test suite, and as botocore makes them for Bedrock."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gateway.providers.sigv4 import Credentials, Outgoing, Scope, resigned, scope_of

VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "sigv4.json").read_text())
# published with the suite
KEYS = ("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")


def signed_again(vector: dict[str, Any], **changed: bytes) -> dict[bytes, bytes]:
    headers = tuple((k.encode(), v.encode()) for k, v in vector["headers"].items())
    old = (
        (b"X-Amz-Date", b"20200101T000000Z"),
        (b"Authorization", b"old"),
        (b"x-amz-security-token", b"old"),
    )
    covered = vector["authorization"].partition("SignedHeaders=")[2].partition(",")[0].split(";")
    return dict(
        resigned(
            Outgoing(vector["method"], vector["host"], vector["target"], (*headers, *old),
                     changed.get("body", vector["body"].encode())),
            Scope(vector["region"], vector["service"], tuple(covered)), Credentials(*KEYS, vector["token"]), vector["time"],
        )
    )  # fmt: skip


@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: v["name"])
def test_the_signature_is_the_published_one(vector: dict[str, Any]) -> None:
    headers = signed_again(vector)
    assert headers[b"authorization"].decode() == vector["authorization"]
    assert headers[b"x-amz-date"].decode() == vector["time"]
    assert headers.get(b"x-amz-security-token", b"").decode() == vector["token"]
    assert b"Authorization" not in headers


def test_it_covers_the_body() -> None:
    assert (
        signed_again(VECTORS[0], body=b"{}")[b"authorization"] != signed_again(VECTORS[0])[b"authorization"]
    )


SIGNED = VECTORS[0]["authorization"].encode()


@pytest.mark.parametrize(
    ("headers", "scope"),
    [
        (((b"Authorization", SIGNED),), Scope("us-east-1", "bedrock", ("content-type", "host", "x-amz-date"))),
        (((b"authorization", SIGNED.replace(b", ", b",")),), Scope("us-east-1", "bedrock", ("content-type", "host", "x-amz-date"))),
        (((b"authorization", SIGNED), (b"authorization", SIGNED)), None),
        (((b"authorization", SIGNED), (b"x-amz-content-sha256", b"STREAMING-AWS4-HMAC-SHA256-EVENTS")), None),
        (((b"authorization", SIGNED.replace(b"AWS4-HMAC-SHA256", b"AWS4-ECDSA-P256-SHA256")),), None),
        (((b"authorization", b"Bearer key"),), None),
        ((), None),
    ],
)  # fmt: skip
def test_what_can_be_signed_again(headers: tuple[tuple[bytes, bytes], ...], scope: Scope | None) -> None:
    assert scope_of(headers) == scope


def test_keys_stand_in_no_repr() -> None:
    assert "wJalr" not in repr(Credentials(*KEYS, "token"))
