"""From a configuration to the parts of a running gateway. Nothing outside this package builds adapters."""

from __future__ import annotations

import base64
import uuid
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from gateway.app.belongings import fingerprints_of, memory_desk
from gateway.app.canary import canary_root
from gateway.app.clock import SystemClock
from gateway.app.detection import rules_file
from gateway.app.extracting import extraction_of
from gateway.app.local import local_models_of
from gateway.app.policies import policy_of, transformers_of
from gateway.app.projects import known_projects
from gateway.app.remembering import MemoryDesk
from gateway.app.signing import keyring
from gateway.app.tokens import token_of
from gateway.config import Address, Config, HostPattern
from gateway.context.objects import Limits
from gateway.egress import Egress
from gateway.egress.dossier import Surroundings
from gateway.egress.records import FragmentCache
from gateway.plugins import activate
from gateway.ports import Detector, OutboundRequest, Peer, ProviderAdapter
from gateway.providers import hosts, registry
from gateway.providers.generic import Generic
from gateway.proxy import canary
from gateway.proxy.certs import CertificateAuthority, combined_bundle
from gateway.proxy.places import Listener, Places
from gateway.proxy.routes import HostRules
from gateway.proxy.settings import Access, ParentProxy, ProxySettings
from gateway.proxy.settings import Limits as ProxyLimits
from gateway.store.keys import Keyring

DETECTOR_FACTORY = "gateway.store.detector:build"


def limits_of(config: Config) -> Limits:
    """The bounds on what is read."""
    limits = config.limits
    return Limits(
        max_body_bytes=limits.max_body_bytes,
        max_decoded_ratio=limits.max_decoded_ratio,
        max_nodes=limits.max_nodes,
        max_depth=limits.max_depth,
        max_objects=limits.max_objects,
    )


def adapters_of(config: Config) -> list[ProviderAdapter]:
    """The active wire dialects in the order of the configuration, then the generic one, which reads any JSON."""
    named = [plugin.load()() for plugin in activate("gateway.providers", config.plugins.providers)]
    return [*named, Generic()]


def detector_arguments(config: Config) -> tuple[str, ...]:
    """What DETECTOR_FACTORY is called with, here and in scanning processes: folders and files, nothing secret."""
    cache, keys = str(config.state.dir / "cache"), str(config.state.keys_dir)
    return cache, str(known_file(config)), keys, rules_file(config)


def known_file(config: Config) -> Path:
    """The list of an organisation's own values (`egress project index --values`), which need not be there."""
    return config.state.dir / "vault" / "values" / "known"


def build_detector(config: Config | None = None) -> Detector:
    """The built-in detector, with what the state folder of `config` holds for it; SetupError where its test fails."""
    from gateway.store.detector import build  # noqa: PLC0415 - the engine takes time to import that not all need

    return build(*(detector_arguments(config) if config is not None else ()))


def memory_desk_of(config: Config) -> MemoryDesk:
    """The memory guard for one command, over what is indexed and was seen."""
    keys = keyring(config)
    ownership = fingerprints_of(config, keys, policy_of(config, transformers_of(config)))
    ownership.load()
    return memory_desk(config, build_detector(config), ownership, keys)


def build_egress(config: Config, *, detector: Detector, keys: Keyring, **ports: Any) -> Egress:
    """The use case over any ports; the composition of `inspect` and of the proxy differ in these alone."""
    adapters = adapters_of(config)
    return Egress(
        extraction=extraction_of(config),
        find=partial(registry.find, adapters),
        clock=SystemClock(),
        surroundings=Surroundings(
            detectors=tuple(dict.fromkeys((detector.revision[:200], ports["scanner"].revision[:200]))),
            engine=getattr(detector, "engine_name", detector.id),
            fragments=FragmentCache((detector.id, detector.version)),
            new_id=lambda: uuid.uuid4().hex,
            digest_key=keys.digest_key,
            salt_key=keys.salt_key,
            url=_upstream_url,
        ),
        local_models=local_models_of(config),
        limits=limits_of(config),
        deadline_us=config.limits.deadline_ms * 1000,
        **ports,
    )


def _upstream_url(request: OutboundRequest) -> str:
    host = f"[{request.host}]" if ":" in request.host else request.host
    return f"{request.scheme}://{host}:{request.port}/"


# -- the edge ------------------------------------------------------------------------------------------------------


def authority_of(config: Config, keys: Keyring) -> CertificateAuthority:
    """The interception CA, made at the first start; `ca.pem` is what clients must trust."""
    now = datetime.fromisoformat(SystemClock().now()).astimezone(UTC)
    return CertificateAuthority.load_or_create(
        config.state.keys_dir / "ca.key", config.state.dir / "ca.pem", now=now
    )


