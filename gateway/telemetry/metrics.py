"""The metrics of one process, in a registry of their own.

A label's values are a closed set, given below or when the registry is made; anything else is counted as
`other`. So a label can hold neither content nor a number of values that nobody bounded. Documented in
`docs/metrics.md`.
"""

from __future__ import annotations

from collections import Counter as Counted
from collections.abc import Callable, Collection, Iterable
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

OTHER: Final = "other"
EFFECTS: Final = frozenset({"forwarded", "rewritten", "refused", "held"})
# Ids of the host table that agents are seen to use; the hundred others there are `other`, to bound the series.
PROVIDERS: Final = frozenset(
    {
        "anthropic",
        "aws",
        "azure",
        "cursor",
        "github_copilot",
        "google",
        "huggingface",
        "mistral",
        "openai",
        "xai",
    }
)
DISPOSITIONS: Final = frozenset(
    {
        "allow",
        "allow_minimized",
        "allow_redacted",
        "allow_summary_only",
        "allow_local_model_only",
        "allow_with_approval",
        "quarantine",
        "deny",
    }
)
SEVERITIES: Final = frozenset({"info", "low", "medium", "high", "critical"})
CONNECTIONS: Final = frozenset({"intercepted", "tunnelled", "refused"})
QUEUES: Final = frozenset({"scan", "append", "requests", "connections", "notify"})
RESTORATIONS: Final = frozenset({"restored", "withheld"})

# From a warm cache to the deadline; the targets (10 and 40 ms) are bounds of their own.
_EVALUATE_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 1.0, 2.5, 10.0)
# A full sync on good and bad disks.
_APPEND_BUCKETS = (0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 2.0)


def _closed(value: str, allowed: Collection[str]) -> str:
    return value if value in allowed else OTHER


