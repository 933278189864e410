"""The composition root: the only place that builds adapters and joins them.

run            the gateway in the foreground, until it is told to stop
inspect, scan  the same evaluation without network or store
receipts, verify, record   evidence as it is stored
build_addon    the proxy addon for `mitmdump -s addons/egress.py`
"""

from gateway.app.door import build_addon
from gateway.app.evidence import lineage, receipts, verify
from gateway.app.offline import inspect, scan, scan_types
from gateway.app.serve import run

__all__ = ["build_addon", "inspect", "lineage", "receipts", "run", "scan", "scan_types", "verify"]
