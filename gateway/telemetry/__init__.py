"""What the gateway says about itself, and never about content.

Metrics    counters and histograms whose labels are closed sets
Log        JSON lines whose fields are an allow-list; exceptions appear by type
"""

from gateway.telemetry.log import Log
from gateway.telemetry.metrics import Metrics

__all__ = ["Log", "Metrics"]
