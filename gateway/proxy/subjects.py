"""Client certificates on the proxy port: what a verified subject says, and which peer that is.

The subject's one common name is the principal; its organizational units that name projects narrow where it may go.
Units none of which names a project open nothing: they may have named one that is no more, and the principal's other
projects are not what the certificate was made for.
Whether the certificate is good is for OpenSSL to say in the handshake, against `listen.client_ca`: a certificate that
is not lets no connection come about.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cryptography import x509
from cryptography.x509.oid import NameOID
from mitmproxy import certs

from gateway.ports import Peer
from gateway.proxy.routes import AccessEntry


@dataclass(frozen=True, slots=True)
class Subject:
    """What a client certificate says of its holder."""

    principal: str
    units: frozenset[str] = frozenset()


def subject_of(chain: Sequence[certs.Cert]) -> Subject | None:
    """The subject of the certificate that a client showed, None without one; a principal needs exactly one name."""
    if not chain:
        return None
    name = chain[0].to_cryptography().subject
    common = _values(name, NameOID.COMMON_NAME)
    return Subject(
        common[0] if len(common) == 1 else "", frozenset(_values(name, NameOID.ORGANIZATIONAL_UNIT_NAME))
    )


def _values(name: x509.Name, oid: x509.ObjectIdentifier) -> list[str]:
    return [str(attribute.value) for attribute in name.get_attributes_for_oid(oid)]


def certified(user: str, subject: Subject, access: Mapping[str, AccessEntry]) -> Peer | None:
    """The peer that a certificate proves, None where it proves none (answer 407).

    `user` is the user name of the proxy credentials (`<project>[+<principal>]`), empty without any; its password is
    not looked at, for the certificate says more. Without a project in it the subject's unit decides, else the one
    project of the principal.
    """
    project, _, principal = user.partition("+")
    if not subject.principal or principal not in {"", subject.principal}:
        return None
    reachable = {
        entry.peer.project: entry.peer
        for entry in access.values()
        if entry.peer.principal == subject.principal
    }
    projects = {entry.peer.project for entry in access.values()}
    if subject.units:
        reachable = {name: peer for name, peer in reachable.items() if name in subject.units & projects}
    if project:
        return reachable.get(project)
    return next(iter(reachable.values())) if len(reachable) == 1 else None
