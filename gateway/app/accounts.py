"""The Accounts port over the configuration: credentials are known by a hash under this installation's key.

A credential is compared and forgotten: it stands in no configuration, log or record. An account is attested where its
credential is listed, or where the provider is told in a header of ours which organisations it may let in.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from gateway.config import Config
from gateway.config.destinations import Account
from gateway.errors import BodyError
from gateway.ports import Headers, OutboundRequest, Refusal, Standing
from gateway.providers.credentials import Credential, credential, credentials, selected
from gateway.providers.tenants import restriction

_PURPOSE: Final = b"egress-account:1\0"
_BARE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})


def keyed_hash(key: bytes, value: bytes) -> str:
    """What a configuration says of a credential."""
    return "hmac-sha256:" + hmac.digest(key, _PURPOSE + value, hashlib.sha256).hex()


@dataclass(frozen=True, slots=True)
class ListedAccounts:
    """ports.Accounts. `unlisted`: allow, refuse, or empty (refuse where the provider has a listed account).

    `signer` gives the access key id under which the gateway itself signs a request, empty where it does not. What the
    client signed with is checked by nobody then, and proves nothing: the account is that of the signer.
    """

    key: bytes = field(repr=False)
    accounts: Sequence[Account] = ()
    unlisted: str = ""
    signer: Callable[[OutboundRequest], str] = lambda _: ""

    def standing(self, request: OutboundRequest, provider: str, *, login: bool) -> Standing:
        """See ports.Accounts."""
        known = [account for account in self.accounts if account.provider == provider]
        tenants = [tenant for account in known for tenant in account.tenants]
        headers = restriction(provider, request.host, tenants)
        if not known and self.unlisted != "refuse":
            return Standing()
        try:
            signer = self.signer(request)
        except BodyError as error:
            return Standing(headers=headers, refusal=Refusal(error.status, (error.code,), ""))
        found = (credential(signer),) if signer else credentials(request.headers, request.target)
        if not found:
            return self._without(request, headers, login=login)
        mine = [self._candidates(each, known, headers) for each in found]
        if not all(mine):
            refusal = None if self.unlisted == "allow" else _refusal("account.not_allowed")
            return Standing(headers=headers, refusal=refusal)
        shared = [account for account in mine[0] if all(account in others for others in mine)]
        if not shared:
            return Standing(headers=headers, refusal=_refusal("account.ambiguous"))
        if not all(_is_for(account, request) for account in shared):
            return Standing(headers=headers, refusal=_refusal("account.not_allowed"))
        attested = bool(headers) or any(self._lists(account, each) for account in shared for each in found)
        managed = attested and all(account.organization_managed for account in shared)
        one = shared[0] if len(shared) == 1 else None
        return Standing(
            one.name if one is not None else "",
            managed,
            one.region if one is not None else "",
            headers=headers,
        )

    def _without(self, request: OutboundRequest, headers: Headers, *, login: bool) -> Standing:
        """A request without credentials: it may ask for a token, or for what anybody may read; say nothing else."""
        bare = request.method in _BARE_METHODS and not request.body and request.transport == "http"
        if login or bare or self.unlisted == "allow":
            return Standing(headers=headers)
        return Standing(headers=headers, refusal=_refusal("account.missing"))

    def _candidates(self, found: Credential, known: Sequence[Account], headers: Headers) -> Sequence[Account]:
        """The account of a credential: the one that lists it, else those that it names, else those let in.

        What an opaque login belongs to only its provider knows, which lets in none but the organisations that we name
        in a header; where there is no such header it belongs to nobody.
        """
        for account in known:
            if self._lists(account, found):
                return [account]
        named = [account for account in known if found.tenants & set(account.tenants)]
        if named or found.tenants or not (found.login and headers):
            return named
        return [account for account in known if account.tenants]

    def _lists(self, account: Account, found: Credential) -> bool:
        digest = keyed_hash(self.key, found.value)
        return any(hmac.compare_digest(digest, each) for each in account.hashes)

    def find(self, found: Credential) -> Account | None:
        """The account that lists a credential or that the credential names, at whichever provider."""
        lists = (account for account in self.accounts if self._lists(account, found))
        names = (account for account in self.accounts if found.tenants & set(account.tenants))
        return next(lists, None) or next(names, None)


def _is_for(account: Account, request: OutboundRequest) -> bool:
    """Whether this project may use the account, and the request asks for none of its owner's other organisations."""
    if account.projects and request.peer.project not in account.projects:
        return False
    asked = selected(request.headers)
    allowed = {"workspace": account.tenants, "organization": account.organizations}
    return all(not allowed[kind] or names <= set(allowed[kind]) for kind, names in asked.items())


def _refusal(code: str) -> Refusal:
    return Refusal(400, (code,), "")


def accounts_of(
    config: Config, key: bytes, signer: Callable[[OutboundRequest], str] = lambda _: ""
) -> ListedAccounts:
    """What the configuration lists; `signer` as in ListedAccounts."""
    return ListedAccounts(key, tuple(config.accounts.values()), config.policy.unlisted_accounts, signer)
