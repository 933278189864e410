"""Which accounts may be used, as a table: by credential, by what it names, by what its provider is told."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.app.accounts import ListedAccounts, keyed_hash
from gateway.config.destinations import Account
from gateway.ports import OutboundRequest, Peer, Standing
from tests.unit.providers.test_credentials import jwt

SECRET = b"k" * 32
CHATGPT = jwt(**{"https://api.openai.com/auth": {"chatgpt_account_id": "ws-1"}})
PERSONAL = jwt(**{"https://api.openai.com/auth": {"chatgpt_account_id": "ws-home"}})


def account(name: str, provider: str, *keys: str, **more: Any) -> Account:
    given: dict[str, Any] = {
        "tenants": (),
        "organizations": (),
        "organization_managed": True,
        "region": "",
        "projects": (),
    }
    hashes = tuple(keyed_hash(SECRET, key.encode()) for key in keys)
    return Account(name=name, provider=provider, hashes=hashes, **{**given, **more})


ACCOUNTS = [
    account("acme-api", "anthropic", "sk-ours", "sk-ours-2", region="eu"),
    account("acme-team", "anthropic", "sk-team", projects=("team",), organization_managed=False),
    account("acme-max", "anthropic", tenants=("org-uuid",)),
    account("acme-chat", "openai", tenants=("ws-1",)),
    account("acme-gpt", "openai", "sk-gpt", organizations=("org-a", "org-b")),
    account("acme-azure", "azure", tenants=("dir-1",)),
    account("acme-cloud", "google", tenants=("123",)),
    account("other-cloud", "google", tenants=("456",), organization_managed=False),
    account("acme-aws", "aws", tenants=("029608264753",)),
]
HOSTS = {
    "anthropic": "api.anthropic.com",
    "openai": "chatgpt.com",
    "azure": "acme.openai.azure.com",
    "google": "eu-aiplatform.googleapis.com",
    "aws": "bedrock-runtime.eu-west-1.amazonaws.com",
    "mistral": "api.mistral.ai",
}


def ask(
    provider: str, *headers: tuple[str, str], project: str = "default", unlisted: str = "", **more: Any
) -> Standing:
    request = OutboundRequest(
        request_id="r",
        peer=Peer(project=project),
        method=more.pop("method", "POST"),
        scheme="https",
        host=more.pop("host", HOSTS[provider]),
        port=443,
        target=more.pop("target", "/v1/messages"),
        headers=tuple((name.encode(), value.encode()) for name, value in headers),
        body=more.pop("body", b"{}"),
        transport=more.pop("transport", "http"),
    )
    login = more.pop("login", False)
    return ListedAccounts(SECRET, ACCOUNTS, unlisted).standing(request, provider, login=login)


def bearer(value: str) -> tuple[str, str]:
    return ("authorization", f"Bearer {value}")


@pytest.mark.parametrize(
    ("standing", "name", "managed"),
    [
        (ask("anthropic", ("x-api-key", "sk-ours")), "acme-api", True),
        (ask("anthropic", bearer("sk-ours-2")), "acme-api", True),
        (ask("anthropic", ("x-api-key", "sk-ours"), bearer("sk-ours-2")), "acme-api", True),
        (ask("anthropic", ("x-api-key", "sk-team"), project="team"), "acme-team", False),
        (ask("anthropic", bearer("sk-ant-oat01-x")), "acme-max", True),
        (ask("openai", bearer(CHATGPT)), "acme-chat", True),
        (ask("openai", bearer(CHATGPT), ("chatgpt-account-id", "ws-1")), "acme-chat", True),
        (ask("openai", bearer("sk-gpt"), ("openai-organization", "org-a")), "acme-gpt", True),
        # No header makes Azure or AWS refuse others, and we cannot check their tokens: let in, and not attested.
        (ask("azure", bearer(jwt(tid="dir-1"))), "acme-azure", False),
        (ask("aws", ("authorization", "AWS4-HMAC-SHA256 Credential=ASIAQNZGKIQY56JQ7WML/x")), "acme-aws", False),
        # Which of two organisations an opaque login belongs to only Google knows.
        (ask("google", bearer("ya29.x")), "", False),
        (ask("mistral", bearer("anything")), "", False),
        (ask("anthropic", method="GET", body=b""), "", False),
        (ask("anthropic", login=True), "", False),
        (ask("anthropic", bearer("sk-mine"), unlisted="allow"), "", False),
    ],
)  # fmt: skip
def test_let_in(standing: Standing, name: str, *, managed: bool) -> None:
    assert standing.refusal is None
    assert (standing.account_ref, standing.organization_managed) == (name, managed)


@pytest.mark.parametrize(
    ("standing", "code"),
    [
        (ask("anthropic", ("x-api-key", "sk-mine")), "account.not_allowed"),
        (ask("anthropic", ("x-api-key", "sk-mine"), method="GET", body=b""), "account.not_allowed"),
        (ask("anthropic", ("x-api-key", "sk-ours"), bearer("sk-mine")), "account.not_allowed"),
        (ask("anthropic", ("x-api-key", "sk-ours"), target="/?key=sk-mine"), "account.not_allowed"),
        (ask("anthropic", ("x-api-key", "sk-team")), "account.not_allowed"),
        (ask("anthropic", ("x-api-key", "sk-gpt")), "account.not_allowed"),
        (ask("anthropic", ("x-api-key", "sk-ours"), ("x-api-key", "sk-team"), project="team"), "account.ambiguous"),
        (ask("anthropic", ("cookie", "sessionKey=x")), "account.missing"),
        (ask("anthropic", method="GET", body=b"", transport="websocket"), "account.missing"),
        (ask("openai", bearer(PERSONAL)), "account.not_allowed"),
        (ask("openai", bearer(CHATGPT), ("chatgpt-account-id", "ws-home")), "account.not_allowed"),
        (ask("openai", bearer(CHATGPT), ("chatgpt-account-id", "ws-1"), ("ChatGPT-Account-Id", "ws-home")), "account.not_allowed"),
        (ask("openai", bearer("sk-gpt"), ("openai-organization", "org-home")), "account.not_allowed"),
        (ask("azure", bearer("opaque")), "account.not_allowed"),
        (ask("mistral", bearer("anything"), unlisted="refuse"), "account.not_allowed"),
        (ask("mistral", unlisted="refuse"), "account.missing"),
    ],
)  # fmt: skip
def test_refused(standing: Standing, code: str) -> None:
    assert standing.refusal is not None
    assert (standing.refusal.status, standing.refusal.reason_codes) == (400, (code,))
    assert (standing.account_ref, standing.organization_managed) == ("", False)


def test_the_provider_is_told_who_may_come_in_whatever_becomes_of_the_request() -> None:
    told = ((b"anthropic-allowed-org-ids", b"org-uuid"),)

    assert ask("anthropic", ("x-api-key", "sk-ours")).headers == told
    assert ask("anthropic", login=True).headers == told
    assert ask("anthropic", bearer("sk-mine"), unlisted="allow").headers == told
    assert ask("openai", bearer("sk-gpt"), host="api.openai.com").headers == ()


def test_a_hash_is_of_this_key_alone() -> None:
    assert keyed_hash(SECRET, b"a") != keyed_hash(b"j" * 32, b"a")
    assert keyed_hash(SECRET, b"a").startswith("hmac-sha256:")
