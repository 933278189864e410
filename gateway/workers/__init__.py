"""Work beside the request: background tasks that cannot be lost, and scans that can be killed.

spawn      a task that is kept until it ends, and whose failure is reported by type
ScanPool   detection for the use case: little text inline, much in processes with a deadline
child      what such a process runs; it is never imported by the gateway itself
"""

from gateway.workers.pool import ScanPool
from gateway.workers.tasks import spawn

__all__ = ["ScanPool", "spawn"]
