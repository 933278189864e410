"""From a configuration to the parts of a running gateway. Nothing outside this package builds adapters."""

from __future__ import annotations

import base64
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote, urlsplit

from gateway import __version__
from gateway.app.accounts import accounts_of
from gateway.app.belongings import crossing_log, fingerprints_of, memory_desk
from gateway.app.breaking import BreakGlass, unknown_to
from gateway.app.budgeting import Budgets, budgets_of
from gateway.app.chains import ChainedUseCase, SharedChains
from gateway.app.clock import SystemClock
from gateway.app.detection import rules_file
from gateway.app.extracting import extraction_of
from gateway.app.gatekeeper import Gatekeeper, KillFile, Stopped
from gateway.app.local import local_models_of
from gateway.app.meter import MetricsMeter
from gateway.app.notifying import Notifier
from gateway.app.ownership import Fingerprints
from gateway.app.policies import LivePolicy, Reloaded, policy_of, transformers_of
from gateway.app.projects import known_projects
from gateway.app.remembering import MemoryDesk
from gateway.app.resigning import resigner_of, signer_of
from gateway.app.review import ReviewDesk
from gateway.app.signing import keyring
from gateway.app.stores import Stores
from gateway.app.tokens import token_of
from gateway.app.values import SealedVault
from gateway.boundary import BoundaryPolicy
from gateway.classify.treatment import Transformers
from gateway.config import Config, HostPattern
from gateway.context.objects import Limits
from gateway.contract.reasons import REASONS
from gateway.egress import Egress
from gateway.egress.conversations import Conversations
from gateway.egress.dossier import Surroundings
from gateway.egress.records import FragmentCache
from gateway.plugins import activate
from gateway.policy import CompiledPolicy
from gateway.policy.layers import broken_glass
from gateway.policy.rule import PolicyException
from gateway.ports import Detector, OutboundRequest, Peer, ProviderAdapter, Scanner, UseCase
from gateway.providers import hosts, registry
from gateway.providers.generic import Generic
from gateway.proxy.certs import CertificateAuthority, combined_bundle
from gateway.proxy.routes import HostRules
from gateway.proxy.settings import Access, ParentProxy, ProxySettings
from gateway.proxy.settings import Limits as ProxyLimits
from gateway.store.crossings import AuditedStore
from gateway.store.forgotten import stamp
from gateway.store.keys import Keyring
from gateway.telemetry.log import Log
from gateway.telemetry.metrics import Metrics

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


@dataclass(slots=True)
class Core:
    """The use case with everything that it was given."""

    config: Config
    egress: Egress
    use_case: UseCase  # what the edge drives
    policy: LivePolicy
    trial: LivePolicy | None
    kill: KillFile
    desk: ReviewDesk
    metrics: Metrics
    log: Log
    keys: Keyring
    stores: Stores
    fingerprints: Fingerprints
    memory: MemoryDesk
    budgets: Budgets
    glass: BreakGlass
    notifier: Notifier | None = None


