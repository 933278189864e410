"""What settings must not say together, and what is worth a warning."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from gateway.config.projects import Network
from gateway.config.remote import is_remote
from gateway.config.settings import Config
from gateway.config.values import Address
from gateway.providers import hosts

DEFAULT_PROJECT = "default"
"""The project of requests without credentials; it exists without being named."""

UNKNOWN_PRINCIPAL = "unknown"
"""The principal of requests that name none."""


def unknown_name(config: Config, project: str, principal: str) -> str:
    """Which of the two, where it is given, no request can carry; empty where there is none."""
    if project and project not in {DEFAULT_PROJECT, *config.projects}:
        return f"the configuration has no project {project}"
    if principal and principal not in {UNKNOWN_PRINCIPAL, *config.principals}:
        return f"the configuration has no principal {principal}"
    return ""


def conflicts(config: Config) -> list[str]:
    """Problems that no single setting shows, each with the path of the setting to change."""
    return [*_listeners(config), *_dialled(config), *_references(config), *_not_in_this_version(config)]


def _not_in_this_version(config: Config) -> Iterator[str]:
    """Settings whose meaning is fixed and whose work is not done yet: refused, because ignoring one would deceive."""
    if config.state.store != "sqlite":
        yield "state.store: this version keeps evidence in sqlite"


def _same_port(a: Address, b: Address) -> bool:
    return a == b and a.port != 0


def _listeners(config: Config) -> Iterator[str]:
    listen = config.listen
    if _same_port(listen.proxy, listen.control):
        yield "listen.control: must not be the address of listen.proxy"
    if (listen.tls_cert is None) != (listen.tls_key is None):
        yield "listen.tls_key: tls_cert and tls_key are given together or not at all"
    if listen.client_ca is not None and listen.tls_cert is None:
        yield "listen.client_ca: needs tls_cert, without which no client certificate is seen"
    yield from _places(config)
    if listen.proxy.is_loopback:
        return
    if listen.tls_cert is None:
        yield "listen.tls_cert: required where listen.proxy is not loopback, to protect credentials"
    tokens = [project.token_file for project in config.projects.values()]
    tokens += [principal.token_file for principal in config.principals.values()]
    mapped = any(project.networks for project in config.projects.values())
    if listen.client_ca is None and not any(tokens) and not mapped:
        yield (
            "listen.client_ca: where listen.proxy is not loopback, give this, or the token_file of a project "
            "or principal, or networks of a project; nobody could connect otherwise"
        )


def _places(config: Config) -> Iterator[str]:
    """Listeners and networks of projects."""
    taken = {config.listen.proxy: "listen.proxy", config.listen.control: "listen.control"}
    owners: dict[Network, str] = {}
    for project in config.projects.values():
        path = f"projects.{project.name}"
        for network in project.networks:
            if (owner := owners.setdefault(network, project.name)) != project.name:
                yield f"{path}.networks: {network} is a network of project {owner}; a client belongs to one"
        if project.listen is None:
            continue
        if (other := taken.setdefault(project.listen, f"{path}.listen")) != f"{path}.listen":
            yield f"{path}.listen: must not be the address of {other}"
        if project.listen.is_loopback:
            continue
        if config.listen.tls_cert is None:
            yield f"{path}.listen: not loopback: needs listen.tls_cert, to protect what clients send"
        tokens = [project.token_file, *(p.token_file for p in config.principals.values())]
        if config.listen.client_ca is None and not any(tokens) and not project.networks:
            yield (
                f"{path}.listen: not loopback: give the token_file or networks of the project, or listen.client_ca; "
                "nobody could connect otherwise"
            )


def _listening(config: Config) -> list[Address]:
    return [project.listen for project in config.projects.values() if project.listen is not None]


def _dialled(config: Config) -> Iterator[str]:
    own = {config.listen.proxy, config.listen.control, *_listening(config)}
    for target, dial in config.upstream.connect_to.items():
        if dial in own:
            yield f"upstream.connect_to: {target} leads back to the gateway's own port"


def _references(config: Config) -> Iterator[str]:
    known = {DEFAULT_PROJECT, *config.projects}
    for project in config.projects.values():
        path = f"projects.{project.name}.linked_projects"
        yield from (f"{path}: no project {other}" for other in project.linked_projects if other not in known)
        if project.name in project.linked_projects:
            yield f"{path}: a project is not linked to itself"
    for principal in config.principals.values():
        path = f"principals.{principal.name}.projects"
        yield from (f"{path}: no project {other}" for other in principal.projects if other not in known)
    for reviewer in config.reviewers.values():
        if reviewer.token_file is None:
            yield f"reviewers.{reviewer.name}.token_file: required"
        path = f"reviewers.{reviewer.name}.projects"
        yield from (f"{path}: no project {other}" for other in reviewer.projects if other not in known)
    yield from _accounts(config, known)
    for model in config.local_models.values():
        yield from (
            f"local_models.{model.name}.{key}: required"
            for key in ("url", "model")
            if not getattr(model, key)
        )
    for budget in config.budgets.values():
        if not budget.requests and not budget.bytes and not budget.tokens:
            yield f"budgets.{budget.name}.requests: a budget limits requests, bytes or tokens"
        path = f"budgets.{budget.name}.projects"
        yield from (f"{path}: no project {other}" for other in budget.projects if other not in known)


def _accounts(config: Config, known: set[str]) -> Iterator[str]:
    listed: dict[str, str] = {}
    for account in config.accounts.values():
        path = f"accounts.{account.name}"
        if not account.provider:
            yield f"{path}.provider: required"
        if not account.hashes and not account.tenants:
            yield f"{path}.hashes: an account is known by hashes, tenants or both"
        for each in (*account.hashes, *(f"{account.provider}/{tenant}" for tenant in account.tenants)):
            if listed.setdefault(each, account.name) != account.name:
                yield f"{path}: accounts.{listed[each]} has the same hash or tenant"
        yield from (
            f"{path}.projects: no project {other}" for other in account.projects if other not in known
        )


def warnings(config: Config) -> tuple[str, ...]:
    """What is allowed and probably not meant; looks at the file system."""
    found = [
        f"projects.{project.name}.roots: {root} does not exist"
        for project in config.projects.values()
        for root in project.roots
        if not root.is_dir()
    ]
    found += [f"{place}: {path} does not exist" for place, path in _files(config) if not path.exists()]
    if config.policy.enforcement == "shadow":
        found.append("policy.enforcement: shadow: nothing is denied or redacted, decisions are only recorded")
    if config.policy.public_key is None and any(map(is_remote, config.policy.bundles)):
        found.append(
            "policy.public_key: bundles are fetched and none is asked for: whoever serves them decides"
        )
    if not config.listen.control.is_loopback:
        found.append(
            "listen.control: not loopback: its token crosses the network in clear unless TLS stands before it"
        )
    found += [
        f"hosts.tunnel: {host}: requests to this provider of models pass unread, and no record says what they hold"
        for host in _unread_providers(config)
    ]
    return tuple(found)


def _files(config: Config) -> Iterator[tuple[str, Path]]:
    """Every file that is named, with its setting."""
    listen, upstream, policy = config.listen, config.upstream, config.policy
    named: list[tuple[str, Path | None]] = [
        ("listen.tls_cert", listen.tls_cert),
        ("listen.tls_key", listen.tls_key),
        ("listen.client_ca", listen.client_ca),
        ("upstream.ca_file", upstream.ca_file),
        ("upstream.aws_credentials", upstream.aws_credentials),
        ("policy.public_key", policy.public_key),
        ("policy.fetch_token_file", policy.fetch_token_file),
        ("notify.secret_file", config.notify.secret_file),
    ]
    named += [(f"projects.{name}.token_file", each.token_file) for name, each in config.projects.items()]
    named += [(f"principals.{name}.token_file", each.token_file) for name, each in config.principals.items()]
    named += [(f"reviewers.{name}.token_file", each.token_file) for name, each in config.reviewers.items()]
    named += [(f"local_models.{name}.key_file", each.key_file) for name, each in config.local_models.items()]
    yield from ((place, path) for place, path in named if path is not None)


def _unread_providers(config: Config) -> list[str]:
    """Entries of `hosts.tunnel` that pass a provider through: one of the table, or what looks like one."""
    found = []
    for pattern in map(str, config.hosts.tunnel):
        name = pattern.partition(":")[0]
        known = [host for host, _ in hosts.table() if name.startswith("*.") and host.endswith(name[1:])]
        if known or hosts.lookup(name) is not None or hosts.looks_like_provider(name.removeprefix("*.")):
            found.append(pattern)
    return found
