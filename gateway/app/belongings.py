"""The parts that know whose content is whose: fingerprints, the memory guard, and where both keep what they know."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.app.clock import SystemClock
from gateway.app.ownership import Fingerprints
from gateway.app.projects import known_projects
from gateway.app.remembering import MemoryDesk, memory_queues
from gateway.boundary import BoundaryPolicy
from gateway.config import Config
from gateway.egress.records import record
from gateway.policy import CompiledPolicy
from gateway.ports import Detector, EvidenceStore
from gateway.store.crossings import CrossProjectLog
from gateway.store.fingerprints import FingerprintFiles
from gateway.store.keys import Keyring
from gateway.workers import spawn


def fingerprints_of(
    config: Config, keys: Keyring, policy: CompiledPolicy, *, shared: bool = False
) -> Fingerprints:
    """Whose content it is, for the projects of the configuration; `shared` with other processes that learn, too."""
    projects, _ = known_projects(config)
    return Fingerprints(
        files=fingerprint_files(config, keys),
        key=fingerprint_key(keys),
        projects=projects,
        policy=BoundaryPolicy(**policy.boundary),
        role_allows=policy.allows_cross_project_search,
        now=SystemClock().now,
        seen_days=config.state.seen_days,
        shared=shared,
    )


def crossing_log(config: Config) -> CrossProjectLog:
    """The cross-project audit file of an installation."""
    return CrossProjectLog(config.state.dir / "audit" / "cross-project.jsonl")


def memory_desk(
    config: Config,
    detector: Detector,
    ownership: Fingerprints,
    keys: Keyring,
    store: EvidenceStore | None = None,
) -> MemoryDesk:
    """The memory guard; without a store its cross-project events stand in the audit file alone."""
    log = crossing_log(config)

    def audit(events: Sequence[bytes]) -> None:
        log.append(events)
        if store is not None:
            records = [record("boundary_event", (event,)) for event in events]
            _ = spawn(store.append(records), name="boundary events")

    return MemoryDesk(detector, ownership, memory_queues(config, keys), audit, keys.digest_key("\0memory"))


def fingerprint_key(keys: Keyring) -> bytes:
    """The key of fingerprints, canaries and path tags; no project's name can hold a NUL, so none has this key."""
    return keys.digest_key("\0projects")


def fingerprint_files(config: Config, keys: Keyring) -> FingerprintFiles:
    """What is known of projects' content, on disk."""
    return FingerprintFiles(config.state.dir / "vault" / "projects", fingerprint_key(keys))
