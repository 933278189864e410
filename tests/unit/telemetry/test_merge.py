"""The metrics of several processes as those of one."""

from __future__ import annotations

from gateway.telemetry.merge import counted, merge
from gateway.telemetry.metrics import Metrics


def lines(text: bytes) -> dict[str, float]:
    found = [line.rpartition(" ") for line in text.decode().splitlines() if line[:1] != "#"]
    return {name: float(value) for name, _, value in found}


def of_worker(requests: int, depth: int, digest: str = "d") -> Metrics:
    made = Metrics(codes=("a.b",))
    for _ in range(requests):
        made.request("forwarded", "openai", ["allow", "deny"])
        made.evaluated(0.003)
    made.queue("scan", lambda: depth)
    made.policy("default", "1", digest)
    made.reloaded(ok=True)
    made.build("1.2.3")
    return made


def test_counts_are_added_and_states_are_not() -> None:
    found = lines(merge([of_worker(2, 3).render(), of_worker(5, 4).render()]))
    assert found['gateway_requests_total{effect="forwarded",provider="openai"}'] == 7
    assert found["gateway_evaluate_seconds_count"] == 7
    assert found['gateway_evaluate_seconds_bucket{le="0.005"}'] == 7
    assert found['gateway_queue_depth{queue="scan"}'] == 7
    assert found['gateway_build_info{version="1.2.3"}'] == 1
    assert found['gateway_policy_reloads_total{result="ok"}'] == 1
    assert found["gateway_policy_stale"] == 0


def test_one_process_stays_as_it_is() -> None:
    text = of_worker(3, 1).render()
    assert lines(merge([text])) == {k: v for k, v in lines(text).items() if "_created" not in k}


def test_what_stays_of_a_process_that_ended_is_what_it_counted() -> None:
    kept = lines(counted(of_worker(3, 9).render()))
    assert kept['gateway_requests_total{effect="forwarded",provider="openai"}'] == 3
    assert not any(name.startswith(("gateway_queue_depth", "gateway_bundle_info")) for name in kept)
    assert lines(merge([b"", counted(b"")])) == {}
