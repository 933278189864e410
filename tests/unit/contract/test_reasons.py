"""The table of reason codes: every code of the grammar, every sentence one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gateway.contract import ERROR_CODES, REASONS, ReasonCodeV1, SourceValidityV1, conform

REQUIRED = [
    "secret.redacted",
    "secret.blocked",
    "secret.flagged",
    "pii.redacted",
    "pii.blocked",
    "pii.flagged",
    "injection.flagged",
    "body.malformed",
    "body.duplicate_member",
    "body.too_deep",
    "body.too_large",
    "body.too_many_nodes",
    "body.not_utf8",
    "body.unreadable",
    "body.too_many_objects",
    "encoding.unsupported",
    "encoding.malformed",
    "encoding.ratio",
    "coverage.unsupported_media",
    "coverage.partial",
    "coverage.budget_exhausted",
    "coverage.opaque",
    "project.not_visible",
    "evidence.unavailable",
    "deadline.exceeded",
    "detector.failed",
    "policy.rule_error",
    "policy.kill_switch",
    "destination.remote_restricted",
    "destination.mismatch",
    "destination.private",
    "host.refused",
    "host.unknown",
    "egress.sealed_content",
    "egress.opaque_payload",
    "egress.signed_body",
    "redaction.incomplete",
    "route.unknown_path",
    "websocket.unsupported",
    "protocol.unsupported",
    "gateway.overloaded",
    "gateway.draining",
    "gateway.error",
    "conversation.signed_prefix",
    "name.finding",
    "target.finding",
    "header.finding",
    "auth.required",
    "shadow.would_deny",
    "approval.pending",
    "quarantine.held",
    "media.malformed",
    "value.masked_before",
    "response.incomplete",
]


@pytest.mark.parametrize("code", REQUIRED)
def test_every_promised_code_has_a_sentence(code: str) -> None:
    assert REASONS[code]


@pytest.mark.parametrize(("code", "sentence"), REASONS.items())
def test_codes_have_the_contracts_grammar_and_sentences_end(code: str, sentence: str) -> None:
    assert conform(ReasonCodeV1, code) == code
    assert sentence[0].isupper()
    assert sentence.endswith(".")


def test_the_codes_of_source_states_are_in_the_table() -> None:
    assert {state.reason_code for state in SourceValidityV1} <= set(REASONS)


def test_the_tables_cannot_be_changed() -> None:
    for table in (REASONS, ERROR_CODES):
        with pytest.raises(TypeError):
            table["x"] = "y"  # type: ignore[index]


# Families that hold reason codes only; the others share their first word with error codes and event names.
FAMILIES = (
    "approval|auth|body|classification|conversation|coverage|deadline|destination|encoding|header|host|injection|media"
    "|name|pii|project|quarantine|redaction|route|secret|shadow|target|value|websocket"
)
EXAMPLES = {
    "secret.redact",
    "pii.card_blocked",
}  # a rule's id in an example, and a code of the demonstration's own bundle


def test_every_code_that_the_source_writes_is_in_the_table() -> None:
    literal = re.compile(rf'"((?:{FAMILIES})\.[a-z_]+)"')
    source = Path(__file__).parents[3] / "gateway"
    # Detectors write names of finding types, which share the word `injection` with a family of codes.
    files = [path for path in source.rglob("*.py") if "detect" not in path.relative_to(source).parts]
    written = {code for path in files for code in literal.findall(path.read_text("utf-8"))}
    assert len(written) > 20
    assert written <= set(REASONS) | EXAMPLES
