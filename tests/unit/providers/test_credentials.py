"""Where every dialect puts what a request proves itself with."""

from __future__ import annotations

import base64
import json

import pytest

from gateway.classify import envelope
from gateway.ports import Headers
from gateway.providers import credentials as module
from gateway.providers.credentials import aws_account, credential, credentials, selected
from gateway.providers.tenants import restriction

KEY = "k-3f9a1c"
SIGNED = "AWS4-HMAC-SHA256 Credential=AKIAQNZGKIQY56JQ7WML/20270101/eu-west-1/bedrock/aws4_request, SignedHeaders=host, Signature=00"


def jwt(**claims: object) -> str:
    def part(document: object) -> str:
        return base64.urlsafe_b64encode(json.dumps(document).encode()).rstrip(b"=").decode()

    return f"{part({'alg': 'RS256'})}.{part(claims)}.c2ln"


@pytest.mark.parametrize(
    ("headers", "target", "value"),
    [
        ([("Authorization", f"Bearer {KEY}")], "/", KEY),
        ([("authorization", f"bearer   {KEY}")], "/", KEY),
        ([("AUTHORIZATION", f"token {KEY}")], "/", KEY),
        ([("Authorization", KEY)], "/", KEY),
        ([("Authorization", "Basic " + base64.b64encode(b"user:pass").decode())], "/", "user:pass"),
        ([("Authorization", "Basic !!")], "/", "Basic !!"),
        ([("Authorization", SIGNED)], "/", "AKIAQNZGKIQY56JQ7WML"),
        (
            [("Authorization", SIGNED.replace("HMAC", "ECDSA-P256").replace("Credential", "credential"))],
            "/",
            "AKIAQNZGKIQY56JQ7WML",
        ),
        ([("Authorization", "AWS4-HMAC-SHA256 odd")], "/", "AWS4-HMAC-SHA256 odd"),
        ([("X-Api-Key", f" {KEY} ")], "/", KEY),
        ([("api-key", KEY)], "/", KEY),
        ([("x-goog-api-key", KEY)], "/", KEY),
        ([("Ocp-Apim-Subscription-Key", KEY)], "/", KEY),
        ([], f"/v1beta/models/x:generateContent?alt=sse&key={KEY}", KEY),
        ([], f"/x?KEY={KEY}", KEY),
        ([], f"/x?%6Bey={KEY}", KEY),
        ([], "/x?key=a%2Bb", "a+b"),
        ([], f"/x?access_token={KEY}&a=b", KEY),
        ([], f"/openai/deployments/d/chat/completions?api-key={KEY}", KEY),
        ([], "/model/x/invoke?X-Amz-Credential=AKIAQNZGKIQY56JQ7WML%2F2027%2Faws4_request", "AKIAQNZGKIQY56JQ7WML"),
        ([("sec-websocket-protocol", f"realtime, openai-insecure-api-key.{KEY}, openai-beta.x-v1")], "/v1/realtime", KEY),
    ],
)  # fmt: skip
def test_every_position(headers: list[tuple[str, str]], target: str, value: str) -> None:
    given: Headers = tuple((name.encode(), text.encode()) for name, text in headers)

    assert [each.value.decode() for each in credentials(given, target)] == [value]


def test_every_credential_counts_and_each_once() -> None:
    headers = ((b"authorization", b"Bearer a"), (b"x-api-key", b"a"), (b"X-API-KEY", b"b"), (b"api-key", b""))

    assert [each.value for each in credentials(headers, "/?key=c&key=d")] == [b"a", b"b", b"c", b"d"]


def test_what_is_no_finding_because_it_names_the_call_is_a_credential_or_known_not_to_be() -> None:
    """A header that is not scanned could carry an account past the list."""
    names_no_account = {
        "proxy-authorization",  # of this hop
        "x-amz-security-token",
        "x-amz-date",
        "x-amz-content-sha256",
        "statsig-api-key",
        "sec-websocket-key",
    }
    known = {name.decode() for name in (*module.HEADERS, b"sec-websocket-protocol")}
    assert set(envelope._CREDENTIALS) - names_no_account <= known
    assert envelope._CREDENTIAL_QUERY <= module.QUERY


def test_tokens_tell_their_organisation() -> None:
    chatgpt = credential(jwt(**{"https://api.openai.com/auth": {"chatgpt_account_id": "ws-1"}}))
    entra = credential(jwt(tid="dir-1", aud="https://cognitiveservices.azure.com"))

    assert (chatgpt.tenants, chatgpt.login) == ({"ws-1"}, True)
    assert (entra.tenants, entra.login) == ({"dir-1"}, True)
    assert credential("ASIAQNZGKIQY56JQ7WML").tenants == {"029608264753"}
    assert aws_account("ASIAQNZGKIQY56JQ7WML") == "029608264753"
    assert credential("sk-ant-oat01-abc").login
    assert credential("ya29.a0Abc").login
    assert not credential("sk-ant-api03-abc").login


@pytest.mark.parametrize(
    "odd", ["a.b.c", "eyJ.W10.x", jwt()[:-6], "AKIA", "x" * 20_000, "..", jwt(tid=7), jwt(tid=["a"])]
)
def test_what_is_no_such_token_names_nobody(odd: str) -> None:
    assert credential(odd).tenants == frozenset()


def test_no_credential_is_shown() -> None:
    assert KEY not in repr(credential(KEY))


def test_selectors_are_read_with_all_their_values() -> None:
    headers = ((b"ChatGPT-Account-Id", b"ws-1"), (b"chatgpt-account-id", b" ws-2"))

    assert selected(headers) == {"workspace": {"ws-1", "ws-2"}, "organization": frozenset()}


@pytest.mark.parametrize(
    ("provider", "host", "ids", "header"),
    [
        ("anthropic", "api.anthropic.com", ["b", "a", "a"], (b"anthropic-allowed-org-ids", b"a,b")),
        ("anthropic", "claude.ai", ["a"], (b"anthropic-allowed-org-ids", b"a")),
        ("openai", "chatgpt.com", ["w"], (b"ChatGPT-Allowed-Workspace-Id", b"w")),
        ("openai", "auth.openai.com", ["w"], (b"ChatGPT-Allowed-Workspace-Id", b"w")),
        (
            "google",
            "europe-west1-aiplatform.googleapis.com",
            ["123456789"],
            (
                b"X-Goog-Allowed-Resources",
                base64.urlsafe_b64encode(
                    b'{"resources":["organizations/123456789"],"options":"strict"}'
                ),
            ),
        ),
    ],
)  # fmt: skip
def test_restrictions(provider: str, host: str, ids: list[str], header: tuple[bytes, bytes]) -> None:
    assert restriction(provider, host, ids) == (header,)


@pytest.mark.parametrize(
    ("provider", "host", "ids"),
    [
        ("openai", "api.openai.com", ["w"]),
        ("anthropic", "api.anthropic.com", []),
        ("mistral", "api.mistral.ai", ["w"]),
        ("anthropic", "api.anthropic.com.evil.example", ["a"]),
        ("openai", "api.anthropic.com", ["a"]),
    ],
)
def test_no_restriction_elsewhere(provider: str, host: str, ids: list[str]) -> None:
    assert restriction(provider, host, ids) == ()
