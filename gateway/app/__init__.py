"""The composition root: the only place that builds adapters and joins them.

run            the gateway in the foreground, until it is told to stop
inspect, scan  the same evaluation without network or store
receipts, verify, record   evidence as it is stored
kill_switch    what is stopped, and stopping it, with and without a running gateway
replay         what another policy would have decided about what is stored
build_addon    the proxy addon for `mitmdump -s addons/egress.py`
"""

from gateway.app.budgeting import budget_rows
from gateway.app.door import build_addon
from gateway.app.evidence import lineage, receipts, verify
from gateway.app.killing import kill_switch, turn_kill_switch
from gateway.app.offline import inspect, scan, scan_types
from gateway.app.policies import load_bundles, sign_bundle, signer_of, transformers_of
from gateway.app.replaying import explain_stored, replay
from gateway.app.serve import run

__all__ = [
    "budget_rows", "build_addon", "explain_stored", "inspect", "kill_switch", "lineage", "load_bundles", "receipts",
    "replay", "run", "scan", "scan_types", "sign_bundle", "signer_of", "transformers_of", "turn_kill_switch", "verify",
]  # fmt: skip
