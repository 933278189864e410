"""Bedrock through the gateway: signed by clients and left alone, signed anew where credentials are configured."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from gateway.providers.sigv4 import Credentials, Outgoing, Scope, resigned
from tests.support.client import Reply
from tests.support.gateway import Bench, gateway

HOST = "bedrock-runtime.us-east-1.amazonaws.com"
TARGET = "/model/anthropic.claude-3%3A0/converse"
SECRET = "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"  # a published sample whose checksum holds
CLIENT, OWN = (
    Credentials("AKIACLIENT", "client"),
    Credentials("AKIAGATEWAY", "own/secret", "session//token=="),
)
SCOPE = Scope("us-east-1", "bedrock", ("content-type", "host", "x-amz-date"))

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def bench(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[Bench, Path]]:
    folder = tmp_path_factory.mktemp("resigning")
    file = folder / "credentials"
    write(file, OWN)
    async with gateway(folder, {"upstream": {"aws_credentials": str(file)}}, hosts=(HOST,)) as running:
        yield running, file


def write(file: Path, keys: Credentials) -> None:
    file.write_text(
        f"[default]\naws_access_key_id = {keys.access_key}\naws_secret_access_key={keys.secret}\n"
        f"aws_session_token = {keys.token}\n[other]\naws_access_key_id = nobody\n"
    )


def say(text: str) -> bytes:
    return json.dumps({"messages": [{"role": "user", "content": [{"text": text}]}]}).encode()


async def send(bench: Bench, body: bytes, **changed: str) -> Reply:
    """As boto3 signs: over content type, host, date and body."""
    plain = ((b"content-type", b"application/json"),)
    signed = resigned(Outgoing("POST", HOST, TARGET, plain, body), SCOPE, CLIENT, "20261130T120000Z")
    headers = {name.decode(): value.decode() for name, value in signed if name != b"content-type"}
    return await bench.send(body, host=HOST, target=TARGET, headers={**headers, **changed}.items())


async def test_a_rewritten_request_leaves_under_the_gateways_signature(bench: tuple[Bench, Path]) -> None:
    running, file = bench
    for keys in (OWN, Credentials("AKIARENEWED", "renewed")):  # whoever renews the file tells nobody
        write(file, keys)
        running.provider.arrived.clear()
        assert (await send(running, say(f"see {SECRET} there"))).status == 200
        (arrived,) = running.arrived
        body, sent = bytes(arrived.body), {n.lower(): v for n, v in arrived.headers}
        assert SECRET.encode() not in body
        time = sent[b"x-amz-date"].decode()
        again = resigned(Outgoing("POST", HOST, TARGET, tuple(arrived.headers), body), SCOPE, keys, time)
        assert sent[b"authorization"] == dict(again)[b"authorization"]
        assert sent.get(b"x-amz-security-token", b"").decode() == keys.token
        assert keys.secret not in repr(running.written())


async def test_a_clean_one_too_so_that_one_account_sees_a_whole_conversation(
    bench: tuple[Bench, Path],
) -> None:
    running, file = bench
    write(file, OWN)
    running.provider.arrived.clear()
    body = say("hello")
    assert (await send(running, body)).status == 200
    assert bytes(running.arrived[0].body) == body
    assert b"AKIAGATEWAY" in dict(running.arrived[0].headers)[b"authorization"]


@pytest.mark.parametrize("header", ["AWS4-ECDSA-P256-SHA256", "AWS4-HMAC-SHA256 x"])
async def test_what_cannot_be_signed_again_is_not_rewritten(bench: tuple[Bench, Path], header: str) -> None:
    running, _ = bench
    running.provider.arrived.clear()
    reply = await send(running, say(f"see {SECRET} there"), authorization=header)
    assert (reply.status, running.arrived) == (400, [])


async def test_without_credentials_nothing_leaves(bench: tuple[Bench, Path]) -> None:
    running, file = bench
    running.provider.arrived.clear()
    file.write_text("[default]\naws_access_key_id = only\n")
    reply = await send(running, say("hello"))
    assert (reply.status, running.arrived) == (503, [])
    assert b"egress.resigning_failed" in reply.body
    write(file, OWN)


async def test_a_bearer_key_is_left_alone_and_its_body_rewritten(bench: tuple[Bench, Path]) -> None:
    running, _ = bench
    running.provider.arrived.clear()
    head = [("authorization", "Bearer bedrock-api-key-abc")]
    reply = await running.send(say(f"see {SECRET} there"), host=HOST, target=TARGET, headers=head)
    (arrived,) = running.arrived
    assert reply.status == 200
    assert SECRET.encode() not in bytes(arrived.body)
    assert arrived.header("authorization") == "Bearer bedrock-api-key-abc"


async def test_no_other_service_is_signed_for(bench: tuple[Bench, Path]) -> None:
    running, _ = bench
    running.provider.arrived.clear()
    foreign = f"AWS4-HMAC-SHA256 Credential=AKIACLIENT/20261130/us-east-1/s3/aws4_request, SignedHeaders=host, Signature={hashlib.sha256(b'').hexdigest()}"
    await send(running, say("hello"), authorization=foreign)
    assert running.arrived[0].header("authorization") == foreign
