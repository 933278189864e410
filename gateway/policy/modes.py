"""What the gateway's mode decides whatever the bundles say (contract.md §3.3, §7.5).

These are rules like any other, under ids that begin with `mode.`; bundles can neither define nor lift them.
What cannot be read follows the bundles' `[unread]` switches, whose absence means refusal outside developer
mode.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from gateway.context.findings import Category
from gateway.context.objects import LeafRole, ObjectKind
from gateway.contract import ContextDispositionV1
from gateway.policy.conditions import (
    Conditions,
    FindingConditions,
    ObjectConditions,
    RequestConditions,
)
from gateway.policy.rule import RESERVED, Outcome, Rule

_D = ContextDispositionV1
_SOURCE = "gateway: mode"

UNREAD = ("media", "documents", "opaque", "references")
"""The four kinds of content a scanner cannot read; each is `flag` (let through and said) or `deny`."""

UNREAD_CODES = {
    "media": "coverage.unsupported_media",
    "documents": "coverage.unsupported_document",
    "opaque": "egress.opaque_payload",
    "references": "coverage.reference",
}

SURE_ENOUGH_MILLI = 300
"""Findings below this confidence are recorded but change nothing."""

_BY_REASON = {
    "media": ("coverage.unsupported_media", "media"),
    "document": ("coverage.unsupported_document", "documents"),
    "opaque": ("coverage.opaque", "opaque"),
}
_OWN_SWITCH = {
    ObjectKind.MEDIA: "media",
    ObjectKind.DOCUMENT: "documents",
    ObjectKind.REFERENCE: "references",
    ObjectKind.OPAQUE: "opaque",
}


def unread_action(what: str, mode: str, switches: Mapping[str, str]) -> str:
    """`flag` or `deny` for one kind of unreadable content.

    Sovereign mode refuses all that is unread; references point at content that an earlier request carried,
    or that lies at the provider already, and are said rather than refused unless a bundle refuses them.
    """
    if what == "references":
        return switches.get(what, "flag")
    if mode == "sovereign":
        return "deny"
    return switches.get(what, "flag" if mode == "developer" else "deny")


def mode_rules(mode: str, switches: Mapping[str, str]) -> tuple[Rule, ...]:
    """The rules that a mode brings along, under the combined `[unread]` switches of all layers."""
    lenient = mode == "developer"
    return (
        _rule(
            "coverage_failed",
            "Content that a detector failed on was not seen, and what was not seen does not leave.",
            Conditions(object=ObjectConditions(coverage=("failed",))),
            Outcome(_D.DENY, ("coverage.failed",), coverage_reason=True),
        ),
        _rule(
            "coverage_partial",
            "Detectors are mandatory in governed and sovereign mode: content not fully inspected is denied.",
            Conditions(object=ObjectConditions(coverage=("partial",))),
            Outcome(_D.ALLOW if lenient else _D.DENY, ("coverage.partial",), coverage_reason=True),
        ),
        _rule(
            "sealed_finding",
            "Thinking text is bound to a signature: it is never edited, so a finding drops the block.",
            Conditions(finding=_MUST_NOT_LEAVE),
            Outcome(_D.ALLOW, ("egress.sealed_content",))
            if lenient
            else Outcome(_D.QUARANTINE, ("egress.sealed_content",), parameters=(("stub", "drop"),)),
        ),
        _rule(
            "extracted_finding",
            "The text of a document or of token ids cannot be replaced where it stands, so a finding refuses it.",
            Conditions(finding=replace(_MUST_NOT_LEAVE, leaf_role=(LeafRole.EXTRACTED,))),
            Outcome(_D.DENY, ("egress.extracted_content",)),
        ),
        _rule(
            "restricted_remote",
            "Content marked restricted stays on this machine.",
            Conditions(
                request=RequestConditions(locality=("remote", "unknown")),
                object=ObjectConditions(classification=("restricted",)),
            ),
            Outcome(_D.DENY, ("destination.remote_restricted",)),
        ),
        *_unread_rules(mode, switches),
    )


_MUST_NOT_LEAVE = FindingConditions(
    category=(Category.SECRET, Category.PII, Category.POLICY, Category.CUSTOM),
    leaf_role=(LeafRole.THINKING,),
    confidence_min=SURE_ENOUGH_MILLI,
)


def _unread_rules(mode: str, switches: Mapping[str, str]) -> Iterator[Rule]:
    """One rule a kind that is unreadable as a whole, one for each reason that stands in other kinds, one for the rest.

    A text or tool result that is unread because of a picture follows `media`, because of a document `documents`; any
    other reason is `opaque`. So does what stands in a place for pictures and is none.
    """
    for kind, what in _OWN_SWITCH.items():
        yield _unread_rule(
            f"unread_{kind}", ObjectConditions((kind,)), what, unread_action(what, mode, switches)
        )
    for name, (reason, what) in _BY_REASON.items():
        others = tuple(k for k in ObjectKind if _OWN_SWITCH.get(k) not in {what, "references", "opaque"})
        target = ObjectConditions(others, coverage_reason=(reason,))
        yield _unread_rule(f"unread_{name}_inside", target, what, unread_action(what, mode, switches))
    mixed = tuple(k for k in ObjectKind if k not in _OWN_SWITCH)
    other = _unread_rule(
        "unread_inside", ObjectConditions(mixed), "opaque", unread_action("opaque", mode, switches)
    )
    named = tuple(reason for reason, _ in _BY_REASON.values())
    yield replace(other, unless=Conditions(object=ObjectConditions(coverage_reason=named)))


def _unread_rule(name: str, target: ObjectConditions, what: str, action: str) -> Rule:
    return _rule(
        name,
        "What cannot be read is let through only where a bundle says so, and never silently.",
        Conditions(object=replace(target, coverage=("unsupported",))),
        Outcome(
            _D.ALLOW if action == "flag" else _D.DENY, (UNREAD_CODES[what],), coverage_reason=action == "deny"
        ),
    )


def _rule(name: str, why: str, when: Conditions, then: Outcome) -> Rule:
    return Rule(f"{RESERVED}{name}", why, when, None, then, _SOURCE)
