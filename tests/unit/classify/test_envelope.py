"""What surrounds a body: credentials in their own form go to their provider, everything else is read."""

from __future__ import annotations

import time

import pytest

from gateway.classify.envelope import envelope
from gateway.context.objects import LeafRole, ObjectKind

SIGNED = (
    "AWS4-HMAC-SHA256 Credential=AKIAEXAMPLE/20261130/us-east-1/bedrock/aws4_request,"
    " SignedHeaders=content-type;host;x-amz-date, Signature=" + "0f" * 32
)


def read(*headers: tuple[str, str], target: str = "/v1/messages") -> list[str]:
    """Every text that is scanned, the path left out."""
    objects = envelope(target, [(n.encode(), v.encode()) for n, v in headers])
    leaves = [leaf for item in objects for leaf in item.leaves or ()]
    assert {leaf.role for leaf in leaves} == {LeafRole.STRUCTURAL}
    return [leaf.text for leaf in leaves if leaf.name != "path"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Authorization", "Bearer sk-abc"), ("Authorization", "sk-abc"), ("authorization", "Basic dXNlcjpwYXNz"),
        ("Authorization", SIGNED), ("Authorization", SIGNED.replace(", ", ",")), ("X-Api-Key", "sk-ant-abc"),
        ("api-key", "0123"), ("x-goog-api-key", "AIzaabc"), ("X-Amz-Date", "20261130T120000Z"),
        ("x-amz-content-sha256", "0f" * 32), ("x-amz-content-sha256", "UNSIGNED-PAYLOAD"),
        ("x-amz-content-sha256", "STREAMING-UNSIGNED-PAYLOAD-TRAILER"),
        ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ("Sec-WebSocket-Protocol", "realtime, openai-insecure-api-key.sk-abc, openai-beta.realtime-v1"),
    ],
)  # fmt: skip
def test_what_proves_the_call_is_not_read(name: str, value: str) -> None:
    assert read((name, value)) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Authorization", "Bearer sk-abc and a note"), ("Authorization", "see what I found there"),
        ("Authorization", "AWS4-HMAC-SHA256 a note"), ("X-Api-Key", "two words"), ("X-Amz-Date", "yesterday"),
        ("x-amz-content-sha256", "note"), ("OpenAI-Organization", "org-1"), ("Accept-Encoding", "gzip"), ("Expect", "x"),
        ("Sec-WebSocket-Protocol", "x"), ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ"),
        ("Sec-WebSocket-Protocol", "realtime, and a note"), ("User-Agent", "agent/1"), ("X-Anything", "x"), ("Content-Encoding", "x"),
    ],
)  # fmt: skip
def test_everything_else_is(name: str, value: str) -> None:
    assert read((name, value)) == [value, name]


def test_a_credential_that_is_given_twice_is_read() -> None:
    twice = [("Authorization", "Bearer one"), ("authorization", "Bearer two")]
    assert {"Bearer one", "Bearer two"} <= set(read(*twice))


def test_cookies_are_read_one_by_one_but_for_sessions() -> None:
    cookies = "note=hello; __Secure-next-auth.session-token=eyJx.y; sessionKey=sk; b"
    assert read(("Cookie", cookies)) == ["note=hello", "b", "Cookie"]
    assert read(("Cookie", 'sid="two words"'))[0] == 'sid="two words"'


@pytest.mark.parametrize("name", ["key", "api-key", "access_token", "subscription-key", "KEY"])
def test_a_key_in_the_query(name: str) -> None:
    assert read(target=f"/v1/models?{name}=AIza-x_y~z%2B&alt=sse") == ["sse", "alt"]
    assert read(target=f"/v1/models?{name}=a&{name}=b") == ["a", name, "b", name]
    assert read(target=f"/v1/models?{name}=two+words") == ["two+words", name]


def test_the_kinds_of_its_objects() -> None:
    assert [o.block.kind for o in envelope("/x", [(b"a", b"b")])] == [ObjectKind.TARGET, ObjectKind.HEADER]
    assert [o.block.kind for o in envelope("/x", [(b"host", b"b")])] == [ObjectKind.TARGET]


def test_a_cookie_without_a_value_is_read_in_time() -> None:
    name = "session" * 9_000
    began = time.process_time()
    assert read(("Cookie", name)) == [name, "Cookie"]
    assert time.process_time() - began < 1