def settings_of_proxy(config: Config) -> ProxySettings:
    """What the proxy is told."""
    extra = [config.upstream.ca_file.read_bytes()] if config.upstream.ca_file is not None else []
    extra += canary_root(config)
    limits = config.limits
    return ProxySettings(
        hosts=host_rules(config),
        websocket=config.hosts.websocket == "read",
        trust_file=combined_bundle(config.state.dir / "upstream-roots.pem", *extra),
        listen_host=config.listen.proxy.host,
        listen_port=config.listen.proxy.port,
        is_loopback=config.listen.proxy.is_loopback,
        places=places_of(config),
        access=access_table(config),
        connect_to={(a.host, a.port): (b.host, b.port) for a, b in config.upstream.connect_to.items()},
        parent=_parent(config.upstream.proxy),
        local=frozenset((model.host, model.port) for model in local_models_of(config).values()),
        canary=config.state.dir / canary.FILE,
        own_ports=frozenset(
            {config.listen.proxy.port, config.listen.control.port, *(at.port for at in listeners_of(config))}
            - {0}
        ),
        limits=ProxyLimits(
            max_body_bytes=limits.max_body_bytes,
            max_inflight_bytes=limits.max_inflight_bytes,
            max_connections=limits.max_connections,
            # Who waits for a person is evaluated a second time once they decided.
            deadline_ms=limits.deadline_ms
            + (limits.approval_wait_ms + limits.deadline_ms if limits.approval_wait_ms else 0),
        ),
        tls_cert=config.listen.tls_cert,
        tls_key=config.listen.tls_key,
        client_ca=config.listen.client_ca,
    )


def listeners_of(config: Config) -> list[Address]:
    """The addresses of projects' own listeners, in the order of the projects."""
    return [project.listen for project in config.projects.values() if project.listen is not None]


def places_of(config: Config) -> Places:
    """Which project a connection belongs to by where it comes in and from."""
    return Places(
        [
            Listener(project.name, at.host, at.port, at.is_loopback)
            for project in config.projects.values()
            if (at := project.listen) is not None
        ],
        [(network, project.name) for project in config.projects.values() for network in project.networks],
    )


def host_rules(config: Config) -> HostRules:
    """The effective host lists: the shipped tables and those of the configuration."""
    mode = str(config.policy.mode)
    developer = hosts.developer_hosts if mode in ("developer", "governed") else frozenset()
    unknown = str(config.hosts.unknown or ("tunnel" if mode == "developer" else "refuse"))
    return HostRules(
        intercept=_patterns(config.hosts.intercept),
        tunnel=_patterns(config.hosts.tunnel) | developer,
        deny=_patterns(config.hosts.deny),
        unknown=unknown,
        is_provider=lambda host: hosts.lookup(host) is not None,
        looks_like_provider=hosts.looks_like_provider,
        tells=partial(registry.tells, adapters_of(config)),
    )


def _patterns(patterns: Sequence[HostPattern]) -> frozenset[str]:
    return frozenset(str(pattern) for pattern in patterns)


def access_table(config: Config) -> dict[str, Access]:
    """Who a client is, by the user name of its proxy credentials: `<project>` or `<project>+<principal>`."""
    tokens = {"default": b""}
    tokens |= {name: token_of(project.token_file) for name, project in config.projects.items()}
    for who, principal in config.principals.items():
        own = token_of(principal.token_file)
        tokens |= {f"{name}+{who}": own or tokens[name] for name in principal.projects}
    return {name: Access(peer, tokens[name]) for name, peer in peers_of(config).items()}


def peers_of(config: Config) -> dict[str, Peer]:
    """What is known of each client, by the same user names."""
    table = {"default": Peer()}
    for name, project in config.projects.items():
        table[name] = Peer(project=name, team=project.team, classification=project.classification or "")
    for who, principal in config.principals.items():
        for name in principal.projects:
            table[f"{name}+{who}"] = replace(
                table[name], principal=who, principal_kind=principal.kind, roles=principal.roles
            )
    return table


def _parent(url: str) -> ParentProxy | None:
    if not url:
        return None
    parts = urlsplit(url)
    authorization = b""
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
        authorization = b"Basic " + base64.b64encode(pair)
    port = parts.port or (443 if parts.scheme == "https" else 8080)
    return ParentProxy(parts.hostname or "", port, parts.scheme, authorization)


def project_rows(config: Config) -> list[dict[str, Any]]:
    """The rows of `/v1/projects`."""
    projects, _ = known_projects(config)
    return [
        {
            "name": name,
            "hash": project.hash,
            "roots": list(project.roots),
            "linked_projects": list(project.linked),
            "team": project.team,
        }
        for name, project in sorted(projects.items())
    ]
