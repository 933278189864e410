"""The metrics of several processes as those of one gateway."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, override

from prometheus_client.core import Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector, CollectorRegistry

type Labels = tuple[tuple[str, str], ...]

_HIGHEST: Final = frozenset({"gateway_policy_reloads"})
"""Counters of what every process does at once: added up, one reload would count once a process."""

_ADDED_GAUGES: Final = frozenset({"gateway_queue_depth"})
"""Gauges of shares; every other one tells a state, of which the highest is shown."""


class _Fixed(Collector):
    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = list(families)

    @override
    def collect(self) -> Iterable[Metric]:
        return self._families


def merge(texts: Iterable[bytes]) -> bytes:
    """Prometheus texts of processes as one: counters and histograms added up, states by the highest."""
    families: dict[str, Metric] = {}
    found: dict[str, dict[tuple[str, Labels], float]] = {}
    for text in texts:
        for family in text_string_to_metric_families(text.decode("utf-8")):
            families.setdefault(family.name, Metric(family.name, family.documentation, family.type))
            samples = found.setdefault(family.name, {})
            adds = _adds(family)
            for sample in family.samples:
                if sample.name.endswith("_created"):
                    continue
                key = (sample.name, tuple(sorted(sample.labels.items())))
                before = samples.get(key)
                samples[key] = sample.value if before is None else _joined(before, sample.value, adds=adds)
    for name, samples in found.items():
        for (of, labels), value in samples.items():
            families[name].add_sample(of, dict(labels), value)
    registry = CollectorRegistry()
    registry.register(_Fixed(families.values()))
    return generate_latest(registry)


def _adds(family: Metric) -> bool:
    if family.name in _HIGHEST:
        return False
    return family.type != "gauge" or family.name in _ADDED_GAUGES


def _joined(before: float, value: float, *, adds: bool) -> float:
    return before + value if adds else max(before, value)


def counted(text: bytes) -> bytes:
    """What of a process's metrics stays true when it has ended: what it counted, and no state."""
    kept = [
        family
        for family in text_string_to_metric_families(text.decode("utf-8"))
        if family.type in {"counter", "histogram"}
    ]
    registry = CollectorRegistry()
    registry.register(_Fixed(kept))
    return generate_latest(registry)
