"""Metrics: labels are closed sets, whatever is counted."""

from prometheus_client.parser import text_string_to_metric_families

from gateway.providers import hosts
from gateway.telemetry import Metrics
from gateway.telemetry.metrics import PROVIDERS

CANARY = "canary-9f3a"


def samples(metrics: Metrics) -> dict[tuple[str, tuple[str, ...]], float]:
    return {
        (sample.name, tuple(sample.labels[name] for name in sorted(sample.labels))): sample.value
        for family in text_string_to_metric_families(metrics.render().decode())
        for sample in family.samples
    }


def test_what_is_counted_is_what_is_read() -> None:
    metrics = Metrics(finding_types={"secret.github_pat"}, codes={"evidence.unavailable"})
    metrics.request("rewritten", "anthropic", ["allow", "allow", "allow_redacted"])
    metrics.findings("secret.github_pat", "critical", 3)
    metrics.evaluated(0.03)
    metrics.appended(0.001)
    metrics.failed_closed("evidence.unavailable")
    metrics.queue("scan", lambda: 7)
    metrics.placeholders(restored=2, withheld=1)
    metrics.connection("tunnelled")
    metrics.build("1.2.3")
    read = samples(metrics)

    assert read["gateway_requests_total", ("rewritten", "anthropic")] == 1
    assert read["gateway_objects_total", ("allow", "anthropic")] == 2
    assert read["gateway_findings_total", ("critical", "secret.github_pat")] == 3
    assert read["gateway_evaluate_seconds_count", ()] == 1
    assert read["gateway_append_seconds_sum", ()] == 0.001
    assert read["gateway_fail_closed_total", ("evidence.unavailable",)] == 1
    assert read["gateway_queue_depth", ("scan",)] == 7
    assert read["gateway_placeholders_total", ("restored",)] == 2
    assert read["gateway_placeholders_total", ("withheld",)] == 1
    assert read["gateway_connections_total", ("tunnelled",)] == 1
    assert read["gateway_build_info", ("1.2.3",)] == 1


def test_a_value_outside_a_closed_set_is_other() -> None:
    metrics = Metrics()
    metrics.request(CANARY, CANARY, [CANARY])
    metrics.findings(CANARY, CANARY)
    metrics.failed_closed(CANARY)
    metrics.queue(CANARY, lambda: 1)
    metrics.connection(CANARY)

    assert CANARY not in metrics.render().decode()
    assert samples(metrics)["gateway_requests_total", ("other", "other")] == 1


def test_only_the_policy_in_force_is_shown() -> None:
    metrics = Metrics()
    metrics.policy("default", "1.0.0", "sha256:aa")
    metrics.policy("default", "1.1.0", "sha256:bb")

    shown = [
        labels
        for (name, labels), value in samples(metrics).items()
        if name == "gateway_bundle_info" and value
    ]
    assert shown == [("sha256:bb", "default", "1.1.0")]


def test_two_sets_of_metrics_do_not_meet() -> None:
    one, other = Metrics(), Metrics()
    one.connection("refused")

    assert ("gateway_connections_total", ("refused",)) not in samples(other)


def test_providers_are_named_as_the_host_table_names_them() -> None:
    known = [
        "api.openai.com",
        "api.anthropic.com",
        "generativelanguage.googleapis.com",
        "api.githubcopilot.com",
        "api.mistral.ai",
        "api.x.ai",
        "eu.openai.azure.com",
        "bedrock-runtime.eu-west-1.amazonaws.com",
        "x.y.endpoints.huggingface.cloud",
        "api2.cursor.sh",
    ]

    assert {hosts.provider(host) for host in known} == PROVIDERS