def build_core(
    config: Config, *, detector: Detector, scanner: Scanner, stores: Stores, keys: Keyring, log: Log
) -> Core:
    """Join the use case with its ports."""
    transformers = transformers_of(config)
    types = tuple(str(kind) for kind in getattr(detector, "type_names", ()))
    metrics = Metrics(finding_types=types, codes=tuple(REASONS))
    metrics.build(__version__)
    store = stores.evidence
    marker = config.state.dir / "vault" / "forgotten"
    sealed = SealedVault(stores.vault, keys, partial(stamp, marker), follow=stores.shared)
    folders, told = config.policy.folders, _told(metrics, log)
    glass = BreakGlass(
        config.state.dir,
        store,
        keys,
        SystemClock(),
        config.review.break_glass_minutes,
        lambda: uuid.uuid4().hex,
    )
    policy = LivePolicy(config, transformers, folders, lambda _: None, told, broken=glass.current)
    glass.changed = policy.rejoin
    glass.unknown = lambda statement: unknown_to(config, policy().layers.rules, statement)
    metrics.break_glass(lambda: len(glass.current()))
    trial = _trial(config, transformers, told)
    fingerprints = fingerprints_of(config, keys, policy(), shared=stores.shared)

    announce = _announcing(log)

    def in_force(found: CompiledPolicy) -> None:
        metrics.policy(found.id, found.version, found.digest)
        fingerprints.policy = BoundaryPolicy(**found.boundary)
        fingerprints.role_allows = found.allows_cross_project_search
        fingerprints.enforced = found.enforcement != "shadow"
        announce(found)

    in_force(policy())
    policy.changed = in_force
    kill = KillFile(config.state.dir)
    metrics.kill_switch(lambda: bool(kill.state()))
    desk = ReviewDesk(
        stores.held,
        store,
        keys,
        SystemClock(),
        needed=config.review.reviewers_needed,
        hours=config.review.release_hours,
    )
    budgets = budgets_of(config, SystemClock())
    if stores.link is not None:
        stores.link.decided = desk.told
    memory = memory_desk(config, detector, fingerprints, keys, store)
    resigner = resigner_of(config)
    egress = build_egress(
        config,
        policy=policy,
        trial=trial or (lambda: None),
        transformers=transformers,
        holding=desk,
        accounts=accounts_of(config, keys.account_key(), signer_of(resigner)),
        resigner=resigner,
        gate=Gatekeeper(kill, budgets, _turned(log)),
        approval_wait_us=config.limits.approval_wait_ms * 1000,
        put_aside=memory.put_aside,
        detector=detector,
        scanner=scanner,
        store=AuditedStore(store, crossing_log(config)),
        vault=sealed,
        placeholders=sealed.placeholders,
        conversations=Conversations(stores.conversations, shared=stores.shared),
        ownership=fingerprints,
        keys=keys,
        meter=MetricsMeter(metrics, log.event),
    )
    use_case: UseCase = egress
    if stores.shared:
        shared = SharedChains(egress.chains, stores.conversations, sealed, egress.meter.fault)
        egress.chains.told = shared.kept
        use_case = cast("UseCase", ChainedUseCase(egress, shared))
    return Core(
        config,
        egress,
        use_case,
        policy,
        trial,
        kill,
        desk,
        metrics,
        log,
        keys,
        stores,
        fingerprints,
        memory,
        budgets,
        glass,
    )


def _trial(config: Config, transformers: Transformers, told: Callable[[Reloaded], None]) -> LivePolicy | None:
    """The bundles that are tried out beside those in force."""
    folders = config.policy.trial_folders
    return LivePolicy(config, transformers, folders, lambda _: None, told, "enforce") if folders else None


def _told(metrics: Metrics, log: Log) -> Callable[[Reloaded], None]:
    def told(result: Reloaded) -> None:
        metrics.reloaded(ok=result.ok)
        if not result.ok:
            log.event("policy_reload_failed", level="error", count=len(result.problems))
        elif result.changed:
            log.event("policy_reloaded", digest=result.digest)

    return told


def _announcing(log: Log) -> Callable[[CompiledPolicy], None]:
    """Say when people lift rules, and when that is over."""
    known: list[tuple[PolicyException, ...]] = [()]

    def announce(found: CompiledPolicy) -> None:
        broken = broken_glass(found.layers)
        if broken != known[0]:
            known[0] = broken
            effect = "rules_lifted" if broken else "over"
            log.event("break_glass", level="warning", effect=effect, count=len(broken), digest=found.digest)

    return announce


def _turned(log: Log) -> Callable[[Stopped], None]:
    return lambda state: log.event(
        "kill_switch",
        effect="everything" if state.everything else "some" if state else "off",
        count=len(state.projects) + len(state.principals),
    )


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
    limits = config.limits
    return ProxySettings(
        hosts=host_rules(config),
        websocket=config.hosts.websocket == "read",
        trust_file=combined_bundle(config.state.dir / "upstream-roots.pem", *extra),
        listen_host=config.listen.proxy.host,
        listen_port=config.listen.proxy.port,
        is_loopback=config.listen.proxy.is_loopback,
        access=access_table(config),
        connect_to={(a.host, a.port): (b.host, b.port) for a, b in config.upstream.connect_to.items()},
        parent=_parent(config.upstream.proxy),
        local=frozenset((model.host, model.port) for model in local_models_of(config).values()),
        own_ports=frozenset({config.listen.proxy.port, config.listen.control.port} - {0}),
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
    table = {"default": Access(Peer())}
    for name, project in config.projects.items():
        peer = Peer(project=name, team=project.team, classification=project.classification or "")
        table[name] = Access(peer, token_of(project.token_file))
    for who, principal in config.principals.items():
        for name in principal.projects:
            of = table[name]
            peer = replace(of.peer, principal=who, principal_kind=principal.kind, roles=principal.roles)
            table[f"{name}+{who}"] = Access(peer, token_of(principal.token_file) or of.token)
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
