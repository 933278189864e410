"""Signals: what satisfies a mandatory detector (contract §3.1)."""

from __future__ import annotations

import pytest

from gateway.contract import CoverageKindV1, DetectorSignalV1, DetectorStatusV1


def signal(kind: CoverageKindV1, status: DetectorStatusV1) -> DetectorSignalV1:
    complete = kind is CoverageKindV1.COMPLETE
    return DetectorSignalV1.from_value(
        {
            "detector": {"id": "builtin", "version": "1.0.0"},
            "category": "secret",
            "severity": "high",
            "evidence_count": 0,
            "coverage": {
                "kind": kind,
                "bytes_total": 10,
                "bytes_inspected": 10 if complete else 9,
                "chunks_total": 1,
                "chunks_inspected": 1,
            },
            "status": status,
            "latency_us": 1,
        }
    )


def test_a_completed_run_over_the_complete_object_satisfies() -> None:
    assert signal(CoverageKindV1.COMPLETE, DetectorStatusV1.COMPLETED).satisfies_requirement


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        (CoverageKindV1.COMPLETE, DetectorStatusV1.SKIPPED),
        *[(k, DetectorStatusV1.COMPLETED) for k in CoverageKindV1 if k is not CoverageKindV1.COMPLETE],
        (CoverageKindV1.PARTIAL, DetectorStatusV1.TIMED_OUT),
        (CoverageKindV1.FAILED, DetectorStatusV1.FAILED),
    ],
)
def test_nothing_else_satisfies(kind: CoverageKindV1, status: DetectorStatusV1) -> None:
    assert not signal(kind, status).satisfies_requirement
