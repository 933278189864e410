"""Who asks, where it goes, where it came from, and which policy decided (contract §4.1, §7.4)."""

from __future__ import annotations

import hashlib
import ipaddress
import re
from enum import StrEnum
from typing import Self
from urllib.parse import urlsplit

from pydantic import model_validator

from gateway.contract.record import Record, Wire, optional
from gateway.contract.refusals import refuse
from gateway.contract.scalars import (
    PolicyId,
    ProtocolReference,
    SemanticVersion,
    Sha256Digest,
    SourceId,
    conform,
)
from gateway.errors import ContractError


class PrincipalKindV1(StrEnum):
    """What kind of identity a principal is."""

    PERSON = "person"
    TEAM = "team"
    ORGANIZATION = "organization"
    PROJECT = "project"
    AGENT = "agent"
    SESSION = "session"
    WORKLOAD = "workload"
    UNKNOWN = "unknown"


class PrincipalV1(Record):
    """An identity that the gateway authenticated itself.

    `unknown` has no id and never authorises anything.
    """

    kind: Wire[PrincipalKindV1]
    id: ProtocolReference | None = optional()

    @model_validator(mode="after")
    def _id_unless_unknown(self) -> Self:
        if (self.kind is PrincipalKindV1.UNKNOWN) != (self.id is None):
            raise refuse("principal_identity")
        return self

    @classmethod
    def unknown(cls) -> Self:
        """The principal of a request that nobody was authenticated for."""
        return cls(kind=PrincipalKindV1.UNKNOWN)


class DestinationLocalityV1(StrEnum):
    """Whether a destination is on this machine; nothing is ever assumed to be."""

    LOCAL = "local"
    REMOTE = "remote"
    UNKNOWN = "unknown"


class DestinationConstraintV1(StrEnum):
    """Where an object may go at all, tighter first."""

    LOCAL_ONLY = "local_only"
    ORGANIZATION_PRIVATE = "organization_private"


class DestinationV1(Record):
    """The model and the provider that a delivery goes to.

    `organization_managed` only where it is attested.
    """

    provider: ProtocolReference
    model: ProtocolReference | None = optional()
    locality: Wire[DestinationLocalityV1]
    organization_managed: bool = False
    account_ref: ProtocolReference | None = optional()
    region: ProtocolReference | None = optional()

    def satisfies(self, constraint: DestinationConstraintV1) -> bool:
        """Whether an object under this constraint may go here; an unknown locality satisfies nothing."""
        if self.locality is DestinationLocalityV1.LOCAL:
            return True
        return (
            constraint is DestinationConstraintV1.ORGANIZATION_PRIVATE
            and self.organization_managed
            and self.locality is DestinationLocalityV1.REMOTE
        )

    @classmethod
    def for_url(
        cls,
        url: str,
        provider: str = "",
        *,
        model: str | None = None,
        organization_managed: bool = False,
        account_ref: str | None = None,
        region: str | None = None,
    ) -> Self:
        """The destination behind an upstream URL (contract §7.4).

        `provider` is lower-cased; without one the host names it. A label that is no ProtocolReference is
        replaced by a short hash, so that a destination always has a name.
        """
        host = _host(url)
        return cls(
            provider=_label(provider or host or "unknown"),
            model=model,
            locality=_locality(host),
            organization_managed=organization_managed,
            account_ref=account_ref,
            region=region,
        )


# Parsers disagree about a URL with any of these (for some a backslash ends the host): not trusted.
_AMBIGUOUS = re.compile(r"[\x00-\x20\x7f\\]")


def _host(url: str) -> str:
    """The lower-case host of an absolute URL, or nothing where the URL does not parse."""
    if _AMBIGUOUS.search(url):
        return ""
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises where it is no number
    except ValueError:
        return ""
    return (parts.hostname or "") if parts.scheme else ""


def _locality(host: str) -> DestinationLocalityV1:
    if not host:
        return DestinationLocalityV1.UNKNOWN
    if host == "localhost" or host.endswith(".localhost") or _is_loopback(host):
        return DestinationLocalityV1.LOCAL
    return DestinationLocalityV1.REMOTE


def _is_loopback(host: str) -> bool:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    # `is_loopback` would also take v4-mapped v6 addresses; the contract names 127/8 and ::1 alone.
    return address.is_loopback if address.version == 4 else address == ipaddress.IPv6Address(1)


def _label(provider: str) -> str:
    label = provider.lower()
    try:
        conform(ProtocolReference, label)
    except ContractError:
        hashed = hashlib.sha256(label.encode("utf-8", "surrogatepass")).hexdigest()
        return f"provider-{hashed[:16]}"
    return label


class PolicyRefV1(Record):
    """The exact policy that decided: its name, version and the digest of its effective settings."""

    id: PolicyId
    version: SemanticVersion | None = optional()
    digest: Sha256Digest


class SourceKindV1(StrEnum):
    """What kind of place an object came from."""

    FILE = "file"
    SHELL = "shell"
    SEARCH = "search"
    PROVIDER = "provider"
    MEMORY = "memory"
    KNOWLEDGE = "knowledge"
    AGENT = "agent"
    WEB = "web"
    OTHER = "other"


class SourceRefV1(Record):
    """A source by kind and id; never a path or an address that would be content."""

    kind: Wire[SourceKindV1]
    id: SourceId