class Metrics:
    """All metrics of a process. Counting never raises and never waits.

    Args:
        finding_types: the types that active detectors can report.
        codes: the reason codes of refusals.
    """

    def __init__(self, *, finding_types: Collection[str] = (), codes: Collection[str] = ()) -> None:
        self.registry = CollectorRegistry()
        self._finding_types = frozenset(finding_types)
        self._codes = frozenset(codes)
        self._restarted = 0
        self._declare_requests(self.registry)
        self._declare_failures(self.registry)
        self._declare_policy(self.registry)
        self._declare_processes(self.registry)

    def _declare_requests(self, registry: CollectorRegistry) -> None:
        """What became of requests, and how long it took."""
        self._requests = Counter(
            "gateway_requests", "Requests by what became of them", ["effect", "provider"], registry=registry
        )
        self._objects = Counter(
            "gateway_objects",
            "Context objects by disposition",
            ["disposition", "provider"],
            registry=registry,
        )
        self._findings = Counter("gateway_findings", "Findings", ["type", "severity"], registry=registry)
        self._answers = Counter(
            "gateway_answer_findings", "Findings in what models said", ["type", "severity"], registry=registry
        )
        self._evaluate = Histogram(
            "gateway_evaluate_seconds",
            "From a whole request to its verdict",
            buckets=_EVALUATE_BUCKETS,
            registry=registry,
        )
        self._append = Histogram(
            "gateway_append_seconds",
            "Until evidence was durable",
            buckets=_APPEND_BUCKETS,
            registry=registry,
        )
        self._placeholders = Counter(
            "gateway_placeholders", "Placeholders in answers", ["action"], registry=registry
        )
        self._connections = Counter(
            "gateway_connections", "Connections by what was done with them", ["action"], registry=registry
        )

    def _declare_failures(self, registry: CollectorRegistry) -> None:
        """What failed, waits, or was not taken."""
        self._fail_closed = Counter(
            "gateway_fail_closed",
            "Refusals because something failed, not because a rule said so",
            ["code"],
            registry=registry,
        )
        self._queues = Gauge("gateway_queue_depth", "What waits, by queue", ["queue"], registry=registry)
        self._lost = Counter(
            "gateway_sink_dropped", "Facts that a sink did not take", ["sink"], registry=registry
        )

    def _declare_policy(self, registry: CollectorRegistry) -> None:
        """Which policy is in force, and what happens to it."""
        self._bundle = Gauge(
            "gateway_bundle_info",
            "1 for the policy that is in force",
            ["id", "version", "digest"],
            registry=registry,
        )
        self._trial = Counter(
            "gateway_shadow_objects",
            "Objects about which a policy in shadow or on trial would have decided otherwise",
            ["code"],
            registry=registry,
        )
        self._reloads = Counter(
            "gateway_policy_reloads", "Attempts to load the policy anew", ["result"], registry=registry
        )
        self._stale = Gauge(
            "gateway_policy_stale",
            "1 while the bundles on disk are not the policy in force, because they are not valid",
            registry=registry,
        )
        self._fetches = Counter(
            "gateway_policy_fetches",
            "Attempts to fetch bundles from their URLs",
            ["result"],
            registry=registry,
        )
        self._unfetched = Gauge(
            "gateway_policy_fetch_failed",
            "Bundles whose last fetch failed, so that an earlier revision stays in force",
            registry=registry,
        )
        self._notices = Counter(
            "gateway_notifications",
            "Notices to reviewers, by channel and what became of them",
            ["channel", "result"],
            registry=registry,
        )
        self._stopped = Gauge(
            "gateway_kill_switch", "1 while the kill switch stops any requests", registry=registry
        )
        self._glass = Gauge(
            "gateway_break_glass", "How many times people have lifted rules for now", registry=registry
        )

    def _declare_processes(self, registry: CollectorRegistry) -> None:
        """What runs."""
        self._workers = Gauge("gateway_workers", "Processes that carry traffic", registry=registry)
        self._restarts = Counter(
            "gateway_process_restarts", "Processes that ended and were started again", registry=registry
        )
        self._build = Gauge("gateway_build_info", "1 for the running version", ["version"], registry=registry)

    def request(self, effect: str, provider: str, dispositions: Iterable[str]) -> None:
        """One request that was decided, with the disposition of each of its objects."""
        provider = _closed(provider, PROVIDERS)
        self._requests.labels(_closed(effect, EFFECTS), provider).inc()
        for disposition, count in Counted(dispositions).items():
            self._objects.labels(_closed(disposition, DISPOSITIONS), provider).inc(count)

    def findings(self, kind: str, severity: str, count: int = 1) -> None:
        """Findings of one type."""
        self._findings.labels(_closed(kind, self._finding_types), _closed(severity, SEVERITIES)).inc(count)

    def answer_findings(self, kind: str, severity: str, count: int = 1) -> None:
        """Findings of one type in an answer."""
        self._answers.labels(_closed(kind, self._finding_types), _closed(severity, SEVERITIES)).inc(count)

    def evaluated(self, seconds: float) -> None:
        """One evaluation took so long."""
        self._evaluate.observe(seconds)

    def appended(self, seconds: float) -> None:
        """One append of evidence took so long."""
        self._append.observe(seconds)

    def failed_closed(self, code: str) -> None:
        """One request was refused because something failed."""
        self._fail_closed.labels(_closed(code, self._codes)).inc()

    def queue(self, name: str, depth: Callable[[], float]) -> None:
        """Ask `depth` whenever the metrics are read; it must be quick and must not raise."""
        self._queues.labels(_closed(name, QUEUES)).set_function(depth)

    def placeholders(self, *, restored: int = 0, withheld: int = 0) -> None:
        """Placeholders of one answer that were turned back, or were not."""
        for action, count in (("restored", restored), ("withheld", withheld)):
            if count:
                self._placeholders.labels(_closed(action, RESTORATIONS)).inc(count)

    def connection(self, action: str) -> None:
        """One connection was intercepted, tunnelled or refused."""
        self._connections.labels(_closed(action, CONNECTIONS)).inc()

    def sink_dropped(self, sink: str) -> None:
        """A sink, named in the configuration, did not take a fact."""
        self._lost.labels(sink).inc()

    def policy(self, bundle_id: str, version: str, digest: str) -> None:
        """The policy in force, in place of the one before."""
        self._bundle.clear()
        self._bundle.labels(bundle_id, version, digest).set(1)

    def shadow(self, code: str) -> None:
        """One object about which another policy would have decided otherwise, by its `shadow.` code."""
        self._trial.labels(_closed(code, self._codes)).inc()

    def reloaded(self, *, ok: bool) -> None:
        """One attempt to load the policy anew."""
        self._reloads.labels("ok" if ok else "failed").inc()
        self._stale.set(0 if ok else 1)

    def notified(self, channel: str, result: str) -> None:
        """One notice (webhook or command) was sent, given up or dropped."""
        self._notices.labels(channel, result).inc()

    def fetched(self, result: str, failing: int) -> None:
        """One attempt to fetch a bundle (changed, unchanged or failed), and how many fail now."""
        self._fetches.labels(result).inc()
        self._unfetched.set(failing)

    def kill_switch(self, stopped: Callable[[], bool]) -> None:
        """Ask `stopped` whenever the metrics are read; it must be quick and must not raise."""
        self._stopped.set_function(lambda: float(stopped()))

    def processes(self, workers: int, restarts: int) -> None:
        """How many processes carry traffic now, and how many were started again since the gateway began."""
        self._workers.set(workers)
        self._restarts.inc(max(restarts - self._restarted, 0))
        self._restarted = max(restarts, self._restarted)

    def break_glass(self, number: Callable[[], int]) -> None:
        """Ask `number` whenever the metrics are read; it must be quick and must not raise."""
        self._glass.set_function(lambda: float(number()))

    def build(self, version: str) -> None:
        """The running version."""
        self._build.labels(version).set(1)

    def render(self) -> bytes:
        """Prometheus text, format version 0.0.4."""
        return generate_latest(self.registry)
