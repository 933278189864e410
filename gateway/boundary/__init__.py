"""Whose content it is, and whether another project may see it.

Identity     a project's stable hash; two unknown ones are never the same
Fingerprints who owns a text, from its lines alone
Provenance   who a text speaks of: paths, remotes, tags
Visibility   the rule: own project, or role and policy and the fact's privacy together
Audit        one event for every attempt against a foreign project
"""

from gateway.boundary.audit import Attempt, crossing_event, load_events
from gateway.boundary.fingerprint import FingerprintIndex, Match
from gateway.boundary.identity import Links, linked_projects, project_identity
from gateway.boundary.ownership import is_ownable, ownable_text
from gateway.boundary.provenance import KnownProjects, Mention, MentionKind
from gateway.boundary.visibility import (
    Asking,
    Crossing,
    Fact,
    check_boundary,
    is_visible,
    same_identity,
    visibility,
)
from gateway.contract import BoundaryPolicy, CrossProjectEventTypeV1, FactPrivacy

FOREIGN_TYPE = "cross_project"
"""The finding type (category `policy`) that marks a span which belongs to a project not visible here."""

__all__ = [
    "FOREIGN_TYPE",
    "Asking",
    "Attempt",
    "BoundaryPolicy",
    "CrossProjectEventTypeV1",
    "Crossing",
    "Fact",
    "FactPrivacy",
    "FingerprintIndex",
    "KnownProjects",
    "Links",
    "Match",
    "Mention",
    "MentionKind",
    "check_boundary",
    "crossing_event",
    "is_ownable",
    "is_visible",
    "linked_projects",
    "load_events",
    "ownable_text",
    "project_identity",
    "same_identity",
    "visibility",
]
