"""The use case of a running gateway, joined with its ports: policy, evidence, people, projects, metrics."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import cast

from gateway import __version__
from gateway.app.accounts import accounts_of
from gateway.app.belongings import crossing_log, fingerprints_of, memory_desk
from gateway.app.breaking import BreakGlass, unknown_to
from gateway.app.budgeting import Budgets, budgets_of
from gateway.app.chains import ChainedUseCase, SharedChains
from gateway.app.clock import SystemClock
from gateway.app.gatekeeper import Gatekeeper, KillFile, Stopped
from gateway.app.meter import MetricsMeter
from gateway.app.notifying import Notifier
from gateway.app.ownership import Fingerprints
from gateway.app.policies import LivePolicy, transformers_of
from gateway.app.remembering import MemoryDesk
from gateway.app.resigning import resigner_of, signer_of
from gateway.app.review import ReviewDesk
from gateway.app.stores import Stores
from gateway.app.telling import telling
from gateway.app.values import SealedVault
from gateway.app.wiring import build_egress
from gateway.boundary import BoundaryPolicy
from gateway.classify.treatment import Transformers
from gateway.config import Config
from gateway.contract.reasons import REASONS
from gateway.egress import Egress
from gateway.egress.conversations import Conversations
from gateway.policy import CompiledPolicy
from gateway.policy.layers import broken_glass
from gateway.policy.rule import PolicyException
from gateway.ports import Detector, Scanner, UseCase
from gateway.store.crossings import AuditedStore
from gateway.store.forgotten import stamp
from gateway.store.keys import Keyring
from gateway.telemetry.log import Log
from gateway.telemetry.metrics import Metrics


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


@dataclass(frozen=True, slots=True)
class _Rules:
    """The policies in force and on trial, and what lifts their rules."""

    transformers: Transformers
    policy: LivePolicy
    trial: LivePolicy | None
    glass: BreakGlass


def build_core(
    config: Config, *, detector: Detector, scanner: Scanner, stores: Stores, keys: Keyring, log: Log
) -> Core:
    """Join the use case with its ports."""
    metrics = _metrics(detector)
    rules = _rules(config, stores, keys, metrics, log)
    fingerprints = fingerprints_of(config, keys, rules.policy(), shared=stores.shared)
    _follow(rules.policy, fingerprints, metrics, log)
    kill = KillFile(config.state.dir)
    metrics.kill_switch(lambda: bool(kill.state()))
    desk = _desk(config, stores, keys)
    budgets = budgets_of(config, SystemClock())
    memory = memory_desk(config, detector, fingerprints, keys, stores.evidence)
    vault, resigner = _vault(config, stores, keys), resigner_of(config)
    egress = build_egress(
        config,
        policy=rules.policy,
        trial=rules.trial or (lambda: None),
        transformers=rules.transformers,
        holding=desk,
        accounts=accounts_of(config, keys.account_key(), signer_of(resigner)),
        resigner=resigner,
        gate=Gatekeeper(kill, budgets, _turned(log)),
        approval_wait_us=config.limits.approval_wait_ms * 1000,
        put_aside=memory.put_aside,
        detector=detector,
        scanner=scanner,
        store=AuditedStore(stores.evidence, crossing_log(config)),
        vault=vault,
        placeholders=vault.placeholders,
        conversations=Conversations(stores.conversations, shared=stores.shared),
        ownership=fingerprints,
        keys=keys,
        meter=MetricsMeter(metrics, log.event),
    )
    return Core(
        config=config,
        egress=egress,
        use_case=_edge(egress, stores, vault),
        policy=rules.policy,
        trial=rules.trial,
        kill=kill,
        desk=desk,
        metrics=metrics,
        log=log,
        keys=keys,
        stores=stores,
        fingerprints=fingerprints,
        memory=memory,
        budgets=budgets,
        glass=rules.glass,
    )


def _metrics(detector: Detector) -> Metrics:
    types = tuple(str(kind) for kind in getattr(detector, "type_names", ()))
    metrics = Metrics(finding_types=types, codes=tuple(REASONS))
    metrics.build(__version__)
    return metrics


def _vault(config: Config, stores: Stores, keys: Keyring) -> SealedVault:
    marker = config.state.dir / "vault" / "forgotten"
    return SealedVault(stores.vault, keys, partial(stamp, marker), follow=stores.shared)


def _desk(config: Config, stores: Stores, keys: Keyring) -> ReviewDesk:
    """Where people look at what is held; another process may tell of what they said."""
    desk = ReviewDesk(
        stores.held,
        stores.evidence,
        keys,
        SystemClock(),
        needed=config.review.reviewers_needed,
        hours=config.review.release_hours,
    )
    if stores.link is not None:
        stores.link.decided = desk.told
    return desk


def _rules(config: Config, stores: Stores, keys: Keyring, metrics: Metrics, log: Log) -> _Rules:
    """The bundles in force and those on trial, joined again whenever people lift rules."""
    transformers, told = transformers_of(config), telling(metrics, log)
    glass = BreakGlass(
        config.state.dir,
        stores.evidence,
        keys,
        SystemClock(),
        config.review.break_glass_minutes,
        lambda: uuid.uuid4().hex,
    )
    folders = config.policy.folders
    policy = LivePolicy(config, transformers, folders, lambda _: None, told, broken=glass.current)
    glass.changed = policy.rejoin
    glass.unknown = lambda statement: unknown_to(config, policy().layers.rules, statement)
    metrics.break_glass(lambda: len(glass.current()))
    tried = config.policy.trial_folders
    trial = LivePolicy(config, transformers, tried, lambda _: None, told, "enforce") if tried else None
    return _Rules(transformers, policy, trial, glass)


def _follow(policy: LivePolicy, fingerprints: Fingerprints, metrics: Metrics, log: Log) -> None:
    """Tell what depends on the policy which one is in force, now and after each change."""
    announce = _announcing(log)

    def in_force(found: CompiledPolicy) -> None:
        metrics.policy(found.id, found.version, found.digest)
        fingerprints.policy = BoundaryPolicy(**found.boundary)
        fingerprints.role_allows = found.allows_cross_project_search
        fingerprints.enforced = found.enforcement != "shadow"
        announce(found)

    in_force(policy())
    policy.changed = in_force


def _edge(egress: Egress, stores: Stores, vault: SealedVault) -> UseCase:
    """What the edge drives: where several processes carry traffic, chains of responses are fetched and told."""
    if not stores.shared:
        return egress
    shared = SharedChains(egress.chains, stores.conversations, vault, egress.meter.fault)
    egress.chains.told = shared.kept
    return cast("UseCase", ChainedUseCase(egress, shared))


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
