"""What is set of a project: its files, who sees its content, and by what its requests are known."""

# ruff: noqa: RUF009 - setting() makes a dataclasses.field, which the rule does not see through

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from pathlib import Path

from gateway.config import values
from gateway.config.rows import setting
from gateway.config.values import Address
from gateway.contract import ClassificationV1, FactPrivacy

type Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def read_network(value: object) -> Network:
    """`address/prefix` with nothing beyond the prefix, IPv4 or IPv6."""
    try:
        return ipaddress.ip_network(values.text_of(value, "a network"))
    except ValueError:
        raise ValueError("must be a network such as 10.1.2.0/24, no bits set after its prefix") from None


LISTENER = values.Kind(
    "host:port or empty",
    lambda value, _: values.read_address(value, lowest_port=1) if value != "" else None,
    values.as_text,
)
NETWORKS = values.Kind(
    "list of networks", lambda value, _: values.list_of(value, read_network), values.as_texts, toml=True
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A project that requests can belong to."""

    name: str
    roots: tuple[Path, ...] = setting(values.FOLDERS, [], "folders of its files; they need not exist")
    token_file: Path | None = setting(
        values.FILE, "", "file with its token; empty: none is asked for on a loopback listener"
    )
    linked_projects: tuple[str, ...] = setting(
        values.NAMES, [], "projects that may see this one's content, where role and policy allow it"
    )
    privacy: FactPrivacy | None = setting(
        values.choice(FactPrivacy, empty=True),
        "",
        "who may see its content, where role and policy allow it; empty: linked_projects if there are any, else itself",
    )
    listen: Address | None = setting(
        LISTENER, "", "a proxy port of its own: whoever comes in by it belongs to this project"
    )
    networks: tuple[Network, ...] = setting(
        NETWORKS,
        [],
        "networks of its clients, such as 10.1.2.0/24: whoever comes from one belongs to it",
    )
    team: str = setting(values.NAME, "", "the team it belongs to")
    classification: ClassificationV1 | None = setting(
        values.choice(ClassificationV1, empty=True),
        "",
        "of what it sends, for rules; `restricted` goes to local models only. Empty: what the mode says",
    )
