"""The composition root: the only place that builds adapters and joins them.

run            the gateway in the foreground, until it is told to stop
inspect, scan  the same evaluation without network or store
receipts, verify, record   evidence as it is stored
kill_switch    what is stopped, and stopping it, with and without a running gateway
replay         what another policy would have decided about what is stored
build_addon    the proxy addon for `mitmdump -s addons/egress.py`
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from gateway.app.budgeting import budget_rows
    from gateway.app.door import build_addon
    from gateway.app.evidence import lineage, receipts, verify
    from gateway.app.killing import kill_switch, turn_kill_switch
    from gateway.app.offline import inspect, scan, scan_types
    from gateway.app.policies import (
        load_bundles,
        new_policy_key,
        policy_warnings,
        sign_bundle,
        signer_of,
        transformers_of,
    )
    from gateway.app.replaying import days_ago, explain_stored, replay
    from gateway.app.serve import run

_HOMES: Final = {
    "budget_rows": "budgeting",
    "build_addon": "door",
    "days_ago": "replaying",
    "explain_stored": "replaying",
    "inspect": "offline",
    "kill_switch": "killing",
    "lineage": "evidence",
    "load_bundles": "policies",
    "new_policy_key": "policies",
    "policy_warnings": "policies",
    "receipts": "evidence",
    "replay": "replaying",
    "run": "serve",
    "scan": "offline",
    "scan_types": "offline",
    "sign_bundle": "policies",
    "signer_of": "policies",
    "transformers_of": "policies",
    "turn_kill_switch": "killing",
    "verify": "evidence",
}


def __getattr__(name: str) -> Any:
    """Import a part when it is asked for: the process that writes evidence needs no proxy."""
    if name not in _HOMES:
        raise AttributeError(name)
    return getattr(import_module(f"gateway.app.{_HOMES[name]}"), name)


__all__ = [
    "budget_rows", "build_addon", "days_ago", "explain_stored", "inspect", "kill_switch", "lineage", "load_bundles",
    "new_policy_key", "policy_warnings", "receipts", "replay", "run", "scan", "scan_types", "sign_bundle", "signer_of",
    "transformers_of", "turn_kill_switch", "verify",
]  # fmt: skip
