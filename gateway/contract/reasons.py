"""Every reason code that this product uses, with a sentence for people (contract §7.6).

The vocabulary is open: a receipt may carry any code of the grammar, and rules may bring their own. These
are ours; `docs/contracts.md` lists them, and a refusal shows the sentence. A sentence never speaks of the
content itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

_FINDINGS = {
    "secret.detected": "A credential was found.",
    "secret.redacted": "A credential was replaced by a placeholder.",
    "secret.blocked": "A credential was found where it must not leave.",
    "secret.flagged": "A credential was found and noted; nothing was changed.",
    "pii.redacted": "Personal data was replaced by a placeholder.",
    "pii.blocked": "Personal data was found where it must not leave.",
    "pii.flagged": "Personal data was found and noted; nothing was changed.",
    "injection.redacted": "Text that tries to steer the model was replaced.",
    "injection.blocked": "Text that tries to steer the model was found and blocked.",
    "injection.quarantined": "Text that tries to steer the model was set aside for review.",
    "injection.flagged": "Text that tries to steer the model was found and noted.",
    "classification.blocked": "Content of this classification must not leave.",
    "classification.flagged": "Classified content was noted.",
    "name.finding": "A member name holds something that must not leave, and names are never rewritten.",
    "target.finding": "The path or the query holds something that must not leave.",
    "header.finding": "A header holds something that must not leave.",
    "value.masked_before": "A value that was masked earlier in this conversation came back.",
    "redaction.incomplete": "After the redaction something was still found, so nothing was sent.",
}

_ANSWERS = {
    "answer.secret": "The model's answer holds a credential.",
    "answer.pii": "The model's answer holds personal data.",
    "answer.injection": "The model's answer holds text that tries to steer an agent.",
    "answer.classification": "The model's answer holds classified content.",
    "answer.policy": "The model's answer holds text that the organisation's own patterns name.",
    "answer.custom": "The model's answer holds a value that the organisation listed.",
    "answer.masked": "What was found in the model's answer was replaced before the client got it.",
    "answer.blocked": "The model's answer was refused because of what was found in it.",
    "answer.unscanned": "Not all of the model's answer could be scanned.",
    "answer.too_large": "The model's answer is larger than an answer that is held back may be.",
}

_BODIES = {
    "body.malformed": "The body is not what its content type says.",
    "body.duplicate_member": "A JSON object names a member twice, so readers may disagree about it.",
    "body.too_deep": "The body nests deeper than the limit.",
    "body.too_large": "The body is larger than the limit.",
    "body.too_many_nodes": "The body holds more values than the limit.",
    "body.too_many_objects": "The body holds more parts than one receipt can list.",
    "body.not_utf8": "The body is not UTF-8.",
    "body.unreadable": "The body is in a form that cannot be read.",
    "encoding.unsupported": "The content coding is not one that can be read.",
    "encoding.malformed": "The content coding is damaged.",
    "encoding.ratio": "The body grows beyond the limit when it is decoded.",
    "media.malformed": "A media part is not what it says, or carries something after its end.",
}

_COVERAGE = {
    "coverage.partial": "Some of the content was not inspected.",
    "coverage.budget_exhausted": "The time or hit budget ran out before everything was inspected.",
    "coverage.unsupported_media": "Media was let through without looking into it.",
    "coverage.unsupported_document": "A document is in a form that cannot be looked into.",
    "coverage.reference": "The body points at content that is kept elsewhere and was not inspected.",
    "coverage.failed": "The content could not be inspected.",
    "coverage.opaque": "Some of the body cannot be looked into.",
    "detector.failed": "A detector failed, so the content counts as not inspected.",
    "detector.engine": "The pattern engine failed.",
    "detector.overloaded": "The detectors have more to do than they can hold.",
    "detector.unavailable": "No detector is running.",
    "detector.timed_out": "A detector ran out of time.",
    "detector.invalid_pattern": "A detector's pattern is not usable.",
    "semantic.partial": "The semantic detector saw only some of the content.",
    "semantic.unavailable": "The semantic detector was not available.",
}

_POLICY = {
    "policy.changed": "The policy changed since the source was last checked.",
    "policy.denied": "A rule of the policy denies this.",
    "policy.blocked": "A configured pattern was found where it must not leave.",
    "policy.redacted": "A configured pattern was replaced by a placeholder.",
    "policy.break_glass": "A person lifted a rule for a short while; the record says who and why.",
    "policy.exception": "An exception of the policy let this through.",
    "policy.more_reasons": "There were more reasons than one decision can list.",
    "policy.rule_error": "A rule of the policy failed, and a rule that fails denies.",
    "policy.kill_switch": "The operator has stopped all traffic.",
    "approval.pending": "A person must approve this first.",
    "approval.granted": "A person approved this, for a while and for this destination.",
    "approval.denied": "A person declined this.",
    "approval.expired": "The approval has expired.",
    "budget.tokens": "The budget of tokens for this window of time is used up.",
    "budget.unavailable": "What is used of the budgets cannot be counted, so nothing was sent.",
    "budget.requests": "The budget of requests for this window of time is used up.",
    "budget.bytes": "The budget of bytes for this window of time is used up.",
    "transform.impossible": "What the policy asks to be done with this content cannot be done in its place.",
    "quarantine.released": "A person released this from quarantine, for a while and for this destination.",
    "quarantine.discarded": "A person decided that this does not leave; a stub stands in its place.",
    "quarantine.held": "The object is held in quarantine and a stub stands in its place.",
    "shadow.would_allow": "The policy on trial would have let this through as it is.",
    "shadow.would_deny": "In enforcing mode this would have been denied.",
    "shadow.would_hold": "In enforcing mode this would have waited for approval.",
    "shadow.would_quarantine": "In enforcing mode this would have been quarantined.",
    "shadow.would_keep_local": "In enforcing mode this would have been kept from remote models.",
    "shadow.would_summarize": "In enforcing mode only a local extract would have been sent.",
    "shadow.would_redact": "In enforcing mode this would have been redacted.",
    "shadow.would_minimize": "In enforcing mode this would have been cut down.",
}

_DESTINATIONS = {
    "destination.remote_restricted": "This content may go to a local model only.",
    "destination.not_allowed": "A rule of the policy allows other destinations only.",
    "destination.mismatch": "The connection does not lead to the admitted destination.",
    "destination.malformed": "The address asked for is not one.",
    "destination.private": "Private and loopback addresses are not reachable from this listener.",
    "host.refused": "This host is denied.",
    "host.denied": "The configuration denies this host.",
    "host.intercepted": "The host is a provider whose requests are read.",
    "host.recognised": "The host is in no table and looks like a provider, so that its requests are read.",
    "host.tunnelled": "The connection was passed through unread, as configured.",
    "host.own_port": "The gateway does not connect to itself.",
    "host.private_address": "The name leads to a private or loopback address, which this listener must not reach.",
    "host.unknown": "This host is not one that the gateway knows.",
    "route.unknown_path": "The provider has no such path that the gateway knows.",
    "websocket.unsupported": "Messages of this WebSocket cannot be read.",
    "protocol.unsupported": "This protocol cannot be read.",
    "request.malformed": "The request is not valid HTTP.",
    "request.trailers": "The request ends in trailers, which are not read.",
    "tls.client_rejected": "The client ended the TLS handshake: it does not trust the interception CA, or it pins.",
    "upstream.unreachable": "The provider could not be reached over a verified connection.",
    "upstream.unresolved": "The name of the destination does not resolve.",
    "upstream.timeout": "The provider did not answer in time.",
    "restore.withheld": "A value was not put back into a tool call that leads to a host the project does not know.",
    "placeholder.foreign": "A text of the placeholder form was left as it is: this request does not carry it.",
    "project.not_visible": "The content belongs to a project that this one must not see.",
    "account.not_allowed": "This account at the provider is not one that may be used from here.",
    "account.missing": "The request names no account at the provider, and only listed ones may be used.",
    "account.ambiguous": "The request names more than one account at the provider.",
    "proxy.credentials": "The proxy credentials are missing or wrong.",
    "auth.required": "This needs credentials that the request does not carry.",
}

_EGRESS = {
    "egress.extracted_content": "The text of a document or of token ids holds what must not leave.",
    "egress.resigning_failed": "There are no credentials to sign the request with anew.",
    "egress.sealed_content": "Something was found next to a signature that forbids changing it.",
    "egress.opaque_payload": "The body cannot be read and was let through as it is.",
    "egress.signed_body": "The client signed this body, so it cannot be rewritten.",
    "history.withheld": "A part of the earlier conversation was not sent; a stub stands in its place.",
    "conversation.signed_prefix": "Signed history forbids the needed change; start a new conversation.",
    "response.incomplete": "The answer ended before it was complete.",
    "evidence.unavailable": "The evidence could not be stored, so nothing was sent.",
    "deadline.exceeded": "There was no verdict in time, so nothing was sent.",
    "gateway.error": "The gateway failed, so nothing was sent.",
    "gateway.overloaded": "The gateway has more in flight than it can hold.",
    "gateway.draining": "The gateway is shutting down and takes no new requests.",
    "gateway.disabled": "The gateway is switched off for this traffic.",
}

_MEMORY = {
    "memory.rerouted": "The record was put aside instead of into the project's memory.",
    "memory.rejected": "The record was refused.",
    "memory.missing_fields": "The record lacks a required field.",
    "memory.low_confidence": "It is not sure enough that the record belongs to the project.",
    "memory.ambiguous_project": "The record may belong to another project.",
}

_SOURCES = {
    "source.valid": "The source was checked again and is unchanged.",
    "source.revalidate_required": "The source must be checked again first.",
    "source.stale": "The source has changed since the copy was made.",
    "source.revoked": "Access to the source was taken away.",
    "source.deleted": "The source no longer exists.",
    "source.unavailable": "The source could not be asked this time.",
    "source.unsupported": "The source cannot be checked again.",
    "store.source_changed": "The source has changed since the copy was made.",
    "store.source_unavailable": "The source no longer exists.",
    "store.no_source_authority": "The source cannot be checked again.",
    "lineage.source_no_longer_admitted": "Access to the source was taken away.",
}

REASONS: Mapping[str, str] = MappingProxyType(
    {
        **_FINDINGS,
        **_ANSWERS,
        **_BODIES,
        **_COVERAGE,
        **_POLICY,
        **_DESTINATIONS,
        **_EGRESS,
        **_MEMORY,
        **_SOURCES,
    }
)
"""Reason code to sentence."""
